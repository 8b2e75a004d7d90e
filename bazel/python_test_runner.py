"""Runs unittest files and writes the result of each case as Bazel's test.xml."""

import argparse
import importlib.util
import os
import pathlib
import sys
import time
import unittest
import xml.etree.ElementTree


class CaseRecorder(unittest.TextTestResult):
    """A text result that also keeps (id, seconds, kind, text) of every case."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = []
        self._started = 0.0

    def startTest(self, test):
        super().startTest(test)
        self._started = time.monotonic()

    def _record(self, test, kind, text=""):
        self.cases.append((test.id(), time.monotonic() - self._started, kind, text))

    def addSuccess(self, test):
        super().addSuccess(test)
        self._record(test, None)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._record(test, "failure", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        super().addError(test, err)
        self._record(test, "error", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._record(subtest, "failure", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._record(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self._record(test, None)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._record(test, "failure", "passed, but was expected to fail")


def without_control_characters(text):
    """XML has no way to write them, and terminal colours are full of them."""
    return "".join(c for c in text if c in "\n\t" or ord(c) >= 32)


def write_xml(path, cases):
    suites = xml.etree.ElementTree.Element("testsuites")
    suite = xml.etree.ElementTree.SubElement(suites, "testsuite", name="unittest")
    for identity, seconds, kind, text in cases:
        class_name, _, name = identity.rpartition(".")
        case = xml.etree.ElementTree.SubElement(
            suite, "testcase", classname=class_name, name=name, time=f"{seconds:.3f}"
        )
        if kind:
            xml.etree.ElementTree.SubElement(case, kind).text = without_control_characters(text)
    xml.etree.ElementTree.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)


def load_tests(path):
    """The tests of the file at `path`, loaded as a module of that name."""
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--import", action="append", default=[], dest="imports")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    sys.path[0] = os.getcwd()
    sys.path[1:1] = [os.path.abspath(folder) for folder in arguments.imports]

    suite = unittest.TestSuite(load_tests(path) for path in arguments.files)
    runner = unittest.TextTestRunner(stream=sys.stderr, verbosity=2, resultclass=CaseRecorder)
    result = runner.run(suite)
    if "XML_OUTPUT_FILE" in os.environ:
        write_xml(os.environ["XML_OUTPUT_FILE"], result.cases)
    if result.testsRun == 0:
        print("no test was found", file=sys.stderr)
        return 1
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
