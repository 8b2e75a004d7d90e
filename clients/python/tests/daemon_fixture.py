"""A daemon of the test's own, and a tiny model for it to host.

Not here: what the daemon answers (the tests).
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch

from clients.python.demo.hf_directory import write_model

# Where Bazel puts it for tests, unless PLANEWISED names another.
PLANEWISED = os.path.abspath(os.environ.get("PLANEWISED", "service/planewised"))
os.environ.setdefault("PLANEWISE_LIBRARY", os.path.abspath("clients/c/libplanewise.so"))

import planewise  # noqa: E402: it loads the library that the line above names

HIDDEN = 64
INTERMEDIATE = 128
QUERY = "encoder.layer.0.attention.self.query"
UP = "encoder.layer.0.intermediate.dense"  # HIDDEN to INTERMEDIATE
DOWN = "encoder.layer.0.output.dense"  # INTERMEDIATE to HIDDEN

CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_size": HIDDEN,
    "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 40,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
}


def linear_shapes(config=CONFIG):
    """{layer: (out, in)} of every hosted layer."""
    hidden, intermediate = config["hidden_size"], config["intermediate_size"]
    return {
        QUERY: (hidden, hidden),
        "encoder.layer.0.attention.self.key": (hidden, hidden),
        "encoder.layer.0.attention.self.value": (hidden, hidden),
        "encoder.layer.0.attention.output.dense": (hidden, hidden),
        UP: (intermediate, hidden),
        DOWN: (hidden, intermediate),
        "pooler.dense": (hidden, hidden),
    }


LINEARS = linear_shapes()


def tensor_shapes(config=CONFIG):
    """{name: shape} of every tensor of the model."""
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], HIDDEN),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], HIDDEN),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], HIDDEN),
    }
    for norm in ("embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output"):
        shapes[f"{norm}.LayerNorm.weight"] = shapes[f"{norm}.LayerNorm.bias"] = (HIDDEN,)
    for layer, (rows, columns) in linear_shapes(config).items():
        shapes[f"{layer}.weight"] = (rows, columns)
        shapes[f"{layer}.bias"] = (rows,)
    return shapes


def random_tensors(seed, config=CONFIG):
    """{name: float32 tensor} with values in [-1/8, 1/8)."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.rand(shape, generator=generator) / 4 - 0.125
        for name, shape in tensor_shapes(config).items()
    }


# What a script of start_script() has before its own text: `linear` and an `x` that needs a
# gradient, of the model "tiny".
_SCRIPT = f"""
import os, sys, threading
import torch
import planewise
client = planewise.Client(sys.argv[1])
session = client.session()
linear = planewise.RemoteLinear(session, "tiny", {UP!r}, {HIDDEN}, {INTERMEDIATE})
x = torch.ones(2, {HIDDEN}, requires_grad=True)
"""


class DaemonTest(unittest.TestCase):
    """Tests that share one daemon: cls.client, and the directory cls.source to load from."""

    # For the daemon, beside those that every test needs.
    flags = ()

    @classmethod
    def setUpClass(cls):
        # Not TEST_TMPDIR: the path of a Unix socket is short.
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="planewise-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        (cls.folder / "socket").mkdir(mode=0o700)
        cls.source = cls.folder / "tiny-bert"
        cls.tensors = random_tensors(seed=11)
        write_model(cls.source, CONFIG, cls.tensors)
        cls.target = f"unix://{cls.folder}/socket/planewise.sock"
        cls.daemon = subprocess.Popen(
            [
                PLANEWISED,
                f"--listen={cls.target}",
                f"--store={cls.folder}/store",
                f"--root={cls.folder}",
                "--memory-limit=1GiB",
                "--log-level=error",
                *cls.flags,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        cls.addClassCleanup(cls._stop)
        # The daemon prints a line once it listens; none if it could not start.
        if not cls.daemon.stdout.readline():
            raise RuntimeError(f"{PLANEWISED} did not start")
        cls.client = planewise.Client(cls.target, name="python-test")
        cls.addClassCleanup(cls.client.close)

    @classmethod
    def _stop(cls):
        cls.daemon.kill()
        cls.daemon.wait()
        cls.daemon.stdout.close()

    def create(self, name, recipe=None, **options):
        """Hosts the tiny model until the test ends."""
        model = self.client.create_model(
            name, self.source, recipe or planewise.MXFP8BlockScaling("dequantized"), **options
        )
        self.addCleanup(self.client.delete_model, name)
        return model

    def start_script(self, text):
        """A Python process, with pipes, that runs `text` as another client of the daemon."""
        return subprocess.Popen(
            [sys.executable, "-c", _SCRIPT + text, self.target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        )

    def used_bytes(self):
        """Memory that the daemon counts as used."""
        return int(self.client.capabilities()["memory_used_bytes"])

    def eventually(self, condition):
        """Asks until it is so, or so often that it never will be."""
        for _ in range(200_000):
            if condition():
                return
        self.fail("it never was so")
