"""The connection to a daemon: control calls and reading weights."""

import ctypes
import json
import math
import threading
import warnings
import weakref

from planewise._choices import enumerator, one_of
from planewise._library import ClientOptions, PlaceCallback, ProgressCallback, library
from planewise._native import Native, check_not_forked, close_at_exit
from planewise.dtypes import DataType
from planewise.errors import check
from planewise.recipes import BACKWARD_OVERRIDES, as_recipe
from planewise.session import Session

_PLANE_POLICIES = ("auto", "both", "row_only")
_NON_FINITE_POLICIES = ("reject", "format")


class WeightPart:
    """One tensor that read_weights brought.

    Attributes: weight (name), version, plane that was read ("row", "column" or
    "high_precision"), part ("payload", "scales" or "state"; dequantized values are a payload),
    data_type, shape, data (bytearray).
    """

    PLANES = {1: "row", 2: "column", 3: "high_precision"}
    _PARTS = {1: "payload", 2: "scales", 3: "state"}

    def __init__(self, header):
        self.weight = header.weight.decode()
        self.version = header.version
        self.plane = self.PLANES[header.plane]
        self.part = self._PARTS[header.part]
        self.data_type = DataType(header.data_type)
        self.shape = tuple(header.shape[i] for i in range(header.rank))
        self.data = bytearray(header.size_bytes)

    def to_torch(self):
        """A tensor over the same memory; codes and scales as uint8."""
        import torch

        from planewise.dtypes import to_torch

        if not self.data:
            return torch.empty(self.shape, dtype=to_torch(self.data_type))
        return torch.frombuffer(self.data, dtype=to_torch(self.data_type)).reshape(self.shape)


class Client:
    """A connection to a daemon. Thread-safe; a context manager.

    Its sessions keep the connection as long as they live, also without the Client. Processes that
    are forked after the first Client cannot use it or make one: gRPC's threads stay behind.

    Args:
      target: "unix:///PATH" or "HOST:PORT". None: $PLANEWISE_TARGET, else the daemon's default.
      token: for TCP. None: $PLANEWISE_TOKEN.
      name: shown by the daemon's tools.
      connect_timeout_s: how long to try to reach the daemon, now and in later calls.

    Every method raises a subclass of PlanewiseError.
    """

    def __init__(self, target=None, token=None, name="planewise-python", connect_timeout_s=30.0):
        options = ClientOptions(
            struct_size=ctypes.sizeof(ClientOptions),
            target=target.encode() if target else None,
            token=token.encode() if token else None,
            client_name=name.encode(),
            # 0 would mean the library's default.
            connect_timeout_ms=max(1, math.ceil(connect_timeout_s * 1000)),
        )
        check_not_forked()
        pointer = ctypes.c_void_p()
        self._native = None
        self._sessions = weakref.WeakSet()
        self._adding = threading.Lock()
        check(library.planewise_client_connect(ctypes.byref(options), ctypes.byref(pointer)))
        self._native = Native("client", pointer, library.planewise_client_free)
        close_at_exit(self)
        warning = library.planewise_client_warning(pointer).decode()
        if warning:
            warnings.warn(warning, stacklevel=2)

    @property
    def target(self):
        native = self._open()
        return library.planewise_client_target(native.pointer()).decode()

    def close(self):
        """Closes the sessions and the connection. Idempotent."""
        with self._adding:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()
        self._native = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def session(self, deterministic=True):
        """Opens a Session. close() closes it, too."""
        session = Session(self._open(), deterministic)
        with self._adding:
            self._sessions.add(session)
        return session

    def create_model(
        self,
        name,
        source_path,
        recipe=None,
        plane_policy="auto",
        backward_enabled=True,
        trainable=False,
        future_modes=(),
        non_finite_policy="reject",
        validate_only=False,
        progress=None,
    ):
        """Loads and quantizes a Hugging Face directory on the daemon's disk.

        Args:
          recipe: a Recipe, a format's name, or None for MXFP8 with the environment's override.
          plane_policy: "auto", "both" or "row_only".
          backward_enabled: may any backward run (dX or dW)?
          trainable: is dW wanted?
          future_modes: backward overrides that "auto" keeps planes for.
          non_finite_policy: "reject" or "format".
          progress: called with dicts of stage, object, done_bytes, total_bytes.

        Returns the model as a dict (planewise.v1.Model).
        """
        request = {
            "name": name,
            "source_path": str(source_path),
            "recipe": as_recipe(recipe).to_json(),
            "plane_policy": enumerator("plane_policy", plane_policy, _PLANE_POLICIES),
            "backward_enabled": backward_enabled,
            "trainable": trainable,
            "future_modes": [
                f"BACKWARD_OVERRIDE_{one_of('future_modes', mode, BACKWARD_OVERRIDES).upper()}"
                for mode in future_modes
            ],
            "non_finite_policy": enumerator(
                "non_finite_policy", non_finite_policy, _NON_FINITE_POLICIES
            ),
            "validate_only": validate_only,
        }
        return self.call("CreateModel", request, progress=progress)

    def describe(self, name):
        """The model as a dict (planewise.v1.Model): plan beside what is allocated."""
        return self.call("GetModel", {"name": name})

    def list_models(self):
        """Models without layers, as dicts, all pages."""
        models, token = [], ""
        while True:
            page = self.call("ListModels", {"page_token": token})
            models += page["models"]
            token = page["next_page_token"]
            if not token:
                return models

    def delete_model(self, name, expected_version=0, delete_stored=False):
        request = {"name": name, "expected_version": expected_version}
        return self.call("DeleteModel", {**request, "delete_stored": delete_stored})

    def validate_switch(self, name, recipe):
        """What a switch to `recipe` would need (planewise.v1.ValidateModeSwitchResponse)."""
        return self.call(
            "ValidateModeSwitch", {"name": name, "target": as_recipe(recipe).to_json()}
        )

    def switch_mode(self, name, recipe, fingerprint=None, release_unused_planes=False):
        """Switches to `recipe`; with `fingerprint`, only if nothing moved since that validation."""
        if fingerprint is None:
            fingerprint = self.validate_switch(name, recipe)["fingerprint"]
        request = {
            "name": name,
            "target": as_recipe(recipe).to_json(),
            "fingerprint": fingerprint,
            "release_unused_planes": release_unused_planes,
        }
        return self.call("SwitchMode", request)

    def save(self, name, progress=None):
        """Makes the newest version durable in the daemon's store."""
        return self.call("SaveModel", {"name": name}, progress=progress)

    def verify(self, name, progress=None):
        """Compares loaded and stored bytes with their checksums (planewise.v1.VerifyResult)."""
        return self.call("VerifyModel", {"name": name}, progress=progress)

    def capabilities(self):
        return self.call("GetCapabilities", {})

    def server_config(self):
        return self.call("GetServerConfig", {})["settings"]

    def read_weights(self, name, weights=(), plane=None, dequantize_to=None, version=0):
        """Reads one version's weights: a list of WeightPart.

        Args:
          weights: names of weights and biases; empty: all, and with plane those that
            store it. Biases are stored in the high_precision plane.
          plane: "row", "column" or "high_precision"; or None with
          dequantize_to: a DataType; the row plane's values in that type.
        """
        request = {"name": name, "weights": list(weights), "version": version}
        if plane is not None:
            request["plane"] = enumerator("plane", plane, WeightPart.PLANES.values())
        if dequantize_to is not None:
            request["dequantize_to"] = DataType(dequantize_to).proto_name
        native = self._open()
        parts, failure = [], []

        def place(_, header):
            try:
                part = WeightPart(header.contents)
            except BaseException as error:  # It must not leave a C callback.
                failure.append(error)
                return None
            parts.append(part)
            if not part.data:
                return None
            return ctypes.addressof(ctypes.c_char.from_buffer(part.data))

        error = library.planewise_client_read_weights(
            native.pointer(), json.dumps(request).encode(), PlaceCallback(place), None
        )
        _check_with(failure, error)
        return parts

    def call(self, method, request, timeout_s=0.0, progress=None):
        """One control call by name; request and response are messages of planewise.v1 as dicts."""
        native = self._open()
        failure = []

        def report(_, message):
            try:
                progress(json.loads(message.decode()))
            except BaseException as error:  # KeyboardInterrupt cancels the call.
                failure.append(error)
                return 1
            return 0

        response = ctypes.c_void_p()
        error = library.planewise_client_call(
            native.pointer(),
            method.encode(),
            json.dumps(request).encode(),
            math.ceil(timeout_s * 1000),
            ProgressCallback(report) if progress else ProgressCallback(),
            None,
            ctypes.byref(response),
        )
        try:
            _check_with(failure, error)
            return json.loads(ctypes.string_at(response).decode())
        finally:
            library.planewise_string_free(response)

    def _open(self):
        native = self._native
        if native is None:
            raise ValueError("the client is closed: make another planewise.Client")
        return native


def _check_with(failure, error):
    """As check(), but a callback's own exception goes before what it caused.

    It is raised also if the call was done before the daemon heard of it.
    """
    try:
        check(error)
    finally:
        if failure:
            raise failure[0] from None
