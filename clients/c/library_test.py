"""The shared library as other languages meet it: what it exports, what it needs,
and that it gets on with torch and grpcio in one process, whoever comes first."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

LIBRARY = pathlib.Path("clients/c/libplanewise.so").resolve()
HEADER = pathlib.Path("clients/c/planewise.h")
BUNDLE = pathlib.Path("clients/c/bundle.sh")

# Loads the library at {path}, calls into it, and checks the answer.
USE_LIBRARY = """
import ctypes
library = ctypes.CDLL({path!r})
library.planewise_api_version.restype = ctypes.c_char_p
assert library.planewise_api_version() == b"1.0"
class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("target", ctypes.c_char_p),
                ("token", ctypes.c_char_p), ("client_name", ctypes.c_char_p),
                ("connect_timeout_ms", ctypes.c_int64)]
options = Options(ctypes.sizeof(Options), b"unix:///nowhere/planewise.sock", None, None, 1)
client = ctypes.c_void_p()
library.planewise_client_connect.restype = ctypes.c_void_p
error = library.planewise_client_connect(ctypes.byref(options), ctypes.byref(client))
library.planewise_error_reason.restype = ctypes.c_char_p
assert library.planewise_error_reason(ctypes.c_void_p(error)) == b"UNAVAILABLE"
library.planewise_error_free(ctypes.c_void_p(error))
"""

USE_TORCH = """
import torch
x = torch.ones(8, 8, requires_grad=True)
(x @ x).sum().backward()
assert x.grad[0, 0] == 16
"""

USE_GRPCIO = """
import grpc
channel = grpc.insecure_channel("unix:///nowhere/other.sock")
try:
    channel.unary_unary("/a/b")(b"", timeout=1)
    raise AssertionError("nobody listens there")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.UNAVAILABLE, error
channel.close()
"""


def run_python(source):
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True,
                          timeout=120)


class LibraryTest(unittest.TestCase):
    def test_exports_the_header_and_nothing_else(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True,
                                 capture_output=True, text=True).stdout
        exported = {line.split()[-1] for line in symbols.splitlines()}
        declared = set()
        for line in HEADER.read_text().split("PLANEWISE_EXPORT ")[2:]:
            declared.add("planewise_" + line.split("(")[0].split("planewise_")[-1])
        self.assertGreater(len(declared), 30)
        self.assertEqual(exported, declared)

    def test_loads_beside_torch_and_grpcio_in_any_order(self):
        use_library = USE_LIBRARY.format(path=str(LIBRARY))
        for name, parts in {
            "alone": [use_library],
            "before both": [use_library, USE_TORCH, USE_GRPCIO, use_library],
            "after both": [USE_GRPCIO, USE_TORCH, use_library, USE_TORCH, USE_GRPCIO],
        }.items():
            with self.subTest(name):
                process = run_python("".join(parts))
                self.assertEqual(process.returncode, 0, process.stderr)

    def test_a_bundle_needs_only_the_c_and_cpp_libraries_of_the_system(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([BUNDLE, LIBRARY, folder], check=True, timeout=120)
            bundled = {path.name for path in pathlib.Path(folder).iterdir()}
            self.assertIn("libplanewise.so", bundled)
            for name in bundled:
                listing = subprocess.run(["ldd", pathlib.Path(folder) / name], check=True,
                                         capture_output=True, text=True).stdout
                for line in listing.splitlines():
                    needed = line.split()[0]
                    if "=>" in line and not needed.startswith(SYSTEM):
                        found = pathlib.Path(line.split("=>")[1].split()[0])
                        self.assertEqual(found.parent.resolve(), pathlib.Path(folder).resolve(),
                                         f"{name} takes {needed} from {found}")
            process = run_python(
                USE_LIBRARY.format(path=str(pathlib.Path(folder) / "libplanewise.so"))
                + USE_TORCH + USE_GRPCIO)
            self.assertEqual(process.returncode, 0, process.stderr)


# The C library, and the C++ library that everything in a process must share.
SYSTEM = ("libc.", "libm.", "libdl.", "librt.", "libpthread.", "libresolv.", "libstdc++.",
          "libgcc_s.", "ld-linux", "linux-vdso")

if __name__ == "__main__":
    unittest.main()
