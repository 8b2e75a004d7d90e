"""What ends when: clients, sessions and operands, by threads, forks and the interpreter's exit."""

import gc
import os
import signal
import threading
import unittest
from unittest import mock

import torch

import planewise
from clients.python.tests.daemon_fixture import HIDDEN, INTERMEDIATE, UP, DaemonTest
from planewise.errors import CancelledError, ResourceExhaustedError

THREADS = 4


class LifetimeTest(DaemonTest):
    def setUp(self):
        self.create("tiny")

    def linear(self, session):
        return planewise.RemoteLinear(session, "tiny", UP, HIDDEN, INTERMEDIATE)

    def run_script(self, text):
        """Standard output of a Python that ends with exit code 0 and nothing on stderr."""
        process = self.start_script(text)
        try:
            out, err = process.communicate(timeout=300)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        self.assertEqual((process.returncode, err), (0, ""))
        return out

    def test_a_session_outlives_the_client_that_nobody_keeps(self):
        session = planewise.Client(self.target).session()
        gc.collect()
        self.assertEqual(self.linear(session)(torch.ones(2, HIDDEN)).shape, (2, INTERMEDIATE))
        session.close()

    def test_a_session_that_nobody_keeps_ends(self):
        client = planewise.Client(self.target)
        session = client.session()
        before = len(client._sessions)
        y = self.linear(session)(torch.ones(2, HIDDEN, requires_grad=True))
        del session, y
        gc.collect()
        self.assertEqual((before, len(client._sessions)), (1, 0))
        client.close()

    def test_a_cycle_of_everything_is_collected_in_any_order(self):
        for _ in range(5):
            cycle = [planewise.Client(self.target)]
            cycle.append(cycle[0].session())
            y = self.linear(cycle[1])(torch.ones(2, HIDDEN, requires_grad=True))
            cycle += [y, cycle]
            del cycle, y
            gc.collect()

    def test_closing_ends_the_calls_of_other_threads(self):
        session = self.client.session()
        under_way = threading.Barrier(THREADS + 1)
        ends = []

        def run():
            linear = self.linear(session)
            x = torch.ones(2, HIDDEN, requires_grad=True)
            linear(x).sum().backward()
            under_way.wait()
            try:
                while True:
                    linear(x).sum().backward()
            except (CancelledError, ValueError) as error:
                ends.append(str(error))

        threads = [threading.Thread(target=run) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        under_way.wait()
        session.close()
        for thread in threads:
            thread.join()
        self.assertEqual(len(ends), THREADS)
        for end in ends:
            self.assertIn("closed", end)

    def test_threads_share_a_session(self):
        with self.client.session() as session:
            linear = self.linear(session)
            inputs = torch.randn(THREADS, 5, HIDDEN)
            gradients = [None] * THREADS

            def run(number):
                for _ in range(10):
                    x = inputs[number].clone().requires_grad_()
                    linear(x).sum().backward()
                    gradients[number] = x.grad

            threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            x = inputs.clone().requires_grad_()
            linear(x).sum().backward()
            self.assertTrue(torch.equal(torch.stack(gradients), x.grad))

    def test_ctrl_c_ends_a_call_to_a_daemon_that_does_not_answer(self):
        session = self.client.session()
        linear = self.linear(session)
        x = torch.ones(2, HIDDEN)
        wait = planewise.session.library.planewise_operation_wait
        waits = []

        def interrupted_wait(*arguments):
            waits.append(wait(*arguments))
            os.kill(os.getpid(), signal.SIGINT)
            return waits[-1]

        self.daemon.send_signal(signal.SIGSTOP)
        try:
            with mock.patch.object(
                planewise.session.library, "planewise_operation_wait", interrupted_wait
            ):
                with self.assertRaises(KeyboardInterrupt):
                    linear(x)
        finally:
            self.daemon.send_signal(signal.SIGCONT)
        self.assertEqual(len(waits), 1)
        with self.assertRaisesRegex(ValueError, "session is closed"):
            linear(x)
        with self.client.session() as session:
            self.assertEqual(self.linear(session)(x).shape, (2, INTERMEDIATE))

    def test_what_is_refused_for_now_is_asked_again_by_the_library(self):
        refused = object()
        check = planewise.session.check

        def refusing_check(error):
            if error is refused:
                raise ResourceExhaustedError("no room", details={"retry_delay_ms": 1})
            check(error)

        def run(session):
            x = torch.ones(2, HIDDEN, requires_grad=True)
            y = self.linear(session)(x)
            y.sum().backward()
            session.end_step()
            return y.detach(), x.grad

        with self.client.session() as session:
            want = run(session)
        starts = {
            f"planewise_{call}_start": lambda *_: refused
            for call in ("forward", "backward", "end_step")
        }
        with self.client.session() as session:
            with mock.patch.object(planewise.session, "check", refusing_check):
                with mock.patch.multiple(planewise.session.library, **starts):
                    got = run(session)
            self.assertEqual(session.current_step, 2)
        for one, other in zip(got, want):
            self.assertTrue(torch.equal(one, other))

    def test_a_step_reports_the_first_failure(self):
        session = self.client.session()
        with self.assertRaisesRegex(ArithmeticError, "a loss of nan"):
            with session.step():
                session.close()
                raise ArithmeticError("a loss of nan")

    def test_a_forked_child_is_refused_and_disturbs_nothing(self):
        out = self.run_script(
            """
y = linear(x)
sys.stdout.flush()
child = os.fork()
if child == 0:
    def connect():
        planewise.Client(sys.argv[1])
    for call in (lambda: linear(x), client.list_models, session.end_step, connect):
        try:
            call()
        except RuntimeError as error:
            assert "spawn" in str(error), error
            print("refused")
    del y
    session.close()
    sys.exit(0)  # With all that Python does at its end.
_, status = os.waitpid(child, 0)
y.sum().backward()  # The operand is still there.
print(os.waitstatus_to_exitcode(status), x.grad.shape)
"""
        )
        self.assertEqual(
            out.splitlines(), ["refused"] * 4 + [f"0 torch.Size([2, {HIDDEN}])"]
        )

    def test_a_script_may_end_without_closing_anything(self):
        for name, text in {
            "a graph that lives": "y = linear(x)",
            "an early exit": "y = linear(x)\nsys.exit(0)",
            "a cycle": "client.self = client; session.self = session; linear.y = linear(x)",
            "a thread that computes": """
begun = threading.Event()
# Without torch, which ends the process when Python stops a daemon thread inside it.
tensors = [torch.ones(2, width) for width in (linear.in_features, linear.out_features)]
memory = [
    planewise.session.Memory(t.data_ptr(), 4 * t.numel(), planewise.DataType.F32, tuple(t.shape))
    for t in tensors
]
def run():
    try:
        while True:
            session.forward("tiny", linear.layer, *memory)
            begun.set()
    except (planewise.PlanewiseError, ValueError):
        pass  # Closed.
threading.Thread(target=run, daemon=True).start()
begun.wait()
""",
        }.items():
            with self.subTest(name):
                self.assertEqual(self.run_script(text), "")


if __name__ == "__main__":
    unittest.main()
