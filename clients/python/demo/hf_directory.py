"""Hugging Face model directories: config.json and one model.safetensors, all F32.

Needs numpy and torch only. Not here: other dtypes, shards (the daemon reads these, too).
"""

import json
import math
import struct

import numpy
import torch

_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
# The header is padded so that the values behind it are aligned.
_ALIGNMENT = 8


def write_model(directory, config, tensors):
    """Makes `directory` from a dict for config.json and {name: float32 tensor}."""
    directory.mkdir()
    (directory / _CONFIG).write_text(json.dumps(config), encoding="utf-8")
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with open(directory / _WEIGHTS, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.detach().numpy().astype("<f4").tobytes())


def read_config(directory):
    return json.loads((directory / _CONFIG).read_text(encoding="utf-8"))


def read_tensors(directory):
    """{name: float32 tensor} of what write_model() wrote."""
    with open(directory / _WEIGHTS, "rb") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(header_bytes))
        data = file.read()
    return {
        name: torch.from_numpy(
            numpy.frombuffer(
                data, "<f4", count=math.prod(entry["shape"]), offset=entry["data_offsets"][0]
            ).reshape(entry["shape"]).copy()
        )
        for name, entry in header.items()
    }
