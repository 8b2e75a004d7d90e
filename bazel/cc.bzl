"""C++ rules with the project's warnings. Every BUILD file uses these."""

# Our code builds without warnings. System headers are exempt by nature.
COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]

def pw_cc_library(name, srcs = [], hdrs = [], copts = [], testonly = None, **kwargs):
    """A library; one a stem."""
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = COPTS + copts,
        linkstatic = True,
        testonly = testonly,
        **kwargs
    )
    for header in hdrs:
        stem = header[:-len(".h")]
        if header.endswith(".h") and stem + ".cc" not in srcs:
            _one_include(name, stem, testonly)

def _one_include(library, stem, testonly):
    """A target that includes one header and nothing else.

    Shows that the header stands alone. A header with a .cc beside it needs
    none: its .cc includes it first. `manual`: only CI builds these.
    """
    target = stem.replace("/", "_") + "_alone"
    native.genrule(
        name = target + "_source",
        outs = [target + ".cc"],
        cmd = "echo '#include \"{}/{}.h\"' >$@".format(native.package_name(), stem),
        tags = ["manual"],
        testonly = testonly,
    )
    native.cc_library(
        name = target,
        srcs = [target + ".cc"],
        copts = COPTS,
        tags = [
            "manual",
            "one_include",
        ],
        testonly = testonly,
        deps = [":" + library],
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
