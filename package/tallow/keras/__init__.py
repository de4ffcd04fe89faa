"""Keras' API on tallow: layers, models and training with Keras 3's names, arguments and defaults.

    from tallow import keras
    from tallow.keras import layers

    model = keras.Sequential([keras.Input(shape=(784,)), layers.Dense(64, activation="relu"), layers.Dense(10)])

Images have their channels last. A layer is also a `tallow.nn.Module`, so that `model.parameters()`, `state_dict()` and
PyTorch-style training loops work with it.
"""

from __future__ import annotations

from tallow.lazy_names import names_of

MODULES = (
    "activations backend callbacks config constraints datasets dtype_policies initializers layers losses metrics "
    "mixed_precision models ops optimizers preprocessing random regularizers saving tree utils"
)
HOMES = {  # the modules that define Keras' top-level names
    "layers": "Input InputSpec Layer Variable",
    "models": "Model Sequential",
    "dtype_policies": "DTypePolicy FloatDTypePolicy",
    "symbolic": "KerasTensor",
    "losses": "Loss",
    "metrics": "Metric",
    "optimizers": "Optimizer",
    "initializers": "Initializer",
    "regularizers": "Regularizer",
    "rematerialization": "remat",
}
LAZY = {name: f"tallow.keras.{name}" for name in MODULES.split()}  # imported on first access
LAZY |= {name: f"tallow.keras.{home}:{name}" for home, names in HOMES.items() for name in names.split()}

__all__ = list(LAZY)

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
