"""Element types: the API's numbers, names, sizes, and torch's types for them."""

import enum
import functools


class DataType(enum.IntEnum):
    """planewise.v1.DataType. Names are those of safetensors."""

    F32 = 1
    BF16 = 2
    F16 = 3
    F8_E4M3 = 4
    F8_E5M2 = 5
    F8_E8M0 = 6
    U8 = 7

    @property
    def proto_name(self):
        return f"DATA_TYPE_{self.name}"


_TORCH_NAMES = {DataType.F32: "float32", DataType.BF16: "bfloat16", DataType.F16: "float16"}


@functools.lru_cache(maxsize=None)
def from_torch(dtype):
    """The DataType of a torch.dtype that activations may have."""
    for data_type, name in _TORCH_NAMES.items():
        if str(dtype) == f"torch.{name}":
            return data_type
    raise TypeError(
        f"tensors of {dtype} cannot be sent: activations are float32, bfloat16 or float16"
    )


def to_torch(data_type):
    """The torch.dtype that holds a DataType: codes and scales as bytes (uint8)."""
    import torch

    return getattr(torch, _TORCH_NAMES.get(DataType(data_type), "uint8"))
