"""Exceptions: one class per status code, all of them PlanewiseError."""

import json

from planewise._library import library


class PlanewiseError(Exception):
    """A failed call.

    Attributes:
      reason: a name of the table in proto/README.md, for example "COLUMNWISE_MISSING".
      retry: "never", "same_request", or "restart_step". The library has retried already where
        that was its to do.
      metadata: dict of strings, for example {"bytesShort": "512"}.
      violations: list of dicts with reason, subject and description.
      retry_delay_ms: what the daemon named, or None.
    """

    code = "UNKNOWN"

    def __init__(self, message, reason="", retry="never", details=None):
        super().__init__(message)
        details = details or {}
        self.reason = reason
        self.retry = retry
        self.metadata = details.get("metadata", {})
        self.violations = details.get("violations", [])
        self.retry_delay_ms = details.get("retry_delay_ms")

    @property
    def message(self):
        return self.args[0]

    def __str__(self):
        label = f"{self.code} / {self.reason}" if self.reason else self.code
        return f"{self.message} [{label}]"


class InvalidArgumentError(PlanewiseError, ValueError):
    code = "INVALID_ARGUMENT"


class DeadlineExceededError(PlanewiseError, TimeoutError):
    code = "DEADLINE_EXCEEDED"


class NotFoundError(PlanewiseError, LookupError):
    code = "NOT_FOUND"


class AlreadyExistsError(PlanewiseError):
    code = "ALREADY_EXISTS"


class PermissionDeniedError(PlanewiseError, PermissionError):
    code = "PERMISSION_DENIED"


class UnauthenticatedError(PlanewiseError, PermissionError):
    code = "UNAUTHENTICATED"


class ResourceExhaustedError(PlanewiseError, MemoryError):
    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(PlanewiseError):
    code = "FAILED_PRECONDITION"


class AbortedError(PlanewiseError):
    """Begin the step again: what it was pinned to is gone."""

    code = "ABORTED"


class CancelledError(PlanewiseError):
    code = "CANCELLED"


class UnimplementedError(PlanewiseError, NotImplementedError):
    code = "UNIMPLEMENTED"


class InternalError(PlanewiseError):
    code = "INTERNAL"


class UnavailableError(PlanewiseError, ConnectionError):
    code = "UNAVAILABLE"


class DataLossError(PlanewiseError):
    code = "DATA_LOSS"


_CLASSES = {cls.code: cls for cls in PlanewiseError.__subclasses__()}


def check(error):
    """Raises what a C function returned, and frees it; None or 0 is success."""
    if not error:
        return
    try:
        cls = _CLASSES.get(library.planewise_error_code_name(error).decode(), PlanewiseError)
        raise cls(
            library.planewise_error_message(error).decode(),
            library.planewise_error_reason(error).decode(),
            library.planewise_error_retry(error).decode(),
            json.loads(library.planewise_error_details(error).decode()),
        )
    finally:
        library.planewise_error_free(error)
