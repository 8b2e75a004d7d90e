#!/usr/bin/env python3
"""Breaks the normative numeric code in one plausible way after another
(mutations.py), and says which tests notice.

Works on a copy of the tree in a scratch folder with a Bazel of its own, where the
tests must pass before anything is changed. Takes about a minute a mutation on two
cores, so that no stage of CI runs it.

    tests/mutation/run_mutations.py --disk-cache ~/.cache/planewise >table.md

Prints a Markdown table of what was changed and what failed. Exits with 1 if a
mutation was missed, or no test of it could be built, which shows nothing.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("tests/mutation", "tests/hygiene", "tools"):
    sys.path.insert(0, str(ROOT / folder))

import mutations  # noqa: E402
import source_tree  # noqa: E402
import test_summary  # noqa: E402

PASSED = 0  # Bazel's exit code


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="WORDS", help="names that contain this")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--scratch", type=pathlib.Path, help="an empty folder to use and to keep")
    parser.add_argument("--disk-cache", type=pathlib.Path, help="Bazel's cache of built files")
    parser.add_argument("--seed", default="1", help="PLANEWISE_SEED of the tests (default: 1)")
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


class Tree:
    """A copy of the tree that is tested with one file changed at a time."""

    def __init__(self, folder, disk_cache, seed):
        self.root = folder / "tree"
        self.output_base = folder / "output"
        self.events = folder / "events.json"
        self.flags = [f"--test_env=PLANEWISE_SEED={seed}"]
        if disk_cache:
            self.flags.append(f"--disk_cache={disk_cache.expanduser().resolve()}")
        for path in source_tree.files():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, self.root / path)

    def bazel(self, *command):
        return subprocess.run(
            ["bazel", f"--output_base={self.output_base}", *command],
            cwd=self.root,
            env={**os.environ, "PLANEWISE_SEED": ""},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode

    def test(self, labels):
        """Bazel's exit code and the failed cases as "label: case"."""
        code = self.bazel(
            "test",
            "--keep_going",
            "--test_output=summary",
            f"--build_event_json_file={self.events}",
            *self.flags,
            *labels,
        )
        with open(self.events, encoding="utf-8") as events:
            return code, test_summary.summarize(events).failures

    def replace(self, path, before, after):
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        if text.count(before) != 1:
            raise SystemExit(f"{path}: the text to change occurs {text.count(before)} times")
        file.write_text(text.replace(before, after), encoding="utf-8")
        return text

    def try_one(self, mutation):
        """A word for what came of it, and the failed cases.

        Caught is what a test noticed that ran: one that no longer builds, as by a
        static_assert of its own, counts for nothing.
        """
        original = self.replace(mutation.path, mutation.before, mutation.after)
        code, failures = self.test(mutation.tests)
        (self.root / mutation.path).write_text(original, encoding="utf-8")
        if any(not failure.endswith(": did not build") for failure in failures):
            return "caught", failures
        return ("MISSED" if code == PASSED else f"DID NOT BUILD (Bazel's {code})"), failures


def first_cases(labels, failures):
    """For each test what failed in it, shortened to one case."""
    parts = []
    for label in labels:
        cases = [f.removeprefix(label + ": ") for f in failures if f.startswith(label + ": ")]
        name = label.split(":")[1]
        if not cases:
            parts.append(f"{name} passes")
        elif cases == ["did not build"]:
            parts.append(f"{name} does not build")
        else:
            parts.append(f"{name}: {len(cases)}, `{cases[0]}`")
    return "; ".join(parts)


def run(chosen, tree):
    tests = sorted({label for mutation in chosen for label in mutation.tests})
    say(f"{len(tests)} tests of the tree as it is")
    code, failures = tree.test(tests)
    if code != PASSED:
        raise SystemExit("\n".join(["the tree as it is does not pass:", *failures]))
    print("| what is wrong | in | result | failed cases of each test, and the first |")
    print("|---|---|---|---|", flush=True)
    missed = []
    for mutation in chosen:
        result, failures = tree.try_one(mutation)
        say(f"{result}: {mutation.name}")
        cases = first_cases(mutation.tests, failures)
        print(f"| {mutation.name} | `{mutation.path}` | {result} | {cases} |", flush=True)
        if result != "caught":
            missed.append(mutation.name)
    print(f"\n{len(chosen) - len(missed)} of {len(chosen)} caught.")
    return 1 if missed else 0


def main():
    options = arguments()
    chosen = [
        mutation
        for mutation in mutations.MUTATIONS
        if not options.only or any(words in mutation.name for words in options.only)
    ]
    if options.list:
        print("\n".join(mutation.name for mutation in chosen))
        return 0
    folder = options.scratch or pathlib.Path(tempfile.mkdtemp(prefix="planewise-mutations-"))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty")
    tree = Tree(folder, options.disk_cache, options.seed)
    try:
        return run(chosen, tree)
    finally:
        tree.bazel("shutdown")
        if not options.scratch:
            # Bazel takes the right to write from what it made.
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
