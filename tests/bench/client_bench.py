"""The Python client against the C++ client: throughput of forwards, in turns within one run.

    bazel run -c opt //tests/bench:client_bench

Both send X [tokens, in] in BF16 and bring Y [tokens, out] to and from one daemon's sessions, whose
compute only copies; one forward at a time, as a training loop has it. Each client, and the daemon,
is a process of its own. The C++ client receives into memory that it has, Python into the new tensor
that RemoteLinear returns. Tensors rotate through memory that no cache holds.
"""

import argparse
import statistics
import subprocess
import time

import torch

import planewise

BUFFERS = 8
# Turns are short so that what else the machine does falls on both.
ROUNDS = 41
FORWARDS = 8  # in a turn
MIB = 1 << 20


class CppTrainer:
    def __init__(self, program, target, tokens, width, out):
        self._process = subprocess.Popen(
            [
                program,
                f"--target={target}",
                f"--tokens={tokens}",
                f"--in={width}",
                f"--out={out}",
                f"--buffers={BUFFERS}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, forwards):
        self._process.stdin.write(f"{forwards}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self):
        self._process.communicate()


class PythonTrainer:
    def __init__(self, target, tokens, width, out):
        self._client = planewise.Client(target, token="bench")
        self._linear = planewise.RemoteLinear(self._client.session(), "m", "l", width, out)
        self._inputs = [torch.full((tokens, width), 0.5).bfloat16() for _ in range(BUFFERS)]

    def seconds(self, forwards):
        with torch.no_grad():
            begin = time.perf_counter()
            for i in range(forwards):
                self._linear(self._inputs[i % BUFFERS])
            return time.perf_counter() - begin

    def close(self):
        self._client.close()


def measure(arguments, tensor_bytes, width, out):
    """(Python's, C++'s GB/s of X and Y together, ratio): medians of the rounds."""
    host = subprocess.Popen(
        [arguments.host, f"--in={width}", f"--out={out}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    target = host.stdout.readline().strip()
    tokens = tensor_bytes // (width * 2)
    python = PythonTrainer(target, tokens, width, out)
    cpp = CppTrainer(arguments.cpp_trainer, target, tokens, width, out)
    moved = FORWARDS * tokens * (width + out) * 2 / 1e9
    rounds = []
    for _ in range(ROUNDS + 1):
        rounds.append((moved / python.seconds(FORWARDS), moved / cpp.seconds(FORWARDS)))
    del rounds[0]  # memory of all three was touched for the first time
    cpp.close()
    python.close()
    host.communicate()
    return (
        statistics.median(p for p, _ in rounds),
        statistics.median(c for _, c in rounds),
        statistics.median(p / c for p, c in rounds),
    )


def main():
    parser = argparse.ArgumentParser(description="Times the Python client against the C++ client.")
    parser.add_argument("--host", required=True, help="the program session_host_main")
    parser.add_argument("--cpp-trainer", required=True, help="the program cpp_trainer_main")
    arguments = parser.parse_args()
    print(f"one forward at a time, {FORWARDS} in a turn, median of {ROUNDS} rounds, GB/s")
    print(f"{'X MiB':>6} {'Y MiB':>6} {'C++':>8} {'Python':>8} {'Python/C++':>12}")
    for tensor_bytes in (MIB, 4 * MIB, 16 * MIB, 64 * MIB):
        for width, out in ((4096, 4096), (4096, 32)):
            python, cpp, ratio = measure(arguments, tensor_bytes, width, out)
            x_mib = tensor_bytes / MIB
            print(
                f"{x_mib:6g} {x_mib * out / width:6.2g} {cpp:8.2f} {python:8.2f} {ratio:12.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
