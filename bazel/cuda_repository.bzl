"""Detects the CUDA toolkit: $CUDA_HOME, else /usr/local/cuda, at least 12.9.

Writes @cuda//:config.bzl (CUDA_AVAILABLE, CUDA_HOME) and the library
@cuda//:cudart, which is incompatible with every build where there is no toolkit.
"""

_MINIMUM = (12, 9)

_BUILD = """
cc_library(
    name = "cudart",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/*"]),
    includes = ["include"],
    linkopts = [
        "{home}/lib64/libcudart_static.a",
        "-ldl",
        "-lpthread",
        "-lrt",
    ],
    visibility = ["//visibility:public"],
)
"""

_BUILD_WITHOUT_TOOLKIT = """
cc_library(
    name = "cudart",
    target_compatible_with = ["@planewise//bazel:cuda_toolkit"],
    visibility = ["//visibility:public"],
)
"""

def _version(repository_ctx, nvcc):
    result = repository_ctx.execute([nvcc, "--version"])
    for word in result.stdout.split(" "):
        # "release 13.0, V13.0.88"
        if word.startswith("V") and word.count(".") >= 1:
            parts = word[1:].split(".")
            if parts[0].isdigit() and parts[1].isdigit():
                return (int(parts[0]), int(parts[1]))
    return None

def _cuda_repository_impl(repository_ctx):
    home = repository_ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    nvcc = repository_ctx.path(home + "/bin/nvcc")
    available = False
    if nvcc.exists:
        version = _version(repository_ctx, nvcc)
        available = version != None and version >= _MINIMUM
    if available:
        repository_ctx.symlink(home + "/include", "include")
        repository_ctx.file("BUILD", _BUILD.format(home = home))
    else:
        repository_ctx.file("BUILD", _BUILD_WITHOUT_TOOLKIT)
    repository_ctx.file("config.bzl", "CUDA_AVAILABLE = {}\nCUDA_HOME = \"{}\"\n".format(
        available,
        home if available else "",
    ))

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
