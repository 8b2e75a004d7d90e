"""The command line as people and scripts meet it: what is printed where, and exit codes."""

import json
import os
import subprocess
import unittest

from clients.python.tests.daemon_fixture import LINEARS, QUERY, DaemonTest

PLANEWISE = os.path.abspath("clients/cli/planewise")
VERBS = (
    "plan load ls describe validate switch save verify get delete capabilities version".split()
)
OK, REFUSED, USAGE, UNAVAILABLE = range(4)


class CliTest(DaemonTest):
    def run_cli(self, *arguments, code=OK, environ=None):
        """Standard output of a planewise that ends with `code`."""
        process = self.process(*arguments, environ=environ)
        self.assertEqual(process.returncode, code, process.stdout + process.stderr)
        return process.stdout

    def process(self, *arguments, environ=None):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NVTE_", "PLANEWISE_"))}
        return subprocess.run(
            [PLANEWISE, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            env={**clean, "PLANEWISE_TARGET": self.target, **(environ or {})},
        )

    def json(self, *arguments, code=OK):
        return json.loads(self.run_cli(*arguments, "--output", "json", code=code))

    def test_help_is_there_for_every_verb_and_ends_its_last_line(self):
        for arguments in ([], *([verb] for verb in VERBS)):
            with self.subTest(arguments):
                out = self.run_cli(*arguments, "--help")
                self.assertIn("Usage: planewise", out)
                self.assertTrue(out.endswith("\n"))
        for verb in VERBS:
            self.assertIn(f"\n  {verb} ", self.run_cli("--help"))

    def test_a_model_from_its_plan_to_its_end(self):
        mode = ("--backward-override", "dequantized")
        plan = self.json("plan", self.source, *mode, "--what-if")
        planned = plan["totals"]["persistent_bytes"]
        self.assertIn(str(planned), self.run_cli("plan", self.source, *mode))

        self.assertIn("loaded\nmodel     m ", self.run_cli("load", "m", self.source, *mode))
        self.assertIn("drift 0 B", self.run_cli("describe", "m"))
        model = self.json("describe", "m")
        self.assertEqual(int(model["actual_bytes"]), planned)
        self.assertEqual({layer["name"] for layer in model["layers"]}, set(LINEARS))
        self.assertRegex(self.run_cli("ls"), r"\nm +serving +1 +- ")

        self.assertIn("COLUMNWISE_MISSING", self.run_cli("validate", "m", code=REFUSED))
        refused = self.json("switch", "m", "--backward-override", "none", code=REFUSED)
        self.assertEqual(refused["verdict"], "SWITCH_VERDICT_NEEDS_MASTER")
        self.run_cli("validate", "m", "--backward-override", "high_precision")
        switched = self.run_cli("switch", "m", "--backward-override", "high_precision")
        self.assertIn("switched to version 2", switched)

        self.assertIn("version 2 is durable", self.run_cli("save", "m"))
        self.assertIn("was durable already", self.run_cli("save", "m"))
        self.assertRegex(self.run_cli("ls"), r"\nm +serving +2 +2 ")
        self.assertTrue(self.json("verify", "m")["ok"])

        file = self.folder / "w.safetensors"
        get = ("get", "m", file, "--dequantize", "F32", "--weight", f"{QUERY}.weight")
        self.assertEqual(self.json(*get)["tensor_count"], 1)
        self.assertGreater(file.stat().st_size, 4 * 64 * 64)
        self.run_cli(*get, code=REFUSED)  # It exists.

        self.run_cli("delete", "m", "--expected-version", 1, code=REFUSED)
        self.assertEqual(int(self.json("delete", "m", "--stored")["freed_bytes"]), planned)
        self.assertEqual(self.json("ls")["models"], [])

    def test_fields_of_the_recipe_are_planned_loaded_and_kept_by_a_switch(self):
        hybrid = ("--backward-override", "dequantized", "--fp8-format", "hybrid")
        plan = self.json("plan", self.source, *hybrid)
        self.assertEqual(plan["options"]["recipe"]["fp8_format"], "hybrid")
        text = "mxfp8(backward_override=dequantized, fp8_format=hybrid)"
        self.assertIn(text, self.run_cli("load", "m", self.source, *hybrid))
        self.assertIn(text, self.run_cli("ls"))
        self.run_cli("switch", "m", "--backward-override", "high_precision")
        recipe = self.json("describe", "m")["recipe"]
        self.assertEqual(recipe["fp8_format"], "hybrid")
        self.assertEqual(recipe["backward_override"], "BACKWARD_OVERRIDE_HIGH_PRECISION")
        self.run_cli(*("switch", "m", "--backward-override", "none"), code=REFUSED)

    def test_every_format_takes_its_own_fields(self):
        cases = (
            (
                "--recipe fp8_block --weight-block-dim 1 --no-power-of-two-scales",
                {"weight_block_dim": 1, "power_of_two_scales": False, "amax_epsilon": 0.0},
            ),
            (
                "--recipe current --power-of-two-scales --amax-epsilon 0.25",
                {"power_of_two_scales": True, "amax_epsilon": 0.25},
            ),
            (
                "--recipe delayed --margin -2 --amax-history-length 16",
                {"margin": -2, "amax_history_length": "16", "amax_algorithm": "max"},
            ),
            (
                "--recipe delayed --amax-algorithm most_recent",
                {"amax_history_length": "1024", "amax_algorithm": "most_recent"},
            ),
            (
                "--recipe nvfp4 --no-hadamard --no-stochastic-rounding",
                {"hadamard": False, "stochastic_rounding": False, "weight_block_dim": 2},
            ),
        )
        for flags, fields in cases:
            with self.subTest(flags):
                model = self.json("load", "m", self.source, "--validate-only", *flags.split())
                self.assertEqual(model["recipe"], {**model["recipe"], **fields})
                plan = self.json("plan", self.source, *flags.split())
                self.assertEqual(
                    model["recipe"]["fingerprint"], plan["options"]["recipe"]["fingerprint"]
                )

    def test_what_the_daemon_is(self):
        self.assertRegex(self.run_cli("capabilities"), r"\nsessions +at most 256, time-out 10m\n")
        self.assertIn("mxfp8", self.json("capabilities")["formats"])
        self.assertEqual(self.json("version", "--daemon")["daemon_api"], "1.0")

    def test_a_failure_is_told_on_stderr_and_to_scripts(self):
        process = self.process("describe", "absent", "-o", "json")
        self.assertEqual(process.returncode, REFUSED)
        self.assertIn('error: model "absent"', process.stderr)
        self.assertIn("NOT_FOUND / NOT_FOUND", process.stderr)
        error = json.loads(process.stdout)["error"]
        self.assertIn("absent", error["message"])
        self.assertEqual(self.process("describe", "absent").stdout, "")

    def test_a_plan_that_does_not_fit_is_a_refusal(self):
        out = self.run_cli("plan", self.source, "--memory", "1KiB", code=REFUSED)
        self.assertIn("does not fit", out)
        self.run_cli("plan", self.source, "--memory", "1GiB")

    def test_a_wrong_command_line_is_told_from_a_refusal(self):
        cases = {
            "no verb": [],
            "an unknown verb": ["brew"],
            "an unknown flag": ["ls", "--all"],
            "no model": ["plan"],
            "plan: an unknown override": ["plan", self.source, "--backward-override", "some"],
            "plan: an unknown recipe": ["plan", self.source, "--recipe", "mxfp9"],
            "plan: an override without quantization": [
                *("plan", self.source, "--recipe", "none"),
                *("--backward-override", "dequantized"),
            ],
            "plan: a field that the format has not": ["plan", self.source, "--margin", "1"],
            "plan: blocks of three dimensions": ["plan", self.source, "--weight-block-dim", "3"],
            "load: an epsilon that is no number": ["load", "m", self.source, "--amax-epsilon", "x"],
            "switch: an unknown element format": ["switch", "m", "--fp8-format", "e5m2"],
            "plan: a size without unit": ["plan", self.source, "--memory", "12"],
            "plan: fewer sessions than none": ["plan", self.source, "--sessions", "-3"],
            "load: an unknown policy": ["load", "m", self.source, "--policy", "SOME"],
            "load: an unknown mode": ["load", "m", self.source, "--future-mode", "some"],
            "validate: an unknown override": ["validate", "m", "--backward-override", "some"],
            "switch: an unknown recipe": ["switch", "m", "--recipe", "mxfp9"],
            "get: neither plane nor type": ["get", "m", self.folder / "x"],
            "get: an unknown type": ["get", "m", self.folder / "x", "--dequantize", "F8"],
        }
        for name, arguments in cases.items():
            with self.subTest(name):
                process = self.process(*arguments)
                self.assertEqual((process.returncode, process.stdout), (USAGE, ""))
                self.assertNotEqual(process.stderr, "")
        for verb in (["plan", self.source], ["load", "m", self.source], ["switch", "m"]):
            with self.subTest("an unknown override in the environment", verb=verb[0]):
                process = self.process(*verb, environ={"NVTE_BACKWARD_OVERRIDE": "some"})
                self.assertEqual(process.returncode, USAGE)
                self.assertIn("NVTE_BACKWARD_OVERRIDE", process.stderr)

    def test_no_daemon_has_an_exit_code_of_its_own(self):
        nobody = f"unix://{self.folder}/nobody.sock"
        process = self.process("ls", "--target", nobody)
        self.assertEqual(process.returncode, UNAVAILABLE)
        self.assertIn("start planewised", process.stderr)


if __name__ == "__main__":
    unittest.main()
