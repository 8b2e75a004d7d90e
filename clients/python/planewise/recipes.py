"""Recipes, under the names that users of Transformer Engine know.

    planewise.MXFP8BlockScaling(backward_override="dequantized")

An argument that is not given comes from the environment, spelled as Transformer Engine spells it
now (NVTE_BACKWARD_OVERRIDE) and spelled it before (NVTE_BACKWARD_MODE,
NVTE_KEEP_BACKWARD_UNQUANTIZED); an explicit argument wins. The daemon never reads these.
"""

import os
from dataclasses import asdict, dataclass
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
    """How a model is quantized. `format` as in GetCapabilities, for example "mxfp8".

    Each format has some of the fields after backward_override; the daemon refuses one that the
    format has not. None is the format's default.

    Attributes:
      fp8_format: all but nvfp4: elements, "e4m3" or "hybrid" (gradients in E5M2).
      weight_block_dim: mxfp8, nvfp4, fp8_block: blocks of weights have 1 or 2 dimensions.
      power_of_two_scales: fp8_block, fp8_current: are scales powers of two?
      amax_epsilon: fp8_block, fp8_current: an amax below this counts as this.
      margin: fp8_delayed: scales are 2^-margin times what the amax asks for.
      amax_history_length: fp8_delayed: how many steps an amax is remembered.
      amax_algorithm: fp8_delayed: the amax taken of the history, "max" or "most_recent".
      hadamard: nvfp4: are column copies of activations and gradients transformed?
      stochastic_rounding: nvfp4: are gradients rounded stochastically?
    """

    format: str
    backward_override: Optional[str] = None
    fp8_format: Optional[str] = None
    weight_block_dim: Optional[int] = None
    power_of_two_scales: Optional[bool] = None
    amax_epsilon: Optional[float] = None
    margin: Optional[int] = None
    amax_history_length: Optional[int] = None
    amax_algorithm: Optional[str] = None
    hadamard: Optional[bool] = None
    stochastic_rounding: Optional[bool] = None

    def __post_init__(self):
        override = self.backward_override
        if override is None:
            override, variable = override_from_environment()
            override = override or "none"
            if override != "none" and not self.takes_override:
                raise ValueError(
                    f"{variable} asks for backward_override={override}, which recipe "
                    f"{self.format!r} cannot take: unset it or pass backward_override='none'"
                )
            object.__setattr__(self, "backward_override", override)
        one_of("backward_override", override, BACKWARD_OVERRIDES)

    @property
    def quantized(self):
        return self.format != "none"

    @property
    def takes_override(self):
        return self.quantized and self.format not in ("fp8_delayed", "delayed")

    def to_json(self):
        """The message planewise.v1.Recipe, without what is None."""
        message = {name: value for name, value in asdict(self).items() if value is not None}
        message["backward_override"] = f"BACKWARD_OVERRIDE_{self.backward_override.upper()}"
        return message


def _with_override(format, backward_override, backward_mode, fields):
    if backward_override is None:
        backward_override = backward_mode
    elif backward_mode not in (None, backward_override):
        raise ValueError(
            f"backward_override={backward_override!r} and backward_mode={backward_mode!r} are two "
            "names of one field and disagree: give one of them"
        )
    return Recipe(format, backward_override, **fields)


def MXFP8BlockScaling(backward_override=None, *, backward_mode=None, **fields):
    """MXFP8 with one E8M0 scale per 1x32 block, elements E4M3.

    Args:
      backward_override: "none", "high_precision", "dequantized", or None for the environment's.
      backward_mode: the older name of backward_override.
      fields: others of Recipe.
    """
    return _with_override("mxfp8", backward_override, backward_mode, fields)


def NVFP4BlockScaling(backward_override=None, *, backward_mode=None, **fields):
    """NVFP4 with one E4M3 scale per 1x16 block, of weights 16x16. Arguments as of MXFP8."""
    return _with_override("nvfp4", backward_override, backward_mode, fields)


def Float8BlockScaling(backward_override=None, *, backward_mode=None, **fields):
    """FP8 with one scale per 1x128 block, of weights 128x128. Arguments as of MXFP8."""
    return _with_override("fp8_block", backward_override, backward_mode, fields)


def Float8CurrentScaling(backward_override=None, *, backward_mode=None, **fields):
    """FP8 with one scale per tensor, from its amax. Arguments as of MXFP8."""
    return _with_override("fp8_current", backward_override, backward_mode, fields)


def DelayedScaling(**fields):
    """FP8 with one scale per tensor, from amaxes of earlier steps; it takes no backward_override.

    Args:
      fields: those of Recipe.
    """
    return Recipe("fp8_delayed", **fields)


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
