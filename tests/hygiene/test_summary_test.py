"""The line that CI trusts: "N passed, N failed" must not hide a failure."""

import json
import pathlib
import tempfile
import unittest

import test_summary


def completed(label, success):
    payload = {"success": True} if success else {}
    return {"id": {"targetCompleted": {"label": label}}, "completed": payload}


class TestSummaryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def result(self, label, status, xml, attempt=1):
        outputs = []
        if xml is not None:
            path = self.folder / f"{label.strip('/')} {attempt}.xml"  # a space, as in a URI's %20
            path.write_text(xml, encoding="utf-8")
            outputs = [{"name": "test.xml", "uri": path.as_uri()}]
        key = {"label": label, "run": 1, "shard": 1, "attempt": attempt}
        return {
            "id": {"testResult": key},
            "testResult": {"status": status, "testActionOutput": outputs},
        }

    def summarize(self, *events):
        return test_summary.summarize(json.dumps(event) for event in events)

    def test_counts_cases_not_targets(self):
        summary = self.summarize(
            completed("//a", True),
            self.result(
                "//a",
                "PASSED",
                "<testsuites><testsuite><testcase name='x'/><testcase name='y'/></testsuite>"
                "</testsuites>",
            ),
        )
        self.assertEqual((summary.passed, summary.failures), (2, []))

    def test_names_the_case_that_failed(self):
        summary = self.summarize(
            self.result(
                "//a",
                "FAILED",
                "<testsuite><testcase classname='T' name='x'><failure/></testcase>"
                "<testcase name='y'/></testsuite>",
            )
        )
        self.assertEqual((summary.passed, summary.failures), (1, ["//a: T.x"]))

    def test_a_skipped_case_is_neither(self):
        summary = self.summarize(
            self.result("//a", "PASSED", "<t><testcase name='x'><skipped/></testcase></t>")
        )
        self.assertEqual((summary.passed, summary.failures), (0, []))

    def test_a_test_that_died_counts_as_one_failure(self):
        for xml in (None, "<testsuite><testcase name='x'/></testsuite>", "<testsuite><testca"):
            with self.subTest(xml=xml):
                summary = self.summarize(self.result("//a", "FAILED", xml))
                self.assertEqual(summary.failures, ["//a: died before it reported a failure"])

    def test_a_timeout_is_a_failure(self):
        self.assertEqual(len(self.summarize(self.result("//a", "TIMEOUT", None)).failures), 1)

    def test_a_target_that_did_not_build_is_a_failure(self):
        summary = self.summarize(completed("//a", False))
        self.assertEqual(summary.failures, ["//a: did not build"])

    def test_a_target_whose_build_broke_off_is_a_failure(self):
        event = completed("//a", False) | {"aborted": {"reason": "ANALYSIS_FAILURE"}}
        self.assertEqual(self.summarize(event).failures, ["//a: did not build"])

    def test_a_target_that_is_not_for_this_machine_is_no_failure(self):
        # As Bazel writes it for a target of the CUDA toolkit where there is none.
        event = {
            "id": {"targetCompleted": {"label": "//a"}},
            "aborted": {"reason": "SKIPPED", "description": "Target //a build was skipped."},
        }
        summary = self.summarize(event)
        self.assertEqual((summary.failures, summary.skipped), ([], ["//a"]))

    def test_the_last_attempt_of_a_flaky_test_counts(self):
        case = "<t><testcase name='x'/></t>"
        summary = self.summarize(
            self.result("//a", "FAILED", case, attempt=1),
            self.result("//a", "PASSED", case, attempt=2),
        )
        self.assertEqual((summary.passed, summary.failures), (1, []))


if __name__ == "__main__":
    unittest.main()
