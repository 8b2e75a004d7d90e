"""The repository's own files and BUILD targets, for the tests of house rules.

A test here looks at the tree it is part of, not at declared inputs, so its targets
are `local` and `external`: they run every time, in the work tree.
"""

import ast
import dataclasses
import functools
import pathlib
import re
import subprocess


def root():
    """The work tree: runfiles are links into it."""
    return pathlib.Path(__file__).resolve().parents[2]


@functools.lru_cache(maxsize=None)
def files():
    """Paths from the root, of everything that git tracks or would track."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"]
        + ["--cached", "--others", "--exclude-standard"],
        cwd=root(),
        check=True,
        capture_output=True,
    ).stdout.decode()
    return [path for path in sorted(set(listing.split("\0"))) if path and (root() / path).is_file()]


@functools.lru_cache(maxsize=None)
def text(path):
    return (root() / path).read_text(encoding="utf-8")


def sources(*suffixes):
    return [path for path in files() if path.endswith(suffixes)]


def without_comments_and_strings(code):
    """C++ with comments, string and character literals blanked, lines kept."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"'
        r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
        re.DOTALL,
    )
    return token.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), code)


def line_of(code, offset):
    return code.count("\n", 0, offset) + 1


@dataclasses.dataclass(frozen=True)
class Target:
    package: str
    rule: str
    name: str
    testonly: bool
    sources: tuple  # srcs, hdrs and cuda_hdrs, from the root
    deps: tuple  # absolute labels

    def label(self):
        return f"//{self.package}:{self.name}"


def _strings(node):
    constants = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return [value for value in constants if isinstance(value, str)]


def _absolute(label, package):
    if label.startswith(":"):
        return f"//{package}{label}"
    if label.startswith("//") and ":" not in label:
        return f"{label}:{label.rsplit('/', 1)[-1]}"
    return label


@functools.lru_cache(maxsize=None)
def targets():
    """Every rule and macro call of every BUILD file; they are Python by syntax."""
    found = []
    for path in files():
        if pathlib.PurePath(path).name != "BUILD":
            continue
        package = str(pathlib.PurePath(path).parent)
        package = "" if package == "." else package
        calls = [
            statement.value
            for statement in ast.parse(text(path)).body
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        ]
        testonly_package = any(
            call.func.id == "package" and any(k.arg == "default_testonly" for k in call.keywords)
            for call in calls
        )
        for call in calls:
            arguments = {k.arg: k.value for k in call.keywords}
            if "name" not in arguments:
                continue
            listed = [
                source
                for key in ("srcs", "hdrs", "cuda_hdrs")
                if key in arguments
                for source in _strings(arguments[key])
            ]
            if call.func.id == "pw_cc_test" and "srcs" not in arguments:
                listed.append(arguments["name"].value + ".cc")
            dependencies = _strings(arguments["deps"]) if "deps" in arguments else []
            found.append(
                Target(
                    package=package,
                    rule=call.func.id,
                    name=arguments["name"].value,
                    testonly=testonly_package
                    or "testonly" in arguments
                    or call.func.id.endswith("_test"),
                    sources=tuple(
                        f"{package}/{source}"
                        for source in listed
                        if not source.startswith((":", "//"))
                    ),
                    deps=tuple(_absolute(label, package) for label in dependencies),
                )
            )
    return found
