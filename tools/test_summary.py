"""Prints what failed in a Bazel run and what this machine cannot build, then
"N passed, N failed".

Reads the build events that `bazel test --build_event_json_file` wrote, and the
test.xml files that they name. Exits with 1 if anything failed, also a target
that did not build or a test that died before it could report.
"""

import argparse
import json
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree


class Summary:
    def __init__(self):
        self.passed = 0
        self.failures = []  # "target: case"
        self.skipped = []  # targets that need what is not here, as the CUDA toolkit

    def add_test(self, label, succeeded, xml_path):
        """Counts the cases of one test target."""
        failed_cases = []
        passed_cases = 0
        for case in cases_of(xml_path):
            if case.find("failure") is not None or case.find("error") is not None:
                name = f"{case.get('classname', '')}.{case.get('name', '')}"
                failed_cases.append(name.strip("."))
            elif case.find("skipped") is None:
                passed_cases += 1
        if not succeeded and not failed_cases:
            failed_cases.append("died before it reported a failure")
        self.passed += passed_cases
        self.failures += [f"{label}: {case}" for case in failed_cases]


def cases_of(xml_path):
    if xml_path is None or not xml_path.exists():
        return []
    try:
        root = xml.etree.ElementTree.parse(xml_path).getroot()
    except xml.etree.ElementTree.ParseError:
        return []
    return root.iter("testcase")


def xml_path_of(result):
    for output in result.get("testActionOutput", []):
        if output["name"] == "test.xml":
            return pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path))
    return None


def summarize(lines):
    summary = Summary()
    last_attempts = {}  # (label, run, shard) -> (succeeded, xml path)
    for line in lines:
        event = json.loads(line)
        identity = event.get("id", {})
        if "testResult" in event:
            key = identity["testResult"]
            result = event["testResult"]
            last_attempts[key["label"], key.get("run"), key.get("shard")] = (
                result.get("status") == "PASSED",
                xml_path_of(result),
            )
        elif "targetCompleted" in identity:
            label = identity["targetCompleted"]["label"]
            if event.get("aborted", {}).get("reason") == "SKIPPED":
                summary.skipped.append(label)
            elif not event.get("completed", {}).get("success", False):
                summary.failures.append(f"{label}: did not build")
    for (label, _, _), (succeeded, xml_path) in sorted(
        last_attempts.items(), key=lambda item: item[0][0]
    ):
        summary.add_test(label, succeeded, xml_path)
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bazel-status", type=int, default=0, help="exit code of the Bazel run")
    parser.add_argument("events", type=pathlib.Path)
    arguments = parser.parse_args()
    with arguments.events.open(encoding="utf-8") as lines:
        summary = summarize(lines)
    if arguments.bazel_status != 0 and not summary.failures:
        summary.failures.append(f"bazel exited with {arguments.bazel_status}")
    for label in summary.skipped:
        print(f"skipped {label}: not compatible with this machine")
    for failure in summary.failures:
        print(f"FAILED {failure}")
    print(f"{summary.passed} passed, {len(summary.failures)} failed")
    return 1 if summary.failures else 0


if __name__ == "__main__":
    sys.exit(main())
