"""What Python drops costs nobody memory: forwards whose graphs die without a backward."""

import gc
import os
import pathlib
import unittest

import torch
from torch import nn

import planewise
from clients.python.tests.daemon_fixture import HIDDEN, INTERMEDIATE, UP, DaemonTest

TOKENS = 64
FORWARDS_PER_STEP = 100

# Until then allocators and caches on both sides have what they keep.
WARM_UP = 2_000

# What a process may grow by, which is what allocators do (2 MiB were seen): 84 bytes for each of
# 100,000 forwards, or one saved operand of four of 2,000.
GROWTH_MAX_BYTES = 8 << 20


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


class LeakTest(DaemonTest):
    forwards = 2_000

    def run_steps(self, linear, forwards):
        """Half of the graphs go when their last name does, half with the garbage collector."""
        x = torch.randn(TOKENS, HIDDEN, requires_grad=True)
        for number in range(1, forwards + 1):
            y = linear(x)
            if number % 2:
                cycle = [y]
                cycle.append(cycle)
            if number % FORWARDS_PER_STEP == 0:
                linear.session.end_step()
        del y, cycle
        gc.collect()
        # Executed after every release before it.
        linear.session.end_step()

    def test_dropped_handles_cost_nothing(self):
        self.create("tiny", planewise.MXFP8BlockScaling("high_precision"), trainable=True)
        idle_bytes = self.used_bytes()
        session = self.client.session()
        self.addCleanup(session.close)
        linear = planewise.RemoteLinear(
            session,
            "tiny",
            UP,
            HIDDEN,
            INTERMEDIATE,
            master_weight=nn.Parameter(torch.zeros(INTERMEDIATE, HIDDEN)),
        )
        self.run_steps(linear, WARM_UP)
        self.assertGreaterEqual(linear.last_forward.saved_bytes, TOKENS * HIDDEN * 4)
        self.eventually(lambda: self.used_bytes() == idle_bytes)
        processes = {"client": os.getpid(), "daemon": self.daemon.pid}
        before = {name: resident_bytes(pid) for name, pid in processes.items()}

        self.run_steps(linear, self.forwards)
        self.eventually(lambda: self.used_bytes() == idle_bytes)
        growth = {name: resident_bytes(pid) - before[name] for name, pid in processes.items()}
        print(f"{self.forwards} forwards: {growth} bytes more of {before}")
        for name in processes:
            self.assertLess(growth[name], GROWTH_MAX_BYTES, name)


if __name__ == "__main__":
    unittest.main()
