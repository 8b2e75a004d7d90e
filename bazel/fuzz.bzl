"""Fuzz targets. Each is also an ordinary test that replays its corpus."""

load("//bazel:cc.bzl", "COPTS")

def pw_cc_fuzz_test(name, srcs, deps = [], corpus = [], tags = [], **kwargs):
    """A target around LLVMFuzzerTestOneInput, named *_fuzz.

    As a test it runs once over every file of the corpus and over the empty
    input. Under --config=fuzz it is linked with libFuzzer instead and takes
    libFuzzer's flags: bazel-bin/tests/fuzz/NAME -max_total_time=60 CORPUS_FOLDER

    Args:
      name: NAME.cc is not implied: a corpus may be shared by several targets.
      srcs: sources, one of which defines LLVMFuzzerTestOneInput.
      deps: libraries.
      corpus: seed files.
      tags: added to `fuzz`.
      **kwargs: passed to the cc_test.
    """
    native.cc_test(
        name = name,
        srcs = srcs,
        copts = COPTS,
        args = ["$(rootpaths {})".format(c) for c in corpus],
        data = corpus,
        linkopts = select({
            "//bazel:fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        linkstatic = True,
        size = "small",
        tags = ["fuzz"] + tags,
        deps = deps + select({
            "//bazel:fuzzing": [],
            "//conditions:default": ["//bazel:fuzz_replay_main"],
        }),
        **kwargs
    )
