"""The spellings of the environment, and who wins. No daemon."""

import os
import unittest
from unittest import mock

os.environ.setdefault("PLANEWISE_LIBRARY", os.path.abspath("clients/c/libplanewise.so"))

from planewise.recipes import (  # noqa: E402: the package loads the library named above
    DelayedScaling,
    Float8BlockScaling,
    Float8CurrentScaling,
    HighPrecision,
    MXFP8BlockScaling,
    NVFP4BlockScaling,
    Recipe,
    as_recipe,
    override_from_environment,
    recipe_from_environment,
)

OVERRIDE = "NVTE_BACKWARD_OVERRIDE"
MODE = "NVTE_BACKWARD_MODE"
KEEP = "NVTE_KEEP_BACKWARD_UNQUANTIZED"


class EnvironmentTest(unittest.TestCase):
    def test_spellings(self):
        cases = {
            "nothing set": ({}, (None, None)),
            "override none": ({OVERRIDE: "none"}, ("none", OVERRIDE)),
            "override high_precision": (
                {OVERRIDE: "high_precision"},
                ("high_precision", OVERRIDE),
            ),
            "override dequantized": ({OVERRIDE: "dequantized"}, ("dequantized", OVERRIDE)),
            "mode default": ({MODE: "default"}, ("none", MODE)),
            "mode unquant": ({MODE: "unquant"}, ("high_precision", MODE)),
            "mode dequant": ({MODE: "dequant"}, ("dequantized", MODE)),
            "keep 1": ({KEEP: "1"}, ("high_precision", KEEP)),
            "keep 0": ({KEEP: "0"}, ("none", KEEP)),
            "two that agree": (
                {KEEP: "1", MODE: "unquant"},
                ("high_precision", MODE),
            ),
        }
        for name, (environ, want) in cases.items():
            with self.subTest(name):
                self.assertEqual(override_from_environment(environ), want)

    def test_unknown_values_are_refused_with_the_valid_ones(self):
        cases = {
            "the old value in the new variable": ({OVERRIDE: "dequant"}, "high_precision"),
            "the new value in the old variable": ({MODE: "dequantized"}, "unquant"),
            "true": ({KEEP: "true"}, "1, 0"),
            "empty": ({OVERRIDE: ""}, "dequantized"),
            "other case": ({OVERRIDE: "Dequantized"}, "dequantized"),
        }
        for name, (environ, valid) in cases.items():
            with self.subTest(name):
                with self.assertRaises(ValueError) as raised:
                    override_from_environment(environ)
                self.assertIn(next(iter(environ)), str(raised.exception))
                self.assertIn(valid, str(raised.exception))

    def test_variables_that_disagree_are_both_named(self):
        with self.assertRaises(ValueError) as raised:
            override_from_environment({OVERRIDE: "dequantized", KEEP: "0"})
        self.assertIn(OVERRIDE, str(raised.exception))
        self.assertIn(KEEP, str(raised.exception))


class RecipeTest(unittest.TestCase):
    def test_an_argument_wins_over_the_environment(self):
        with mock.patch.dict(os.environ, {OVERRIDE: "dequantized"}):
            self.assertEqual(MXFP8BlockScaling("none").backward_override, "none")
            self.assertEqual(MXFP8BlockScaling().backward_override, "dequantized")
            self.assertEqual(recipe_from_environment().backward_override, "dequantized")
            self.assertEqual(as_recipe("mxfp8").backward_override, "dequantized")

    def test_the_default_is_none(self):
        with mock.patch.dict(os.environ):
            for variable in (OVERRIDE, MODE, KEEP):
                os.environ.pop(variable, None)
            self.assertEqual(as_recipe(None), Recipe("mxfp8", "none"))

    def test_a_recipe_that_cannot_take_it_names_the_variable(self):
        with mock.patch.dict(os.environ, {MODE: "dequant"}):
            with self.assertRaisesRegex(ValueError, MODE):
                Recipe("none")
            with self.assertRaisesRegex(ValueError, MODE):
                DelayedScaling()
            self.assertEqual(DelayedScaling(backward_override="none").margin, None)
            self.assertEqual(HighPrecision().backward_override, "none")

    def test_an_unknown_override_is_refused(self):
        with self.assertRaisesRegex(ValueError, "unquant.*high_precision"):
            MXFP8BlockScaling("unquant")

    def test_the_older_name_of_the_field_is_taken(self):
        self.assertEqual(
            MXFP8BlockScaling(backward_mode="dequantized"), MXFP8BlockScaling("dequantized")
        )
        self.assertEqual(
            MXFP8BlockScaling("none", backward_mode="none").backward_override, "none"
        )
        with self.assertRaisesRegex(ValueError, "'none' and backward_mode='dequantized'"):
            MXFP8BlockScaling("none", backward_mode="dequantized")

    def test_the_message(self):
        self.assertEqual(
            MXFP8BlockScaling("high_precision").to_json(),
            {"format": "mxfp8", "backward_override": "BACKWARD_OVERRIDE_HIGH_PRECISION"},
        )

    def test_the_message_has_the_fields_that_are_given(self):
        none = "BACKWARD_OVERRIDE_NONE"
        cases = (
            (MXFP8BlockScaling("none", fp8_format="hybrid"), {"fp8_format": "hybrid"}),
            (
                NVFP4BlockScaling("none", weight_block_dim=1, hadamard=False),
                {"weight_block_dim": 1, "hadamard": False},
            ),
            (
                NVFP4BlockScaling("none", stochastic_rounding=False),
                {"stochastic_rounding": False},
            ),
            (
                Float8BlockScaling(backward_mode="none", power_of_two_scales=False),
                {"power_of_two_scales": False},
            ),
            (Float8CurrentScaling("none", amax_epsilon=0.5), {"amax_epsilon": 0.5}),
            (
                DelayedScaling(
                    backward_override="none",
                    margin=0,
                    amax_history_length=16,
                    amax_algorithm="most_recent",
                ),
                {"margin": 0, "amax_history_length": 16, "amax_algorithm": "most_recent"},
            ),
        )
        for recipe, fields in cases:
            with self.subTest(recipe):
                want = {"format": recipe.format, "backward_override": none, **fields}
                self.assertEqual(recipe.to_json(), want)

    def test_a_field_of_no_recipe_is_refused(self):
        with self.assertRaisesRegex(TypeError, "amax_histry_length"):
            DelayedScaling(amax_histry_length=16)


if __name__ == "__main__":
    unittest.main()
