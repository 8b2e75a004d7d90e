"""The demo on its synthetic model, by an interpreter that sees Debian's packages only."""

import os
import subprocess
import sys
import unittest

CLAIMS = 6


class DemoTest(unittest.TestCase):
    def test_every_claim_holds_on_the_synthetic_model(self):
        environ = dict(
            os.environ,
            PYTHONPATH=os.path.abspath("clients/python"),
            PLANEWISE_LIBRARY=os.path.abspath("clients/c/libplanewise.so"),
        )
        command = [sys.executable, "clients/python/demo/demo.py", "--synthetic"]
        command += ["--daemon", os.path.abspath("service/planewised")]
        command += ["--cli", os.path.abspath("clients/cli/planewise")]
        demo = subprocess.run(command, env=environ, capture_output=True, text=True)
        _, _, shown = demo.stdout.partition("\nWhat was shown\n")
        said = [line.split()[0] for line in shown.splitlines()]
        self.assertEqual(
            (demo.returncode, said), (0, ["yes"] * CLAIMS), f"{demo.stdout}\n{demo.stderr}"
        )


if __name__ == "__main__":
    unittest.main()
