"""Optimizers, as torch.optim: one file each, the base in `optimizer`, learning rates over time in `lr_scheduler`."""

from tallow.names import names_of
from tallow.optim import lr_scheduler
from tallow.optim.adadelta import Adadelta
from tallow.optim.adagrad import Adagrad
from tallow.optim.adam import Adam, AdamW
from tallow.optim.adamax import Adamax
from tallow.optim.lbfgs import LBFGS
from tallow.optim.lion import Lion
from tallow.optim.nadam import NAdam
from tallow.optim.optimizer import Optimizer
from tallow.optim.radam import RAdam
from tallow.optim.rmsprop import RMSprop
from tallow.optim.rprop import Rprop
from tallow.optim.sgd import SGD

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]

__getattr__, __dir__ = names_of(__name__, later={"swa_utils": "tallow.optim.swa_utils"})
