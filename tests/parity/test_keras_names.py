"""Coverage of Keras' public names by tallow.keras, by namespace; `pytest -rP` prints the numbers.

A name counts if `tallow.keras` has it in the same namespace. Other files test behaviour.
"""

from __future__ import annotations

import types
from typing import Any

from support.keras_reference import keras

from tallow import keras as ours

LEAST = 0.95  # the share of Keras' public names

# Namespaces that are not counted, with the reason.
NAMESPACES_OUT_OF_SCOPE = {
    "keras.src": "Keras' own source, not public",
    "keras.applications": "pretrained networks, whose weights are downloads; tallow.models has tallow's own",
    "keras.distribution": "layouts of JAX devices; tallow.distributed follows torch.distributed",
    "keras.export": "writes SavedModel and ONNX files through TensorFlow and JAX",
    "keras.quantizers": "weights of 4 and 8 bits for JAX and TensorFlow; tallow reads quantized GGUF files instead",
    "keras.distillation": "a trainer class of its own",
    "keras.legacy": "formats of Keras 1 and 2",
    "keras.optimizers.legacy": "classes that only raise an error",
    "keras.utils.legacy": "formats of Keras 1 and 2",
    "keras.visualization": "drawings of images through matplotlib and OpenCV",
    "keras.wrappers": "estimators for scikit-learn",
}
# Single names that are not counted.
NAMES_OUT_OF_SCOPE = {
    "other backends": (
        "keras.layers.FlaxLayer keras.layers.JaxLayer keras.layers.TFSMLayer keras.layers.TorchModuleWrapper "
        "keras.config.is_nnx_enabled keras.config.set_backend keras.callbacks.OrbaxCheckpoint"
    ),
    "complex numbers, which tallow has no dtype for": (
        "keras.ops.polar keras.ops.nn.polar keras.ops.view_as_complex keras.ops.view_as_real"
    ),
    "what backends that trace a program need": "keras.StatelessScope keras.SymbolicScope",
    "quantized weights": (
        "keras.Quantizer keras.dtype_policies.AWQDTypePolicy keras.dtype_policies.GPTQDTypePolicy "
        "keras.dtype_policies.Int4DTypePolicy keras.dtype_policies.QuantizedDTypePolicy "
        "keras.dtype_policies.QuantizedFloat8DTypePolicy"
    ),
}
LEFT_OUT = {name for names in NAMES_OUT_OF_SCOPE.values() for name in names.split()}


def public_names(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in sorted(dir(module)) if not name.startswith("_")}


def namespaces(module: Any = keras, path: str = "keras") -> dict[str, list[str]]:
    """Return namespace -> its public names, without the modules in it, which are namespaces themselves."""
    members = public_names(module)
    found = {path: [name for name, value in members.items() if not isinstance(value, types.ModuleType)]}
    for name, value in members.items():
        inner = f"{path}.{name}"
        if isinstance(value, types.ModuleType) and inner not in NAMESPACES_OUT_OF_SCOPE:
            found |= namespaces(value, inner)
    return {key: [name for name in names if f"{key}.{name}" not in LEFT_OUT] for key, names in found.items()}


def missing_from(path: str, names: list[str]) -> list[str]:
    module: Any = ours
    for part in path.split(".")[1:]:
        module = getattr(module, part, None)
    return [name for name in names if not hasattr(module, name)]


def test_most_public_names_of_keras_exist() -> None:
    total = present = 0
    for path, names in namespaces().items():
        missing = missing_from(path, names)
        total, present = total + len(names), present + len(names) - len(missing)
        print(f"{path}: {len(names) - len(missing)} of {len(names)}", *missing)
    print(f"all: {present} of {total}, {present / total:.1%}")
    assert present / total >= LEAST


def test_excluded_names_are_names_of_keras() -> None:
    """Excluded names must exist in Keras, so the lists shrink when Keras drops a name."""

    def resolves(path: str) -> bool:
        found: Any = keras
        for part in path.split(".")[1:]:
            found = getattr(found, part, None)
        return found is not None

    assert [path for path in (*NAMESPACES_OUT_OF_SCOPE, *LEFT_OUT) if not resolves(path)] == []
