"""The client's control calls, against a real daemon."""

import unittest

import torch

import planewise
from clients.python.tests.daemon_fixture import LINEARS, QUERY, DaemonTest
from planewise.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError


class ClientTest(DaemonTest):
    def test_creating_reports_progress_and_returns_the_model(self):
        reports = []
        model = self.create("tiny", progress=reports.append)
        self.assertEqual({layer["name"] for layer in model["layers"]}, set(LINEARS))
        self.assertTrue(reports)
        done = [int(report["done_bytes"]) for report in reports]
        self.assertEqual(done, sorted(done))
        self.assertLessEqual(done[-1], int(reports[-1]["total_bytes"]))
        self.assertEqual(reports[-1]["stage"], "load")

    def test_an_exception_of_the_progress_callback_comes_back(self):
        def stop(_):
            raise KeyboardInterrupt

        # A model this small may be loaded before the daemon hears of it; either way the
        # exception comes back.
        self.create("tiny")
        for call in (self.client.save, self.client.verify):
            with self.assertRaises(KeyboardInterrupt):
                call("tiny", progress=stop)

    def test_describe_shows_the_plan_equal_to_the_allocation(self):
        self.create("tiny")
        model = self.client.describe("tiny")
        elements = sum(rows * columns for rows, columns in LINEARS.values())
        self.assertEqual(model["planned_bytes"], model["actual_bytes"])
        self.assertGreater(int(model["actual_bytes"]), elements)
        self.assertEqual(model["recipe"]["backward_override"], "BACKWARD_OVERRIDE_DEQUANTIZED")
        query = next(layer for layer in model["layers"] if layer["name"] == QUERY)
        self.assertTrue(query["has_bias"])

    def test_validate_only_hosts_nothing(self):
        before = self.client.capabilities()["memory_used_bytes"]
        self.client.create_model("planned", self.source, "mxfp8", validate_only=True)
        self.assertEqual(self.client.list_models(), [])
        self.assertEqual(self.client.capabilities()["memory_used_bytes"], before)

    def test_list_and_delete(self):
        for name in ("a", "b"):
            self.client.create_model(name, self.source, "mxfp8")
        self.assertEqual([model["name"] for model in self.client.list_models()], ["a", "b"])
        freed = self.client.delete_model("a")
        self.assertGreater(int(freed["freed_bytes"]), 0)
        self.client.delete_model("b")
        self.assertEqual(self.client.list_models(), [])

    def test_a_switch_that_needs_absent_planes_is_refused_with_remedies(self):
        self.create("tiny")
        verdict = self.client.validate_switch("tiny", planewise.MXFP8BlockScaling("none"))
        self.assertEqual(verdict["verdict"], "SWITCH_VERDICT_NEEDS_MASTER")
        self.assertIn("COLUMNWISE_MISSING", str(verdict))
        with self.assertRaises(FailedPreconditionError) as raised:
            self.client.switch_mode("tiny", planewise.MXFP8BlockScaling("none"))
        self.assertEqual(raised.exception.reason, "COLUMNWISE_MISSING")

    def test_a_switch_between_overrides_takes_effect(self):
        self.create("tiny")
        before = self.client.describe("tiny")
        self.client.switch_mode("tiny", planewise.MXFP8BlockScaling("high_precision"))
        after = self.client.describe("tiny")
        self.assertEqual(after["recipe"]["backward_override"], "BACKWARD_OVERRIDE_HIGH_PRECISION")
        self.assertGreater(int(after["version"]), int(before["version"]))

    def test_the_recipes_fields_reach_the_daemon_and_come_back(self):
        self.create("tiny", planewise.MXFP8BlockScaling("none", fp8_format="hybrid"))
        recipe = self.client.describe("tiny")["recipe"]
        self.assertEqual((recipe["fp8_format"], recipe["weight_block_dim"]), ("hybrid", 1))
        self.assertNotIn("margin", recipe)
        delayed = planewise.DelayedScaling(margin=1, amax_history_length=4)
        planned = self.client.create_model("planned", self.source, delayed, validate_only=True)
        recipe = planned["recipe"]
        self.assertEqual((recipe["margin"], recipe["amax_history_length"]), (1, "4"))
        with self.assertRaisesRegex(InvalidArgumentError, "recipe.hadamard: recipe mxfp8 has no"):
            self.create("none", planewise.MXFP8BlockScaling("none", hadamard=False))

    def test_save_then_verify(self):
        self.create("tiny")
        stages = []
        self.client.save("tiny", progress=lambda report: stages.append(report["stage"]))
        model = self.client.describe("tiny")
        self.assertEqual(model["durable_version"], model["version"])
        self.assertTrue(stages)
        result = self.client.verify("tiny")
        self.assertTrue(result["ok"])

    def test_weights_are_read_dequantized_and_as_planes(self):
        self.create("tiny", "mxfp8", plane_policy="both")
        source = self.tensors[QUERY + ".weight"]
        (whole,) = self.client.read_weights(
            "tiny", [QUERY + ".weight"], dequantize_to=planewise.DataType.F32
        )
        self.assertEqual((whole.plane, whole.shape), ("row", (64, 64)))
        # Half a step of E4M3's 3 mantissa bits, and of its subnormals.
        largest = source.reshape(64, 2, 32).abs().amax(2, keepdim=True).expand(64, 2, 32)
        bound = source.abs() / 16 + largest.reshape(64, 64) * 2.0**-16
        self.assertTrue(((whole.to_torch() - source).abs() <= bound).all())
        self.assertFalse(torch.equal(whole.to_torch(), source))

        # Scales are padded to multiples of 128 and 4.
        for plane, scales in {"row": (128, 4), "column": (4, 128)}.items():
            parts = {
                part.part: part
                for part in self.client.read_weights("tiny", [QUERY + ".weight"], plane=plane)
            }
            self.assertEqual(parts["payload"].to_torch().shape, (64, 64))
            self.assertEqual(parts["payload"].data_type, planewise.DataType.F8_E4M3)
            self.assertEqual(parts["scales"].data_type, planewise.DataType.F8_E8M0)
            self.assertEqual(parts["scales"].shape, scales)

    def test_a_name_that_is_none_of_a_few_is_refused_with_those(self):
        def create(**options):
            self.client.create_model("tiny", self.source, "mxfp8", **options)

        for call, message in (
            (lambda: create(plane_policy="some"), "plane_policy='some'.*'row_only'"),
            (lambda: create(future_modes=["some"]), "future_modes='some'.*'dequantized'"),
            (lambda: create(non_finite_policy="some"), "non_finite_policy='some'.*'format'"),
            (lambda: self.client.read_weights("tiny", plane="some"), "plane='some'.*'column'"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                call()
        self.assertEqual(self.client.list_models(), [])

    def test_every_weight_is_read_when_none_is_named(self):
        self.create("tiny")
        parts = self.client.read_weights("tiny", dequantize_to=planewise.DataType.BF16)
        every = {name + kind for name in LINEARS for kind in (".weight", ".bias")}
        self.assertEqual({part.weight for part in parts}, every)
        parts = self.client.read_weights("tiny", plane="high_precision")
        self.assertEqual({part.weight for part in parts}, {name + ".bias" for name in LINEARS})
        self.create("rows", "mxfp8", plane_policy="row_only", backward_enabled=False)
        with self.assertRaisesRegex(NotFoundError, "no weight has its column plane stored"):
            self.client.read_weights("rows", plane="column")
        for part in parts:
            self.assertEqual(part.to_torch().shape, part.shape)

    def test_the_settings_are_those_of_the_daemon(self):
        self.assertEqual(self.client.target, self.target)
        self.assertIn("mxfp8", self.client.capabilities()["formats"])
        self.assertIn(str(self.folder), str(self.client.server_config()))


if __name__ == "__main__":
    unittest.main()
