"""Detects the CUDA toolkit: $CUDA_HOME, else /usr/local/cuda, at least 12.9.

Writes @cuda//:config.bzl with CUDA_AVAILABLE and CUDA_HOME.
"""

_MINIMUM = (12, 9)

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
    repository_ctx.file("BUILD", "")
    repository_ctx.file("config.bzl", "CUDA_AVAILABLE = {}\nCUDA_HOME = \"{}\"\n".format(
        available,
        home if available else "",
    ))

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
