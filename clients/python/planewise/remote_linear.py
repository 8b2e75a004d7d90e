"""A linear layer whose weight the daemon owns, as a torch module.

    y = RemoteLinear(session, "minilm", "encoder.layer.0.attention.self.query", 384, 384)(x)

Forward sends X and brings Y; backward sends dY and brings dX and, where a master weight trains, dW.
Tensors may have any strides, any leading dimensions, be on any device, and be float32, bfloat16
or float16; the type is kept, and under torch.autocast it is autocast's, as for nn.Linear.
Contiguous CPU tensors are sent from and received into their own memory.
"""

import torch
from torch import nn

from planewise._choices import one_of
from planewise.dtypes import from_torch
from planewise.recipes import BACKWARD_OVERRIDES
from planewise.session import Memory


def _memory(tensor):
    """The memory of a contiguous CPU tensor."""
    return Memory(
        pointer=tensor.data_ptr(),
        size_bytes=tensor.numel() * tensor.element_size(),
        data_type=from_torch(tensor.dtype),
        shape=tuple(tensor.shape),
    )


def _host(tensor):
    """`tensor` itself if its memory is its values in order, on the CPU; else a copy that is so."""
    if tensor.is_contiguous() and not tensor.is_neg() and tensor.device.type == "cpu":
        return tensor
    return tensor.detach().to("cpu").resolve_neg().contiguous()


def _on(device, tensor):
    return tensor if device.type == "cpu" else tensor.to(device)


def _autocast_type(device_type):
    """The type that torch.autocast gives a linear layer's input here; None: it is off."""
    if hasattr(torch, "get_autocast_dtype"):
        enabled, dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
        return dtype(device_type) if enabled(device_type) else None
    # PyTorch before 2.4 has a pair of functions for each device.
    if device_type == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


# torch.compile cannot look into the C library: it runs what is around it.
_not_compiled = getattr(getattr(torch, "compiler", None), "disable", lambda function: function)


class _RemoteLinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, master_weight, master_bias, layer, save_for_backward):
        ctx.layer = layer
        ctx.device = x.device
        ctx.input_shape = x.shape
        ctx.operand = None
        sent = _host(x)
        y = torch.empty((*x.shape[:-1], layer.out_features), dtype=x.dtype)
        forward = layer.session.forward(
            layer.model,
            layer.layer,
            _memory(sent),
            _memory(y),
            save_for_backward=save_for_backward,
            weight_gradient=master_weight is not None and master_weight.requires_grad,
            backward_override=layer.backward_override,
            save_original_input=layer.save_original_input,
        )
        # The graph holds ctx, ctx holds the handle: the operand lives as long as the graph.
        ctx.operand = forward.handle
        ctx.activation = x.dtype
        # Without the handle: a layer outlives the graphs that went through it.
        forward.handle = None
        layer.last_forward = forward
        return _on(ctx.device, y)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        layer = ctx.layer
        want_x, want_weight, want_bias = ctx.needs_input_grad[:3]
        dy = _host(grad_output.to(ctx.activation))
        dx = torch.empty(ctx.input_shape, dtype=ctx.activation) if want_x else None
        shape = (layer.out_features, layer.in_features)
        dw = torch.empty(shape, dtype=torch.float32) if want_weight else None
        db = torch.empty(layer.out_features, dtype=torch.float32) if want_bias else None
        optional = {
            name: _memory(tensor)
            for name, tensor in (("dx", dx), ("dw", dw), ("db", db))
            if tensor is not None
        }
        if optional:
            layer.last_backward = layer.session.backward(ctx.operand, _memory(dy), **optional)
        return (
            _on(ctx.device, dx) if want_x else None,
            dw.to(layer.master_weight) if want_weight else None,
            db.to(layer.master_bias) if want_bias else None,
            None,
            None,
        )


class RemoteLinear(nn.Module):
    """y = x W^T + bias, with W and bias in the daemon.

    Args:
      session: planewise.Session.
      model, layer: names in the daemon.
      in_features, out_features: of W [out_features, in_features].
      backward_override: None: the model's; or "none", "high_precision", "dequantized".
      save_original_input: keep X itself for dW, where the override leaves the choice.
      master_weight, master_bias: parameters that train. Their gradients are the daemon's dW and
        dbias; forward does not read them. None: frozen.

    Under no_grad, and for inputs and masters that need no gradient, the daemon saves nothing. A
    saved operand is released when its graph dies, with or without a backward. A graph can be
    run backward once (no retain_graph), and not twice differentiated. Checkpointing that is not
    reentrant keeps the operands of the first forward: use_reentrant=True saves that memory.

    Copies (copy.deepcopy) compute with the same hosted weight through the same session and have
    masters of their own. state_dict() holds the masters only.

    Attributes: last_forward, last_backward: what the daemon reported (paths, version, bytes).
    """

    def __init__(
        self,
        session,
        model,
        layer,
        in_features,
        out_features,
        backward_override=None,
        save_original_input=False,
        master_weight=None,
        master_bias=None,
    ):
        super().__init__()
        one_of("backward_override", backward_override, (None, *BACKWARD_OVERRIDES))
        self.session = session
        self.model = model
        self.layer = layer
        self.in_features = in_features
        self.out_features = out_features
        self.backward_override = backward_override
        self.save_original_input = save_original_input
        self.register_parameter("master_weight", master_weight)
        self.register_parameter("master_bias", master_bias)
        self.last_forward = None
        self.last_backward = None

    @_not_compiled
    def forward(self, x):
        """x: [..., in_features] → [..., out_features] of the same type and device."""
        autocast = _autocast_type(x.device.type)
        if autocast is not None and x.is_floating_point() and x.dtype != torch.float64:
            x = x.to(autocast)
        weight, bias = self.master_weight, self.master_bias
        save = torch.is_grad_enabled() and any(
            t is not None and t.requires_grad for t in (x, weight, bias)
        )
        return _RemoteLinearFunction.apply(x, weight, bias, self, save)

    def __getattr__(self, name):
        if name in ("weight", "bias"):
            raise AttributeError(
                f"{self.model}/{self.layer} has no {name} here: the daemon has it, "
                "Client.read_weights() reads it, and master_weight and master_bias are what trains"
            )
        return super().__getattr__(name)

    def extra_repr(self):
        return (
            f"{self.model}/{self.layer}, in_features={self.in_features}, "
            f"out_features={self.out_features}"
        )
