"""LoRA adapters in plain torch, whose parameters are named as PEFT names them."""

import math

from torch import nn


class LoraLinear(nn.Module):
    """A linear layer plus a trained update of low rank: base(x) + scale · B(A(x)).

    A and B compute in float32, whatever the base's type. B begins at 0, so that the model is
    unchanged until it trains.
    """

    def __init__(self, base_layer, rank, scale):
        super().__init__()
        self.base_layer = base_layer
        self.scale = scale
        self.lora_A = nn.Linear(base_layer.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base_layer.out_features, bias=False)
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x):
        y = self.base_layer(x)
        return (y + self.scale * self.lora_B(self.lora_A(x.float()))).to(y.dtype)


def add_adapters(model, rank, scale):
    """Freezes `model` and puts adapters around every linear layer in it."""
    model.requires_grad_(False)
    linears = [name for name, module in model.named_modules() if type(module) is nn.Linear]
    for name in linears:
        parent, _, child = name.rpartition(".")
        adapted = LoraLinear(model.get_submodule(name), rank, scale)
        setattr(model.get_submodule(parent), child, adapted)
