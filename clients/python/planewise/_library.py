"""The C library through ctypes: finds it, loads it, declares its functions.

Not here: what the functions mean (clients/c/planewise.h).
"""

import ctypes
import os
import pathlib
import types
from ctypes import POINTER, c_char, c_char_p, c_int32, c_int64, c_size_t, c_uint64, c_void_p

NAME = "libplanewise.so"


class ClientOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("target", c_char_p),
        ("token", c_char_p),
        ("client_name", c_char_p),
        ("connect_timeout_ms", c_int64),
    ]


class TensorHeader(ctypes.Structure):
    _fields_ = [
        ("weight", c_char_p),
        ("version", c_uint64),
        ("plane", c_int32),
        ("part", c_int32),
        ("data_type", c_int32),
        ("shape", POINTER(c_int64)),
        ("rank", c_size_t),
        ("size_bytes", c_int64),
    ]


class SessionOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("allow_nondeterministic", c_int32)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("size_bytes", c_int64),
        ("data_type", c_int32),
        ("shape", POINTER(c_int64)),
        ("rank", c_size_t),
    ]


class Buffer(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size_bytes", c_int64)]


class ForwardRequest(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("model", c_char_p),
        ("layer", c_char_p),
        ("step", c_uint64),
        ("input", Tensor),
        ("output", Buffer),
        ("save_for_backward", c_int32),
        ("weight_gradient", c_int32),
        ("backward_override", c_int32),
        ("save_original_input", c_int32),
        ("non_finite_policy", c_int32),
    ]


class ForwardResult(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("handle", c_uint64),
        ("version", c_uint64),
        ("saved_bytes", c_int64),
        ("save_original_input", c_int32),
        ("gemm_path", c_char * 32),
        ("save_original_input_why", c_char * 256),
    ]


class BackwardRequest(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("handle", c_uint64),
        ("model", c_char_p),
        ("layer", c_char_p),
        ("version", c_uint64),
        ("step", c_uint64),
        ("backward_override", c_int32),
        ("input", Tensor),
        ("output_gradient", Tensor),
        ("want_input_gradient", c_int32),
        ("want_weight_gradient", c_int32),
        ("want_bias_gradient", c_int32),
        ("input_gradient", Buffer),
        ("weight_gradient", Buffer),
        ("bias_gradient", Buffer),
        ("non_finite_policy", c_int32),
    ]


class BackwardResult(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("version", c_uint64),
        ("backward_override", c_int32),
        ("dgrad_path", c_char * 32),
        ("wgrad_path", c_char * 32),
    ]


ProgressCallback = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p)
PlaceCallback = ctypes.CFUNCTYPE(c_void_p, c_void_p, POINTER(TensorHeader))

# name: (result, arguments). Errors and opaque objects are c_void_p.
_FUNCTIONS = {
    "planewise_api_version": (c_char_p, []),
    "planewise_default_target": (c_char_p, []),
    "planewise_string_free": (None, [c_void_p]),
    "planewise_error_code": (c_int32, [c_void_p]),
    "planewise_error_code_name": (c_char_p, [c_void_p]),
    "planewise_error_reason": (c_char_p, [c_void_p]),
    "planewise_error_message": (c_char_p, [c_void_p]),
    "planewise_error_retry": (c_char_p, [c_void_p]),
    "planewise_error_details": (c_char_p, [c_void_p]),
    "planewise_error_free": (None, [c_void_p]),
    "planewise_client_connect": (c_void_p, [POINTER(ClientOptions), POINTER(c_void_p)]),
    "planewise_client_target": (c_char_p, [c_void_p]),
    "planewise_client_warning": (c_char_p, [c_void_p]),
    "planewise_client_free": (None, [c_void_p]),
    "planewise_client_call": (
        c_void_p,
        [c_void_p, c_char_p, c_char_p, c_int64, ProgressCallback, c_void_p, POINTER(c_void_p)],
    ),
    "planewise_client_read_weights": (c_void_p, [c_void_p, c_char_p, PlaceCallback, c_void_p]),
    "planewise_session_open": (c_void_p, [c_void_p, POINTER(SessionOptions), POINTER(c_void_p)]),
    "planewise_session_close": (None, [c_void_p]),
    "planewise_session_free": (None, [c_void_p]),
    "planewise_forward": (c_void_p, [c_void_p, POINTER(ForwardRequest), POINTER(ForwardResult)]),
    "planewise_backward": (
        c_void_p,
        [c_void_p, POINTER(BackwardRequest), POINTER(BackwardResult)],
    ),
    "planewise_forward_start": (
        c_void_p,
        [c_void_p, POINTER(ForwardRequest), POINTER(c_void_p)],
    ),
    "planewise_backward_start": (
        c_void_p,
        [c_void_p, POINTER(BackwardRequest), POINTER(c_void_p)],
    ),
    "planewise_end_step": (c_void_p, [c_void_p, c_uint64]),
    "planewise_end_step_start": (c_void_p, [c_void_p, c_uint64, POINTER(c_void_p)]),
    "planewise_release_start": (
        c_void_p,
        [c_void_p, POINTER(c_uint64), c_size_t, POINTER(c_void_p)],
    ),
    "planewise_operation_wait": (c_void_p, [c_void_p, c_int64, POINTER(c_int32)]),
    "planewise_operation_forward_result": (c_void_p, [c_void_p, POINTER(ForwardResult)]),
    "planewise_operation_backward_result": (c_void_p, [c_void_p, POINTER(BackwardResult)]),
    "planewise_operation_free": (None, [c_void_p]),
}


def _candidates():
    """Where the library may be, best first."""
    named = os.environ.get("PLANEWISE_LIBRARY")
    if named:
        yield pathlib.Path(named)
        return
    here = pathlib.Path(__file__).resolve().parent
    yield here / NAME
    yield here / "lib" / NAME
    # A source tree: clients/python/planewise below its root.
    yield here.parents[2] / "bazel-bin" / "clients" / "c" / NAME


def _load():
    tried = []
    for path in _candidates():
        if path.exists():
            library = ctypes.CDLL(str(path))
            break
        tried.append(str(path))
    else:
        raise ImportError(
            f"{NAME} was not found in {', '.join(tried)}: build it with "
            "`bazel build //clients/c:libplanewise.so`, or name it in PLANEWISE_LIBRARY"
        )
    # Not the CDLL itself: that would make up a type for a function that is not declared, and
    # cut the pointer that it returns to an int.
    declared = types.SimpleNamespace()
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
        setattr(declared, name, function)
    return declared


library = _load()
