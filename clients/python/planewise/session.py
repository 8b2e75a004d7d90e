"""A session: forward and backward on memory of the caller, and steps.

Not here: torch (remote_linear.py). Tensors are (pointer, bytes, DataType, shape).
"""

import contextlib
import ctypes
import itertools
import threading
from dataclasses import dataclass

from planewise._choices import one_of
from planewise._library import (
    BackwardRequest,
    BackwardResult,
    Buffer,
    ForwardRequest,
    ForwardResult,
    SessionOptions,
    Tensor,
    library,
)
from planewise._native import Native
from planewise.errors import PlanewiseError, check

_OVERRIDES = {None: 0, "none": 1, "high_precision": 2, "dequantized": 3}
_OVERRIDE_NAMES = {number: name for name, number in _OVERRIDES.items() if name}
_NON_FINITE = {None: 0, "format": 1, "reject": 2}

# While it waits, Python looks this often whether a signal came.
_SIGNALS_MS = 100


@dataclass
class Memory:
    """A dense row-major tensor somewhere in this process."""

    pointer: int
    size_bytes: int
    data_type: int
    shape: tuple

    def as_tensor(self):
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        return Tensor(self.pointer, self.size_bytes, int(self.data_type), shape, len(self.shape))

    def as_buffer(self):
        return Buffer(self.pointer, self.size_bytes)


@dataclass
class Forward:
    """What a forward did besides its output."""

    handle: "Handle"  # None: nothing was saved
    version: int
    saved_bytes: int
    gemm_path: str
    save_original_input: bool
    save_original_input_why: str


@dataclass
class Backward:
    version: int
    backward_override: str
    dgrad_path: str
    wgrad_path: str


class Handle:
    """A saved operand of the daemon. Released when it is dropped without a backward.

    That is what keeps the daemon's memory flat when a graph dies before its backward: after an
    exception, or a forward whose loss is thrown away.
    """

    def __init__(self, session, number):
        self._session = session
        self.number = number

    def consumed(self):
        """A backward succeeded: the daemon has dropped the operand."""
        self._session = None

    def __del__(self):
        if self._session is not None:
            self._session._release(self.number)


class Session:
    """One client's context with the daemon. Thread-safe; a context manager.

    Made by Client.session(), and ended by close(), with its client, or when it is dropped. Copies
    of modules share it (copy.deepcopy gives the same session); it cannot be pickled. Ctrl-C in a
    call ends the session, too: the call would go on to use the tensors' memory.

    A step is the unit of consistency: its first forward pins the newest version of the model, and
    every later call of the step uses it.

        with session.step():
            loss = model(x).sum()
            loss.backward()
    """

    def __init__(self, client_native, deterministic=True):
        options = SessionOptions(
            struct_size=ctypes.sizeof(SessionOptions),
            allow_nondeterministic=0 if deterministic else 1,
        )
        pointer = ctypes.c_void_p()
        self._native = None
        check(
            library.planewise_session_open(
                client_native.pointer(), ctypes.byref(options), ctypes.byref(pointer)
            )
        )
        self._native = Native("session", pointer, library.planewise_session_free)
        self._steps = itertools.count(1)
        self._step = next(self._steps)
        self._stepping = threading.Lock()

    @property
    def current_step(self):
        return self._step

    @property
    def closed(self):
        return self._native is None

    def close(self):
        """Ends the session; the daemon releases what it saved. Idempotent.

        A call in another thread fails with CancelledError.
        """
        native, self._native = self._native, None
        if native is not None and native.usable():
            library.planewise_session_close(native.pointer())

    def __copy__(self):
        return self

    def __deepcopy__(self, _):
        return self

    def __reduce__(self):
        raise TypeError(
            "a planewise.Session is a connection and cannot be pickled: save the state_dict() of "
            "the model, and attach() again where it is loaded"
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def end_step(self):
        """Ends the current step and begins the next: later forwards see the newest version."""
        native = self._open()
        with self._stepping:
            step, self._step = self._step, next(self._steps)
        self._run(native, library.planewise_end_step_start, library.planewise_end_step, step)

    @contextlib.contextmanager
    def step(self):
        """A step around forward and backward; ended also after an exception."""
        try:
            yield self._step
        except BaseException:
            # The step may not end for the same reason; that is not the one to report.
            with contextlib.suppress(PlanewiseError, ValueError):
                self.end_step()
            raise
        self.end_step()

    def forward(
        self,
        model,
        layer,
        x,
        y,
        save_for_backward=False,
        weight_gradient=False,
        backward_override=None,
        save_original_input=False,
        non_finite_policy=None,
    ):
        """Y = X * W^T + bias. x: Memory [..., in]; y: Memory [..., out] of the same type."""
        native = self._open()
        request = ForwardRequest(
            struct_size=ctypes.sizeof(ForwardRequest),
            model=model.encode(),
            layer=layer.encode(),
            step=self._step,
            input=x.as_tensor(),
            output=y.as_buffer(),
            save_for_backward=int(save_for_backward),
            weight_gradient=int(weight_gradient),
            backward_override=_OVERRIDES[
                one_of("backward_override", backward_override, _OVERRIDES)
            ],
            save_original_input=int(save_original_input),
            non_finite_policy=_NON_FINITE[
                one_of("non_finite_policy", non_finite_policy, _NON_FINITE)
            ],
        )
        result = ForwardResult(struct_size=ctypes.sizeof(ForwardResult))
        self._run(
            native,
            library.planewise_forward_start,
            library.planewise_forward,
            ctypes.byref(request),
            ctypes.byref(result),
            library.planewise_operation_forward_result,
        )
        return Forward(
            handle=Handle(self, result.handle) if result.handle else None,
            version=result.version,
            saved_bytes=result.saved_bytes,
            gemm_path=result.gemm_path.decode(),
            save_original_input=bool(result.save_original_input),
            save_original_input_why=result.save_original_input_why.decode(),
        )

    def backward(self, handle, dy, dx=None, dw=None, db=None, non_finite_policy=None):
        """dX = dY * W, dW = dY^T * X, dbias = column sums of dY; those that are given.

        dy: Memory [..., out]; dx: [..., in] of dy's type; dw: [out, in] F32; db: [out] F32. The
        handle is consumed if it succeeds.
        """
        native = self._open()
        absent = Buffer(None, 0)
        request = BackwardRequest(
            struct_size=ctypes.sizeof(BackwardRequest),
            handle=handle.number,
            output_gradient=dy.as_tensor(),
            want_input_gradient=int(dx is not None),
            want_weight_gradient=int(dw is not None),
            want_bias_gradient=int(db is not None),
            input_gradient=dx.as_buffer() if dx else absent,
            weight_gradient=dw.as_buffer() if dw else absent,
            bias_gradient=db.as_buffer() if db else absent,
            non_finite_policy=_NON_FINITE[
                one_of("non_finite_policy", non_finite_policy, _NON_FINITE)
            ],
        )
        result = BackwardResult(struct_size=ctypes.sizeof(BackwardResult))
        self._run(
            native,
            library.planewise_backward_start,
            library.planewise_backward,
            ctypes.byref(request),
            ctypes.byref(result),
            library.planewise_operation_backward_result,
        )
        handle.consumed()
        return Backward(
            version=result.version,
            backward_override=_OVERRIDE_NAMES.get(result.backward_override, "none"),
            dgrad_path=result.dgrad_path.decode(),
            wgrad_path=result.wgrad_path.decode(),
        )

    def _run(self, native, start, run, argument, result=None, take_result=None):
        """Runs an operation of the session so that Ctrl-C can end it."""
        pointer = native.pointer()
        results = () if result is None else (result,)
        operation = ctypes.c_void_p()
        done = ctypes.c_int32()
        try:
            check(start(pointer, argument, ctypes.byref(operation)))
            while not done.value:
                check(library.planewise_operation_wait(operation, _SIGNALS_MS, ctypes.byref(done)))
            if take_result is not None:
                check(take_result(operation, *results))
            return
        except PlanewiseError as error:
            if error.retry_delay_ms is None:
                raise
        except BaseException:
            # The operation would go on to use the tensors' memory.
            self.close()
            raise
        finally:
            library.planewise_operation_free(operation)
        # The daemon had no room and did nothing. The library's blocking call knows when to ask
        # again; Ctrl-C waits for it.
        check(run(pointer, argument, *results))

    def _release(self, number):
        """Gives a saved operand up without waiting; what a finalizer may do."""
        native = self._native
        if native is None or not native.usable():
            return
        operation = ctypes.c_void_p()
        handles = (ctypes.c_uint64 * 1)(number)
        error = library.planewise_release_start(
            native.pointer(), handles, 1, ctypes.byref(operation)
        )
        library.planewise_error_free(error)  # The session is gone, and the operand with it.
        library.planewise_operation_free(operation)

    def _open(self):
        native = self._native
        if native is None:
            raise ValueError(
                "the session is closed: open another one (client.session()), or attach() the "
                "model again"
            )
        return native
