"""Starts a planewised of its own, and ends it as rudely as asked."""

import pathlib
import signal
import subprocess
import time

import planewise


class Daemon:
    """A planewised with socket, store and log in `folder`. Killed when the demo ends."""

    def __init__(self, program, folder, root):
        self._program = program
        self._folder = pathlib.Path(folder)
        self._root = root
        self._process = None
        self.target = f"unix://{self._folder}/socket/planewise.sock"
        self.store = self._folder / "store"
        self.log = self._folder / "planewised.log"

    def start(self):
        """Returns a connected Client."""
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [
                    self._program,
                    f"--listen={self.target}",
                    f"--store={self.store}",
                    f"--root={self._root}",
                    "--memory-limit=4GiB",
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 30
        while True:
            try:
                return planewise.Client(self.target, name="planewise-demo", connect_timeout_s=1)
            except planewise.PlanewiseError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the daemon did not start; its log is {self.log}:\n"
                                     + self.log.read_text()) from None

    def kill(self):
        """SIGKILL: no handler runs, nothing is flushed."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def resident_bytes(self):
        """Resident memory of the process, from /proc."""
        for line in pathlib.Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0
