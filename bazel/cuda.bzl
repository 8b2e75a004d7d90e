"""Device code, compiled by nvcc.

Without the toolkit every target made here, and whatever depends on one, is
incompatible: `bazel build //...` skips it and the rest builds CPU-only.
"""

load("@cuda//:config.bzl", "CUDA_AVAILABLE", "CUDA_HOME")
load("//bazel:cc.bzl", "pw_cc_library")

# Machine code for these chips and no PTX: a kernel either runs as it was built
# and tested, or the device is refused by name.
_ARCHITECTURES = ["90a", "100a"]

# No --use_fast_math: it flushes subnormals, which are ordinary values here
# (a scale of 2^-127 is one). Relaxed constexpr lets device code use the number
# formats of core/numeric as they are.
_FLAGS = [
    "--expt-relaxed-constexpr",
    "-std=c++20",
    "-O3",
    "-ccbin=/usr/bin/g++",
    "-Xcompiler=-fPIC,-Wall,-Wextra,-Werror",
    "--Werror=all-warnings",
] + ["-gencode=arch=compute_{0},code=sm_{0}".format(a) for a in _ARCHITECTURES]

def if_cuda(with_toolkit, without = []):
    """One of two lists, depending on whether the CUDA toolkit was found."""
    return with_toolkit if CUDA_AVAILABLE else without

# For the targets that need the toolkit without being device code.
NEEDS_CUDA_TOOLKIT = if_cuda([], ["//bazel:cuda_toolkit"])

def _cuda_objects_impl(ctx):
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    headers = depset(ctx.files.hdrs, transitive = [c.headers for c in contexts])
    includes = ["-I."] + ["-D" + d for c in contexts for d in c.defines.to_list()]
    for context in contexts:
        for folder in context.quote_includes.to_list() + context.includes.to_list():
            includes.append("-I" + folder)
        for folder in context.system_includes.to_list():
            includes.append("-isystem=" + folder)
    objects = []
    for source in ctx.files.srcs:
        stem = source.basename[:-len(source.extension) - 1]
        output = ctx.actions.declare_file(ctx.label.name + "/" + stem + ".o")
        ctx.actions.run(
            executable = CUDA_HOME + "/bin/nvcc",
            arguments = _FLAGS + includes + ["-c", source.path, "-o", output.path],
            inputs = depset([source], transitive = [headers]),
            outputs = [output],
            env = {"PATH": "/usr/bin:/bin"},
            mnemonic = "CudaCompile",
            progress_message = "Compiling device code " + source.short_path,
        )
        objects.append(output)
    return [DefaultInfo(files = depset(objects))]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
    },
)

def pw_cuda_library(name, srcs, hdrs = [], cuda_hdrs = [], deps = [], **kwargs):
    """A library of device code with host entry points.

    Args:
      name: the library.
      srcs: .cu files: instantiation and launch.
      hdrs: .h files that host code includes.
      cuda_hdrs: .cuh files that only srcs include.
      deps: libraries; host code's launch functions need no CUDA header.
      **kwargs: passed to the cc_library.
    """
    all_deps = deps + ["@cuda//:cudart"]
    objects = []
    if CUDA_AVAILABLE:
        _cuda_objects(
            name = name + "_objects",
            srcs = srcs,
            hdrs = hdrs + cuda_hdrs,
            deps = all_deps,
            visibility = ["//visibility:private"],
        )
        objects = [":" + name + "_objects"]
    pw_cc_library(
        name = name,
        srcs = objects,
        hdrs = hdrs,
        deps = all_deps,
        target_compatible_with = NEEDS_CUDA_TOOLKIT,
        **kwargs
    )
