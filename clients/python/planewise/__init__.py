"""Planewise for Python: quantized primary weights, hosted by a daemon.

    import planewise

    with planewise.Client() as client:
        remote = planewise.attach(model, client, "minilm")  # weights leave this process
        loss = model(**batch).loss
        loss.backward()
        remote.end_step()

`Client` needs no torch; `RemoteLinear` and `attach` do.
"""

from planewise.client import Client
from planewise.dtypes import DataType
from planewise.errors import PlanewiseError
from planewise.recipes import (
    DelayedScaling,
    Float8BlockScaling,
    Float8CurrentScaling,
    HighPrecision,
    MXFP8BlockScaling,
    NVFP4BlockScaling,
    Recipe,
    recipe_from_environment,
)
from planewise.session import Session

__version__ = "0.1.0"

__all__ = [
    "Attachment",
    "Client",
    "DataType",
    "DelayedScaling",
    "Float8BlockScaling",
    "Float8CurrentScaling",
    "HighPrecision",
    "MXFP8BlockScaling",
    "NVFP4BlockScaling",
    "PlanewiseError",
    "Recipe",
    "RemoteLinear",
    "Session",
    "attach",
    "recipe_from_environment",
]

_NEEDS_TORCH = {
    "Attachment": "planewise.attach",
    "RemoteLinear": "planewise.remote_linear",
    "attach": "planewise.attach",
}


def __getattr__(name):
    # Torch is slow to import, and control calls do without it.
    if name in _NEEDS_TORCH:
        import importlib

        value = getattr(importlib.import_module(_NEEDS_TORCH[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'planewise' has no attribute {name!r}")
