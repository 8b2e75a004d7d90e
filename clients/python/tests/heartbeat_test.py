"""What keeps a session alive: a thread of the library, which needs nothing of Python."""

import ctypes
import os
import signal
import threading
import unittest

import torch

import planewise
from clients.python.tests.daemon_fixture import HIDDEN, INTERMEDIATE, UP, DaemonTest

# Short for a test that has to see it pass, long for heartbeats on a busy machine: there are
# three in it.
TIMEOUT_S = 5


class HeartbeatTest(DaemonTest):
    flags = (f"--session-timeout={TIMEOUT_S}s",)

    def setUp(self):
        self.create("tiny")

    def test_a_session_lives_while_python_does_not_run(self):
        ticks = [0]
        ended = threading.Event()

        def tick():
            while not ended.wait(0.01):
                ticks[0] += 1

        ticker = threading.Thread(target=tick)
        ticker.start()
        self.addCleanup(ticker.join)
        self.addCleanup(ended.set)
        with self.client.session() as session:
            linear = planewise.RemoteLinear(session, "tiny", UP, HIDDEN, INTERMEDIATE)
            x = torch.ones(2, HIDDEN, requires_grad=True)
            y = linear(x)
            # A PyDLL keeps the interpreter's lock, as an extension module may: no thread of
            # Python runs until poll() of nothing has waited this long.
            before = ticks[0]
            ctypes.PyDLL(None).poll(None, ctypes.c_ulong(0), ctypes.c_int(3000 * TIMEOUT_S))
            self.assertLess(ticks[0] - before, 100 * TIMEOUT_S, "the lock was not kept")
            # The operand that the forward saved is still there.
            y.sum().backward()
            self.assertEqual(x.grad.shape, x.shape)

    def test_a_process_that_stood_still_too_long_is_told_so(self):
        idle_bytes = self.used_bytes()
        child = self.start_script(
            """
y = linear(x)
print("saved", flush=True)
sys.stdin.readline()  # Until the test has seen the session go.
for use in (y.sum().backward, lambda: linear(x), session.end_step):
    try:
        use()
    except planewise.PlanewiseError as error:
        print(type(error).__name__, error.retry, error, flush=True)
del y
session.close()
linear.session = client.session()
linear(x).sum().backward()
print(x.grad.shape)
"""
        )
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "saved\n")
        self.assertGreater(self.used_bytes(), idle_bytes)

        child.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        # What the session held, the operand and the step's pin, goes while its client stands.
        self.eventually(lambda: self.used_bytes() == idle_bytes)
        self.assertEqual(self.client.describe("tiny")["lease_count"], 0)
        child.send_signal(signal.SIGCONT)

        out, err = child.communicate("go on\n", timeout=300)
        self.assertEqual((child.returncode, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(len(lines), 4, out)
        for line in lines[:3]:
            self.assertRegex(line, r"^AbortedError restart_step session \d+: .*open another one")
            self.assertIn("[ABORTED / SESSION_EXPIRED]", line)
        self.assertEqual(lines[3], f"torch.Size([2, {HIDDEN}])")


if __name__ == "__main__":
    unittest.main()
