"""Replaces the linear layers of a PyTorch model by layers of the daemon.

    remote = planewise.attach(model, client, "minilm")
    print(remote.report())

Not here: loading the model into the daemon (Client.create_model), what stays local
(local_parameters.py).
"""

from torch import nn

from planewise.dtypes import DataType
from planewise.local_parameters import local_parameters, report, size_bytes, without_wrappers
from planewise.remote_linear import RemoteLinear

# How far a weight may be from its quantized form, as a part of its norm. MXFP8 rounds to four
# significant bits, which is at most 1/16 of a value; the rest is for what blocks flush to zero.
_QUANTIZATION_ERROR_MAX = 0.1

# Where a module keeps functions that are called around its forward.
_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


class Attachment:
    """What attach() did, and the session that the model now uses. A context manager.

    Attributes:
      session: planewise.Session; ended by close() or with its client.
      replaced: {module name in the model: layer name in the daemon}.
      local: {parameter name: why it stays in this process}.
      freed_bytes: of weights and biases that left this process.
    """

    def __init__(self, session, replaced, local, freed_bytes):
        self.session = session
        self.replaced = replaced
        self.freed_bytes = freed_bytes
        self._local = local

    @property
    def local(self):
        return {parameter.name: parameter.why for parameter in self._local}

    def end_step(self):
        """Once per optimizer step: later forwards see the newest version of the weights."""
        self.session.end_step()

    def close(self):
        """Ends the session. The model computes again once it is attached again."""
        self.session.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def report(self):
        """For people: what left, what stays, and why."""
        left = f"{len(self.replaced)} linear layers are remote"
        if self.freed_bytes:
            left += f", {self.freed_bytes:,} bytes left this process"
        return f"{left}\n{report(self._local)}"


def attach(
    model,
    client,
    model_name,
    prefix=None,
    trainable=False,
    session=None,
    check_values=True,
    **options,
):
    """Replaces every nn.Linear of `model` whose weight the daemon hosts by a RemoteLinear.

    A module matches the daemon's layer of the same name, after wrappers' additions are taken
    off: PEFT's `base_model.model.` and `.base_layer`, and the prefix under which a head keeps its
    base model (`bert.`, `model.`). Adapters stay local and train as before.

    Attached again, the model's remote layers go over to the new session: that is how to go on
    after the daemon was restarted.

    Args:
      model: an nn.Module; changed in place. Its linear layers may be on the meta device.
      client: planewise.Client.
      model_name: in the daemon.
      prefix: what to take off module names instead of finding it out.
      trainable: keep each weight and bias as a local master parameter that receives dW and
        dbias, of a model that was created trainable. False: frozen, and their memory is given back.
      session: to share one; None: a new one.
      check_values: read one weight back and refuse if it is not the model's, as far as
        quantization lets that be seen. Not for masters, which move away as they train.
      options: for RemoteLinear (backward_override, save_original_input).

    Returns an Attachment. Raises ValueError, and changes nothing, if shapes or values differ, if a
    bias is on one side only, if a parameter is shared with a module that stays local, if a layer
    has hooks, which would be lost, or if nothing matches.
    """
    hosted = client.describe(model_name)
    if hosted["state"] != "MODEL_STATE_SERVING":
        state = hosted["state"].replace("MODEL_STATE_", "").lower()
        raise ValueError(f"{model_name!r} is {state}, required serving: describe() says when it is")
    if trainable and not hosted["trainable"]:
        raise ValueError(
            f"{model_name!r} was created with trainable=False, so that it gives no dW: create it "
            "with trainable=True"
        )
    layers = {layer["name"]: layer for layer in hosted["layers"]}
    modules = {
        name: module
        for name, module in model.named_modules(remove_duplicate=False)
        if _may_be_remote(module)
    }
    matches = _match(modules, layers, prefix)
    if not matches:
        raise ValueError(
            f"no linear layer of this model is hosted in {model_name!r}: the model has "
            f"{list(modules)[:3]}, the daemon has {sorted(layers)[:3]}; pass prefix= if names "
            "differ"
        )
    for name, layer_name in matches.items():
        where = f"{model_name}/{layer_name}"
        _check_layer(name, modules[name], layers[layer_name], where, trainable)
    leaving = {id(modules[name]) for name in matches}
    _check_sharing(model, leaving)
    if check_values and not trainable:
        _check_values(client, model_name, modules, matches, layers)

    own_session = session or client.session()
    remotes = {}
    for name, layer_name in matches.items():
        local = modules[name]
        remotes[id(local)] = _remote(
            local, own_session, model_name, layer_name, trainable, options
        )
    freed = {}
    # A module may be in the model more than once, under names that the daemon does not know.
    for name, local in modules.items():
        if id(local) not in remotes:
            continue
        if not trainable:
            freed.update((id(p), size_bytes(p)) for p in local.parameters())
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, remotes[id(local)])
    return Attachment(own_session, matches, local_parameters(model), sum(freed.values()))


def _may_be_remote(module):
    """Only what computes what nn.Linear does: its subclasses may do something else."""
    return type(module) is nn.Linear or isinstance(module, RemoteLinear)


def _match(modules, layers, prefix):
    """{module name: layer name} for the modules that the daemon hosts."""
    plain = {name: without_wrappers(name) for name in modules}
    # A head keeps its base model under a name of its own; the one under which most layers are
    # found is it.
    prefixes = [prefix] if prefix is not None else sorted(_prefixes(plain.values(), layers))
    best = {}
    for candidate in prefixes:
        found = {
            name: short[len(candidate) :]
            for name, short in plain.items()
            if short.startswith(candidate) and short[len(candidate) :] in layers
        }
        if len(found) > len(best):
            best = found
    return best


def _prefixes(names, layers):
    """What stands before a layer's name in any of `names`, with its dot."""
    found = set()
    for name in names:
        parts = name.split(".")
        for count in range(len(parts)):
            if ".".join(parts[count:]) in layers:
                found.add("".join(part + "." for part in parts[:count]))
    return found


def _check_layer(name, module, hosted, where, trainable):
    """Raises ValueError if the hosted layer would compute something else than `module`."""
    shape = [module.out_features, module.in_features]
    hosted_shape = [int(size) for size in hosted["weight"]["shape"]]
    if shape != hosted_shape:
        raise ValueError(
            f"{name}: weight {shape} here, {hosted_shape} in {where}; is this the model that was "
            "loaded?"
        )
    if isinstance(module, RemoteLinear):
        if trainable and module.master_weight is None:
            raise ValueError(
                f"{name}: attached frozen before, so that there is no weight here to train; "
                "attach a fresh model with trainable=True"
            )
        return
    has_bias = module.bias is not None
    if has_bias != hosted["has_bias"]:
        has = {True: "a bias", False: "no bias"}
        raise ValueError(
            f"{name}: {has[has_bias]} here, {has[hosted['has_bias']]} in {where}; is this the "
            "model that was loaded?"
        )
    if "forward" in vars(module) or any(getattr(module, hooks, None) for hooks in _HOOKS):
        raise ValueError(
            f"{name}: has hooks or a forward of its own, which would be lost; attach first, then "
            "register them"
        )


def _check_sharing(model, leaving):
    """Raises ValueError if a module that stays local holds a parameter of one that leaves.

    leaving: ids of modules.
    """
    gone, kept = {}, {}
    for name, module in model.named_modules():
        owners = gone if id(module) in leaving else kept
        for which, parameter in module.named_parameters(recurse=False):
            owners.setdefault(id(parameter), (name, which))
    for parameter in gone.keys() & kept.keys():
        name, which = gone[parameter]
        other = ".".join(kept[parameter]).lstrip(".")
        raise ValueError(
            f"{name}: its {which} is tied to {other}, which stays local; untie them first"
        )


def _check_values(client, model_name, modules, matches, layers):
    """Raises ValueError if the smallest weight is not what is hosted under its name."""
    here = [
        name
        for name in matches
        if isinstance(modules[name], nn.Linear) and not modules[name].weight.is_meta
    ]
    if not here:
        return
    name = min(here, key=lambda name: modules[name].weight.numel())
    weight = modules[name].weight.detach().to("cpu").double()
    (part,) = client.read_weights(
        model_name, [layers[matches[name]]["weight"]["name"]], dequantize_to=DataType.F32
    )
    distance = (part.to_torch().double() - weight).norm().item()
    norm = weight.norm().item()
    if distance > _QUANTIZATION_ERROR_MAX * norm:
        raise ValueError(
            f"{name}: its values are not those of {model_name}/{matches[name]}: they differ by "
            f"{distance:.3g} where quantization explains at most "
            f"{_QUANTIZATION_ERROR_MAX * norm:.3g}; attach the model that was loaded, or pass "
            "check_values=False"
        )


def _remote(local, session, model_name, layer_name, trainable, options):
    """The RemoteLinear that takes the place of `local`."""
    names = ("weight", "bias")
    if isinstance(local, RemoteLinear):
        names = ("master_weight", "master_bias")
    weight, bias = (getattr(local, name) if trainable else None for name in names)
    remote = RemoteLinear(
        session,
        model_name,
        layer_name,
        local.in_features,
        local.out_features,
        master_weight=weight,
        master_bias=bias,
        **options,
    )
    return remote.train(local.training)
