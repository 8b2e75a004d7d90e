"""Failures as Python exceptions: class, reason, details, and what survives."""

import threading
import unittest

import planewise
from clients.python.demo.hf_directory import write_model
from clients.python.tests.daemon_fixture import CONFIG, DOWN, UP, DaemonTest, random_tensors
from planewise import errors


class ErrorsTest(DaemonTest):
    def raised(self, kind, call, *arguments, **options):
        with self.assertRaises(kind) as context:
            call(*arguments, **options)
        return context.exception

    def test_codes_become_classes(self):
        self.create("tiny")
        outside = self.folder.parent
        cases = {
            "an unknown model": (
                errors.NotFoundError,
                LookupError,
                "NOT_FOUND",
                lambda: self.client.describe("absent"),
            ),
            "a second model of the same name": (
                errors.AlreadyExistsError,
                planewise.PlanewiseError,
                "ALREADY_EXISTS",
                lambda: self.client.create_model("tiny", self.source, "mxfp8"),
            ),
            "a path outside the roots": (
                errors.InvalidArgumentError,
                ValueError,
                "PATH_OUTSIDE_ROOTS",
                lambda: self.client.create_model("other", outside, "mxfp8"),
            ),
            "an unknown recipe": (
                errors.InvalidArgumentError,
                ValueError,
                "UNKNOWN_RECIPE",
                lambda: self.client.create_model("other", self.source, "mxfp9"),
            ),
            "an unknown method": (
                errors.InvalidArgumentError,
                ValueError,
                None,
                lambda: self.client.call("MakeCoffee", {}),
            ),
        }
        for name, (kind, builtin, reason, call) in cases.items():
            with self.subTest(name):
                error = self.raised(kind, call)
                self.assertIsInstance(error, planewise.PlanewiseError)
                self.assertIsInstance(error, builtin)
                if reason is not None:
                    self.assertEqual(error.reason, reason)
                self.assertIn(f"[{error.code} / {error.reason}]", str(error))
                self.assertIn(error.message, str(error))
                self.assertEqual(error.retry, "never")
        self.assertEqual([model["name"] for model in self.client.list_models()], ["tiny"])

    def test_a_message_names_the_object(self):
        error = self.raised(errors.NotFoundError, self.client.describe, "absent")
        self.assertIn("absent", error.message)

    def test_every_violation_is_listed(self):
        config = {**CONFIG, "intermediate_size": 100}
        source = self.folder / "hundred"
        write_model(source, config, random_tensors(seed=12, config=config))
        error = self.raised(
            errors.InvalidArgumentError, self.client.create_model, "hundred", source, "mxfp8"
        )
        self.assertEqual(error.reason, "SHAPE_NOT_DIVISIBLE")
        self.assertEqual(
            {violation["subject"] for violation in error.violations},
            {f"{UP}.weight", f"{DOWN}.weight"},
        )
        for violation in error.violations:
            self.assertEqual(violation["reason"], "SHAPE_NOT_DIVISIBLE")
            self.assertIn("100 % 32 = 4", violation["description"])
        self.assertEqual(self.client.list_models(), [])

    def test_metadata_says_where(self):
        tensors = {name: tensor.clone() for name, tensor in self.tensors.items()}
        tensors[f"{DOWN}.weight"][3, 5] = float("nan")
        write_model(self.folder / "with-nan", CONFIG, tensors)
        error = self.raised(
            errors.InvalidArgumentError,
            self.client.create_model,
            "nan",
            self.folder / "with-nan",
            "mxfp8",
        )
        self.assertEqual(error.reason, "NON_FINITE_IN_TENSOR")
        self.assertIn("row 3, column 5", error.message)
        self.assertIn("389", error.metadata.values())
        self.assertEqual(self.client.list_models(), [])

    def test_an_input_of_another_width_is_refused_with_both_numbers(self):
        session = self.client.session()
        self.addCleanup(session.close)
        self.create("tiny")
        memory = planewise.session.Memory(0, 0, planewise.DataType.F32, (0, 63))
        error = self.raised(
            errors.InvalidArgumentError, session.forward, "tiny", "pooler.dense", memory, memory
        )
        self.assertIn("64", error.message)
        self.assertIn("63", error.message)

    def test_nobody_listening_is_unavailable(self):
        error = self.raised(
            errors.UnavailableError,
            planewise.Client,
            f"unix://{self.folder}/nobody.sock",
            connect_timeout_s=0.01,
        )
        self.assertIsInstance(error, ConnectionError)
        self.assertIn("nobody.sock", error.message)

    def test_a_closed_client_says_so(self):
        client = planewise.Client(self.target)
        session = client.session()
        client.close()
        client.close()
        self.assertTrue(session.closed)
        with self.assertRaisesRegex(ValueError, "client is closed"):
            client.list_models()
        with self.assertRaisesRegex(ValueError, "session is closed"):
            session.end_step()

    def test_calls_from_many_threads(self):
        counted = []

        def describe():
            for _ in range(20):
                try:
                    self.client.describe("absent")
                except errors.NotFoundError:
                    counted.append(1)

        threads = [threading.Thread(target=describe) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(counted), 80)


if __name__ == "__main__":
    unittest.main()
