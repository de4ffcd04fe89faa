"""Keras' API on tallow: layers, models and their training under Keras 3's names, arguments and defaults.

    from tallow import keras
    from tallow.keras import layers

    model = keras.Sequential([keras.Input(shape=(784,)), layers.Dense(64, activation="relu"), layers.Dense(10)])

Images have their channels last, and a layer is a `tallow.nn.Module` as well: `model.parameters()`, `state_dict()` and
loops in PyTorch's manner work on it.
"""

from __future__ import annotations

from tallow.names import names_of

MODULES = (
    "activations backend callbacks config constraints datasets dtype_policies initializers layers losses metrics "
    "mixed_precision models ops optimizers preprocessing random regularizers saving tree utils"
)
HOMES = {  # where Keras' names at the top live
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
LATER = {name: f"tallow.keras.{name}" for name in MODULES.split()}  # imported when they are first asked for
LATER |= {name: f"tallow.keras.{home}:{name}" for home, names in HOMES.items() for name in names.split()}

__all__ = list(LATER)

__getattr__, __dir__ = names_of(__name__, later=LATER)
