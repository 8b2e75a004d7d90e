"""What an attached model still holds in this process, and why."""

from dataclasses import dataclass

from torch import nn

from planewise.remote_linear import RemoteLinear


@dataclass(frozen=True)
class LocalParameter:
    name: str
    why: str
    size_bytes: int  # 0 for one that an earlier line has counted: tied
    trains: bool


def without_wrappers(name):
    """A module's or parameter's name without what PEFT put around it."""
    if name.startswith("base_model.model."):
        name = name[len("base_model.model.") :]
    return name[: -len(".base_layer")] if name.endswith(".base_layer") else name


def size_bytes(parameter):
    """Of its memory: 0 on the meta device."""
    return 0 if parameter.is_meta else parameter.numel() * parameter.element_size()


def local_parameters(model):
    """A LocalParameter for each one that `model` holds, in its order.

    lm_head is what the model itself names as its output embeddings.
    """
    found = []
    seen = set()
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    for module_name, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            full = f"{module_name}.{name}" if module_name else name
            tied = id(parameter) in seen
            seen.add(id(parameter))
            found.append(
                LocalParameter(
                    name=full,
                    why="tied weight" if tied else _why(module, full, module is head),
                    size_bytes=0 if tied else size_bytes(parameter),
                    trains=parameter.requires_grad,
                )
            )
    return found


def _why(module, parameter_name, is_head):
    if is_head:
        return "lm_head"
    if isinstance(module, RemoteLinear):
        return "master of a remote layer"
    if "lora_" in parameter_name:
        return "adapter"
    if isinstance(module, nn.Embedding):
        return "embedding"
    if isinstance(module, nn.Linear):
        return "linear, not hosted"
    return "norm" if "norm" in type(module).__name__.lower() else "other"


def report(parameters):
    """A table: one line for each reason, with one name of those that it stands for."""
    by_why = {}
    for parameter in parameters:
        by_why.setdefault(parameter.why, []).append(parameter)
    lines = [f"{'stays local':<26}{'tensors':>8}{'bytes':>16}  trains  for example"]
    for why, group in by_why.items():
        total = sum(parameter.size_bytes for parameter in group)
        training = sum(parameter.trains for parameter in group)
        trains = {0: "no", len(group): "yes"}.get(training, "some")
        example = without_wrappers(group[0].name)
        lines.append(f"{why:<26}{len(group):>8}{total:>16,}  {trains:<6}  {example}")
    return "\n".join(lines)
