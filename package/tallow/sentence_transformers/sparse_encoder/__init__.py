"""Weights of tokens for texts: the model, its losses and its trainer. Names are imported at first use."""

from tallow.lazy_names import names_of

_HOMES = {
    "model": "SparseEncoder",
    "trainer": "SparseEncoderTrainer",
    "training_args": "SparseEncoderTrainingArguments",
    "losses": "",
    "callbacks": "SpladeRegularizerWeightSchedulerCallback",
}
_LAZY = {name: f"{__name__}.{home}:{name}" for home, names in _HOMES.items() for name in names.split()}
_LAZY |= {home: f"{__name__}.{home}" for home in _HOMES}

__all__ = list(_LAZY)

__getattr__, __dir__ = names_of(__name__, _LAZY)
