"""Recipes, under the names that users of Transformer Engine know.

    planewise.MXFP8BlockScaling(backward_override="dequantized")

An argument that is not given comes from the environment, spelled as Transformer Engine spells it
now (NVTE_BACKWARD_OVERRIDE) and spelled it before (NVTE_BACKWARD_MODE,
NVTE_KEEP_BACKWARD_UNQUANTIZED); an explicit argument wins. The daemon never reads these.
"""

import os
from dataclasses import dataclass
from typing import Optional

from planewise._choices import one_of

BACKWARD_OVERRIDES = ("none", "high_precision", "dequantized")

_VARIABLES = {
    "NVTE_BACKWARD_OVERRIDE": {name: name for name in BACKWARD_OVERRIDES},
    "NVTE_BACKWARD_MODE": {
        "default": "none",
        "unquant": "high_precision",
        "dequant": "dequantized",
    },
    "NVTE_KEEP_BACKWARD_UNQUANTIZED": {"1": "high_precision", "0": "none"},
}


def override_from_environment(environ=None):
    """(backward_override, variable) that the environment names, or (None, None).

    Raises ValueError for a value that is not known and for two variables that disagree.
    """
    environ = os.environ if environ is None else environ
    found = {}
    for variable, values in _VARIABLES.items():
        if variable not in environ:
            continue
        value = environ[variable]
        if value not in values:
            raise ValueError(f"{variable}={value!r} is not known; valid: {', '.join(values)}")
        found[variable] = values[value]
    if len(set(found.values())) > 1:
        stated = ", ".join(f"{name}={environ[name]} ({value})" for name, value in found.items())
        raise ValueError(f"environment variables disagree: {stated}; keep one of them")
    for variable, value in found.items():
        return value, variable
    return None, None


@dataclass(frozen=True)
class Recipe:
    """How a model is quantized. `format` as in GetCapabilities, for example "mxfp8"."""

    format: str
    backward_override: Optional[str] = None

    def __post_init__(self):
        override = self.backward_override
        if override is None:
            override, variable = override_from_environment()
            override = override or "none"
            if override != "none" and not self.quantized:
                raise ValueError(
                    f"{variable} asks for backward_override={override}, which recipe "
                    f"{self.format!r} cannot take: unset it or pass backward_override='none'"
                )
            object.__setattr__(self, "backward_override", override)
        one_of("backward_override", override, BACKWARD_OVERRIDES)

    @property
    def quantized(self):
        return self.format != "none"

    def to_json(self):
        """The message planewise.v1.Recipe."""
        return {
            "format": self.format,
            "backward_override": f"BACKWARD_OVERRIDE_{self.backward_override.upper()}",
        }


def MXFP8BlockScaling(backward_override=None, *, backward_mode=None):
    """MXFP8 with one E8M0 scale per 1x32 block, elements E4M3.

    Args:
      backward_override: "none", "high_precision", "dequantized", or None for the environment's.
      backward_mode: the older name of backward_override.
    """
    if backward_override is None:
        backward_override = backward_mode
    elif backward_mode not in (None, backward_override):
        raise ValueError(
            f"backward_override={backward_override!r} and backward_mode={backward_mode!r} are two "
            "names of one field and disagree: give one of them"
        )
    return Recipe("mxfp8", backward_override)


def HighPrecision():
    """Weights in BF16, nothing quantized."""
    return Recipe("none", "none")


def recipe_from_environment():
    """MXFP8 with the backward_override that the environment names."""
    return MXFP8BlockScaling()


def as_recipe(recipe):
    """A Recipe from one, from a format's name, or from None (the environment's)."""
    if recipe is None:
        return recipe_from_environment()
    return Recipe(recipe) if isinstance(recipe, str) else recipe
