"""C++ rules with the project's warnings. Every BUILD file uses these."""

# Our code builds without warnings. System headers are exempt by nature.
COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]

def pw_cc_library(name, srcs = [], hdrs = [], copts = [], **kwargs):
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = COPTS + copts,
        linkstatic = True,
        **kwargs
    )

def pw_cc_binary(name, copts = [], **kwargs):
    native.cc_binary(name = name, copts = COPTS + copts, **kwargs)

def pw_cc_test(name, srcs = None, deps = [], copts = [], size = "small", **kwargs):
    """A GoogleTest test; its source is NAME.cc unless srcs says otherwise."""
    native.cc_test(
        name = name,
        srcs = srcs or [name + ".cc"],
        copts = COPTS + copts,
        linkstatic = True,
        size = size,
        deps = deps + [
            "@system//:abseil",
            "@system//:gtest_main",
        ],
        **kwargs
    )
