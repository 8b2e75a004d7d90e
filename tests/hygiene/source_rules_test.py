"""The rules of STYLE.md that a program can check. Each test names its rule."""

import pathlib
import re
import unittest

import python_versions
import source_tree

# Folders of product code, where every rule holds.
PRODUCT = ("clients/", "core/", "planner/", "proto/", "service/")
OURS = PRODUCT + ("bazel/", "tests/")

LINES_MAX = 600
TEST_LINES_MAX = 900
COLUMNS_MAX = 100

THIS_FILE = "tests/hygiene/source_rules_test.py"

# What C programs include.
C_HEADER = "clients/c/planewise.h"

# Unit tests that are named after a property, and the file that has it.
TESTS_OF_A_PROPERTY = {
    "clients/c/c_api_test.cc": C_HEADER,
    "clients/cpp/session_client_fault_test.cc": "clients/cpp/session_client.h",
    "core/checkpoint/model_store_damage_test.cc": "core/checkpoint/model_store.h",
    "core/gemm/row_invariance_test.cc": "core/gemm/cpu_gemm.cc",
    "core/layer/linear_reference_test.cc": "core/layer/linear.h",
    "proto/status/reason_table_test.cc": "proto/README.md",
}

# Files that need each other: the stem of one, and of the target that has both.
PAIRS = {"service/server_settings": "server_options"}


def stem(path):
    return pathlib.PurePath(path).stem


def is_highway_header(path):
    """Included once for each instruction set: has a guard of Highway's kind."""
    return path.endswith("-inl.h")


def is_test(path):
    """A test, or a double that only tests link."""
    return path.startswith("tests/") or stem(path).endswith(("_test", "_conformance"))


class SourceRulesTest(unittest.TestCase):
    def check(self, violations):
        violations = list(violations)
        self.assertFalse(violations, "\n" + "\n".join(violations))

    def product(self, *suffixes):
        found = [p for p in source_tree.sources(*suffixes) if p.startswith(PRODUCT)]
        self.assertGreater(len(found), 20, "the test looks at the wrong tree")
        return found

    def ours(self, *suffixes):
        return [p for p in source_tree.sources(*suffixes) if p.startswith(OURS)]

    def matches(self, paths, pattern, why):
        """Where `pattern` occurs in code, comments and strings left out."""
        for path in paths:
            code = source_tree.without_comments_and_strings(source_tree.text(path))
            for match in re.finditer(pattern, code):
                line = source_tree.line_of(code, match.start())
                yield f"{path}:{line}: {match.group().strip()}: {why}"

    def test_rules_look_at_code_only(self):
        code = """// throw in a comment
            const char* text = "throw \\" throw"; char quote = '"'; throw 1; /* throw
            throw */ int million = 1'000'000; throw 2; R"(throw)";"""
        blanked = source_tree.without_comments_and_strings(code)
        self.assertEqual(re.findall(r"throw \d", blanked), ["throw 1", "throw 2"])
        self.assertEqual(len(re.findall("throw", blanked)), 2)
        self.assertEqual(blanked.count("\n"), code.count("\n"))

    # F1: file, target and test share the stem.

    def test_f1_every_file_has_a_target_of_its_stem(self):
        names = {(t.package, t.name): t for t in source_tree.targets()}
        listed = {s for t in source_tree.targets() for s in t.sources}

        def violations():
            for path in self.product(".h", ".cc", ".cu"):
                package = self.package_of(path)
                # A program is named as users call it.
                free = stem(path).endswith("_main") or is_highway_header(path) or path == C_HEADER
                if path not in listed:
                    yield f"{path}: no target of //{package} lists it"
                    continue
                name = PAIRS.get(f"{package}/{stem(path)}", stem(path))
                if not free and (package, name) not in names:
                    yield f"{path}: //{package} has no target {name}"

        self.check(violations())

    def package_of(self, path):
        packages = {t.package for t in source_tree.targets()}
        folder = str(pathlib.PurePath(path).parent)
        while folder not in packages and "/" in folder:
            folder = folder.rsplit("/", 1)[0]
        return folder

    def test_f1_a_unit_test_lies_beside_what_it_tests(self):
        everything = set(source_tree.files())

        def violations():
            for path in self.product("_test.cc"):
                if TESTS_OF_A_PROPERTY.get(path) in everything:
                    continue
                tested = path[: -len("_test.cc")]
                if not {tested + ".h", tested + ".cc", tested + "_main.cc"} & everything:
                    yield (
                        f"{path}: no {stem(tested)}.h beside it; a test across files goes under "
                        "tests/"
                    )

        self.check(violations())

    # F2: a file reads in one sitting.

    def test_f2_no_file_is_too_long(self):
        def violations():
            for path in self.ours(".h", ".cc", ".cu", ".cuh", ".py", ".bzl"):
                lines_max = TEST_LINES_MAX if is_test(path) else LINES_MAX
                lines = source_tree.text(path).count("\n")
                if lines > lines_max:
                    yield f"{path}: {lines} lines; at most {lines_max}"

        self.check(violations())

    # F3: names say what is inside.

    def test_f3_no_name_that_says_nothing(self):
        banned = set("util utils helper helpers common misc manager base_class stuff".split())

        def violations():
            for path in source_tree.files():
                for part in pathlib.PurePath(path).parts:
                    words = set(re.split(r"[_.\-]", part))
                    if words & banned:
                        yield f"{path}: {sorted(words & banned)[0]!r} names no concept"

        self.check(violations())

    def test_f3_suffixes(self):
        def violations():
            for path in self.ours(".cuh"):
                if not stem(path).endswith("_kernel"):
                    yield f"{path}: device code is named *_kernel.cuh"
            for path in self.ours(".cc"):
                code = source_tree.without_comments_and_strings(source_tree.text(path))
                has_main = re.search(r"^int main\(", code, re.MULTILINE)
                if has_main and not stem(path).endswith(("_main", "_bench")):
                    yield f"{path}: has a main(); such files are named *_main.cc or *_bench.cc"

        self.check(violations())

    # F7: lines fit beside a second file.

    def test_f7_lines_have_at_most_100_columns(self):
        suffixes = (".h", ".cc", ".c", ".cu", ".cuh", ".py", ".bzl", ".proto", ".sh", "BUILD")

        def violations():
            for path in source_tree.files():
                if not path.endswith(suffixes) and not path.startswith((".ci/", "tools/")):
                    continue
                for number, line in enumerate(source_tree.text(path).split("\n"), start=1):
                    # clang-format puts the sign that a macro goes on behind the last column.
                    columns = len(line.removesuffix("\\").rstrip())
                    if columns > COLUMNS_MAX:
                        yield f"{path}:{number}: {columns} columns; at most {COLUMNS_MAX}"

        self.check(violations())

    # C1: every header opens with its idea.

    def test_c1_headers_open_with_their_idea(self):
        def violations():
            for path in self.ours(".h", ".cuh"):
                if is_highway_header(path):
                    continue
                lines = source_tree.text(path).split("\n")
                guard = "PLANEWISE_" + re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
                if lines[:2] != [f"#ifndef {guard}", f"#define {guard}"]:
                    yield f"{path}: must open with the guard {guard}"
                elif not lines[2].startswith(("// ", "/* ")):
                    yield f"{path}: the guard must be followed by what the file is about"

        self.check(violations())

    def test_c1_a_source_includes_its_own_header_first(self):
        # That is what shows that the header stands alone (bazel/cc.bzl).
        everything = set(source_tree.files())

        def violations():
            for path in self.product(".cc"):
                header = path[: -len(".cc")] + ".h"
                if header not in everything:
                    continue
                include = re.compile(r'^#include ["<]([^">]+)[">]', re.MULTILINE)
                first = include.search(source_tree.text(path))
                if first is None or first.group(1) != header:
                    yield f"{path}: the first include must be {header}"

        self.check(violations())

    # E1: errors are statuses.

    def test_e1_no_exceptions_of_ours(self):
        paths = self.ours(".h", ".cc", ".cu", ".cuh")
        self.check(self.matches(paths, r"\bthrow\b", "return a Status"))

    def test_e1_cuda_results_become_statuses_in_one_place(self):
        everything = self.ours(".h", ".cc", ".cu", ".cuh")
        paths = [p for p in everything if not p.startswith("core/device/")]
        pattern = r"\bcuda(?:Get|Peek)(?:AtLast|Last)?Error\w*"
        self.check(self.matches(paths, pattern, "use core/device/cuda_status.h"))

    # K2: who may see CUDA.

    def test_k2_cuda_headers_stay_where_they_belong(self):
        allowed = re.compile(r"(^|/)cuda/|^core/device/|^core/gemm/cublaslt/|^tests/gpu/")
        include = re.compile(r"#include <((?:cuda|cublas|nv)[^>]*)>")
        self.check(
            f"{path}: includes {match.group(1)}"
            for path in self.ours(".h", ".cc")
            if not allowed.search(path)
            for match in include.finditer(source_tree.text(path))
        )

    # T5 and D3: time, randomness and ports are passed in.

    def test_t5_tests_do_not_sleep_or_look_at_the_clock(self):
        pattern = (
            r"\bsleep_(?:for|until)\b|\bSleepFor\b|\busleep\b|\bnanosleep\b|\bsystem_clock\b"
            r"|\babsl::Now\b|\bgettimeofday\b|\bstd::time\b|\brandom_device\b"
        )
        # A benchmark measures time: that is what it is for.
        tests = [p for p in self.ours(".h", ".cc") if is_test(p)]
        paths = [p for p in tests if not p.startswith("tests/bench/")]
        self.assertGreater(len(paths), 10)
        # The seed of a random test has to come from somewhere, once.
        paths.remove("tests/testing/seed.cc")
        self.check(self.matches(paths, pattern, "a test steps its own clock and prints its seed"))
        self.check(
            f"{path}: time.sleep: wait for the event instead"
            for path in self.ours("_test.py")
            if path != THIS_FILE and "time.sleep" in source_tree.text(path)
        )

    def test_t5_no_fixed_ports(self):
        port = re.compile(
            r"""(?:AddListeningPort|bind|connect)\(+["'][^"'\n]*["']?(?::|,\s*)[1-9]\d*"""
        )

        def violations():
            for path in self.ours(".h", ".cc", ".py"):
                if not is_test(path) and not path.endswith("_test.py"):
                    continue
                for match in port.finditer(source_tree.text(path)):
                    yield f"{path}: {match.group()}: take port 0 and ask which it became"

        self.check(violations())

    def test_d3_product_code_asks_no_clock_but_ours(self):
        pattern = (
            r"\babsl::Now\b|\bsystem_clock\b|\bsteady_clock\b|\bsleep_(?:for|until)\b"
            r"|\brandom_device\b|\bstd::rand\b"
        )
        # gRPC takes the deadline of a shutdown in terms of the system's clock.
        allowed = {"core/base/clock.cc", "service/server.cc"}
        logic = ("core/", "planner/", "service/")
        paths = [
            p
            for p in self.product(".h", ".cc")
            if p.startswith(logic) and not is_test(p) and p not in allowed
        ]
        self.check(self.matches(paths, pattern, "pass a Clock or a generator in"))

    # The Python client runs on every Python that its package names.

    def test_python_sources_need_no_newer_python_than_the_package_names(self):
        project = source_tree.text("clients/python/pyproject.toml")
        oldest = re.search(r'^requires-python = ">=(\d+)\.(\d+)"$', project, re.MULTILINE)
        self.assertIsNotNone(oldest)
        version = tuple(int(part) for part in oldest.groups())
        paths = [p for p in source_tree.sources(".py") if p.startswith("clients/")]
        self.assertGreater(len(paths), 20)
        self.check(
            f"{path}:{line}: {what}: Python {version[0]}.{version[1]} does not have it"
            for path in paths
            for line, what in python_versions.newer_than(version, source_tree.text(path))
        )

    def test_python_sources_are_judged_by_version(self):
        newer = {
            "match x:\n    case 1: pass": (3, 10),
            "try: pass\nexcept* OSError: pass": (3, 11),
            "def f(x: int | None): pass": (3, 10),
            "def f() -> list[int | str]: pass": (3, 10),
            "class A:\n    x: int | str = 1": (3, 10),
            "isinstance(x, int | str)": (3, 10),
            "Number = int | None": (3, 10),
            "list(zip(a, b, strict=True))": (3, 10),
            "@dataclasses.dataclass(slots=True)\nclass A: pass": (3, 10),
            "from itertools import pairwise": (3, 10),
            "import tomllib": (3, 11),
            "n.bit_count()": (3, 10),
        }
        for code, first in newer.items():
            with self.subTest(code):
                self.assertEqual(len(python_versions.newer_than((3, 9), code)), 1)
                self.assertEqual(python_versions.newer_than(first, code), [])
        for code in (
            "from __future__ import annotations\ndef f(x: int | None): pass",
            "flags = os.O_RDONLY | os.O_CLOEXEC",
            "x = {**a} | b",
            "def f(x, /, y: list[int]): return (z := x)",
        ):
            with self.subTest(code):
                self.assertEqual(python_versions.newer_than((3, 9), code), [])

    # What no file of a published tree should say.

    def test_nothing_is_unfinished(self):
        words = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK|not implemented y" r"et)\b")
        self.check(
            f"{path}:{source_tree.line_of(source_tree.text(path), match.start())}: {match.group()}"
            for path in self.ours(".h", ".cc", ".cu", ".cuh", ".py", ".bzl", ".proto", ".sh", ".md")
            for match in words.finditer(source_tree.text(path))
        )

    def test_no_path_of_one_machine(self):
        # Tests name folders of a file system in memory as they like, hidden ones apart.
        folders = re.compile(
            r"(?<![\w.$}])/(?:ho" r"me/|wo" r"rk/|m" r"nt/|ro" r"ot/\.(?=\w))[\w.]+"
        )
        self.check(
            f"{path}:{source_tree.line_of(source_tree.text(path), match.start())}: {match.group()}"
            for path in source_tree.files()
            if not path.endswith((".safetensors", ".png", ".bin")) and "/corpus/" not in path
            for match in folders.finditer(source_tree.text(path))
        )

    # B2: what is built is listed.

    def test_b2_sources_are_not_globbed(self):
        self.check(
            f"{path}: glob of sources: list them"
            for path in source_tree.files()
            if pathlib.PurePath(path).name == "BUILD"
            and re.search(r"glob\([^)]*\.(?:cc|h|cu|cuh)\b", source_tree.text(path))
        )


if __name__ == "__main__":
    unittest.main()
