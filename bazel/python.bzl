"""Python tests, run by Debian's python3, which sees its torch and numpy."""

def pw_python_test(name, srcs, data = [], imports = [], size = "small", **kwargs):
    """A unittest test that reports its cases to Bazel one by one.

    It runs in the repository's runfiles, so that paths of `data` are those of
    the repository, with the repository and `imports` on the module path.

    Args:
      name: the target.
      srcs: files that hold unittest.TestCase classes.
      data: modules and files that the tests need.
      imports: folders, relative to the repository, that are added to the module path.
      size: as of every test.
      **kwargs: passed to the sh_test.
    """
    native.sh_test(
        name = name,
        srcs = ["//bazel:python_test.sh"],
        args = ["--import=" + i for i in imports] + ["$(rootpath {})".format(s) for s in srcs],
        data = srcs + data + ["//bazel:python_test_runner.py"],
        size = size,
        **kwargs
    )
