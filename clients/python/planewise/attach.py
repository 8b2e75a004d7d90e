"""Replaces the linear layers of a PyTorch model by layers of the daemon.

    remote = planewise.attach(model, client, "minilm")
    print(remote.report())

Not here: loading the model into the daemon (Client.create_model).
"""

from torch import nn

from planewise.remote_linear import RemoteLinear


class Attachment:
    """What attach() did, and the session that the model now uses.

    Attributes:
      session: planewise.Session; ended by close() or with its client.
      replaced: {module name in the model: layer name in the daemon}.
      local: {parameter name: why it stays in this process}.
      freed_bytes: of weights and biases that left this process.
    """

    def __init__(self, session, replaced, local, freed_bytes):
        self.session = session
        self.replaced = replaced
        self.local = local
        self.freed_bytes = freed_bytes

    def end_step(self):
        """Once per optimizer step: later forwards see the newest version of the weights."""
        self.session.end_step()

    def close(self):
        self.session.close()

    def report(self):
        """For people: what left, what stays, and why."""
        lines = [
            f"{len(self.replaced)} linear layers are remote, {self.freed_bytes:,} bytes left "
            "this process"
        ]
        by_reason = {}
        for name, why in self.local.items():
            by_reason.setdefault(why, []).append(name)
        for why, names in by_reason.items():
            shown = ", ".join(names[:3]) + (f", … ({len(names)})" if len(names) > 3 else "")
            lines.append(f"stays local, {why}: {shown}")
        return "\n".join(lines)


def attach(model, client, model_name, prefix=None, trainable=False, session=None, **options):
    """Replaces every nn.Linear of `model` whose weight the daemon hosts by a RemoteLinear.

    A module matches the daemon's layer of the same name, after wrappers' additions are taken
    off: PEFT's `base_model.model.` and `.base_layer`, and the prefix under which a head keeps its
    base model (`bert.`, `model.`). Adapters stay local and train as before.

    Args:
      model: an nn.Module; changed in place.
      client: planewise.Client.
      model_name: in the daemon.
      prefix: what to take off module names instead of finding it out.
      trainable: keep each weight and bias as a local master parameter that receives dW and
        dbias. False: frozen, and their memory is given back.
      session: to share one; None: a new one.
      options: for RemoteLinear (backward_override, save_original_input).

    Returns an Attachment. Raises ValueError if shapes differ, if a bias is on one side only, if a
    weight is shared with a module that stays local, or if nothing matches.
    """
    layers = {layer["name"]: layer for layer in client.describe(model_name)["layers"]}
    matches = _match(model, layers, prefix)
    if not matches:
        examples = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
        raise ValueError(
            f"no linear layer of this model is hosted in {model_name!r}: the model has "
            f"{examples[:3]}, the daemon has {sorted(layers)[:3]}; pass prefix= if names differ"
        )
    _check(model, matches, layers, model_name)

    session = session or client.session()
    freed_bytes = 0
    for name, layer_name in matches.items():
        linear = model.get_submodule(name)
        remote = RemoteLinear(
            session,
            model_name,
            layer_name,
            linear.in_features,
            linear.out_features,
            master_weight=linear.weight if trainable else None,
            master_bias=linear.bias if trainable else None,
            **options,
        )
        remote.train(linear.training)
        if not trainable:
            freed_bytes += sum(p.numel() * p.element_size() for p in linear.parameters())
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, remote)
    return Attachment(session, matches, _local(model), freed_bytes)


def _match(model, layers, prefix):
    """{module name: layer name} for the linear layers that the daemon hosts."""
    linears = {
        name: _without_wrappers(name)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    }
    # A head keeps its base model under a name of its own; the one under which most layers are
    # found is it.
    prefixes = [prefix] if prefix is not None else sorted(_prefixes(linears.values(), layers))
    best = {}
    for candidate in prefixes:
        found = {
            name: plain[len(candidate) :]
            for name, plain in linears.items()
            if plain.startswith(candidate) and plain[len(candidate) :] in layers
        }
        if len(found) > len(best):
            best = found
    return best


def _without_wrappers(name):
    """A module's name without what PEFT put around it."""
    if name.startswith("base_model.model."):
        name = name[len("base_model.model.") :]
    return name[: -len(".base_layer")] if name.endswith(".base_layer") else name


def _prefixes(names, layers):
    """What stands before a layer's name in any of `names`, with its dot."""
    found = set()
    for name in names:
        parts = name.split(".")
        for count in range(len(parts)):
            if ".".join(parts[count:]) in layers:
                found.add("".join(part + "." for part in parts[:count]))
    return found


def _check(model, matches, layers, model_name):
    """Raises ValueError for what would compute something else than the local layer."""
    owners = {}
    for name, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            owners.setdefault(id(parameter), []).append(name)
    for name, layer_name in matches.items():
        linear = model.get_submodule(name)
        hosted = layers[layer_name]
        shape = [int(size) for size in hosted["weight"]["shape"]]
        if list(linear.weight.shape) != shape:
            raise ValueError(
                f"{name}: weight {list(linear.weight.shape)} here, {shape} in "
                f"{model_name}/{layer_name}; is this the model that was loaded?"
            )
        if (linear.bias is not None) != hosted["has_bias"]:
            has = {True: "a bias", False: "no bias"}
            raise ValueError(
                f"{name}: {has[linear.bias is not None]} here, {has[hosted['has_bias']]} in "
                f"{model_name}/{layer_name}"
            )
        local_owners = [owner for owner in owners[id(linear.weight)] if owner not in matches]
        if local_owners:
            raise ValueError(
                f"{name}: its weight is tied to {', '.join(local_owners)}, which stays local; "
                "untie them first"
            )


def _local(model):
    """{parameter name: why it stays}, for what the model still holds."""
    local = {}
    for module_name, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            full = f"{module_name}.{name}" if module_name else name
            if isinstance(module, RemoteLinear):
                why = "master weight of a remote layer"
            elif "lora_" in full:
                why = "adapter"
            elif isinstance(module, nn.Embedding):
                why = "embedding"
            elif isinstance(module, nn.Linear):
                why = "linear layer that the daemon does not host (a head, or tied)"
            else:
                why = "norms and the rest"
            local[full] = why
    return local
