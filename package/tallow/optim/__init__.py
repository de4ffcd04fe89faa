"""Optimizers, as torch.optim: one file each, the base class in `optimizer`, schedules in `lr_scheduler`."""

from tallow.lazy_names import names_of
from tallow.optim import lr_scheduler
from tallow.optim.adadelta import Adadelta
from tallow.optim.adafactor import Adafactor
from tallow.optim.adagrad import Adagrad
from tallow.optim.adam import Adam, AdamW
from tallow.optim.adamax import Adamax
from tallow.optim.asgd import ASGD
from tallow.optim.lbfgs import LBFGS
from tallow.optim.lion import Lion
from tallow.optim.muon import Muon
from tallow.optim.nadam import NAdam
from tallow.optim.optimizer import Optimizer
from tallow.optim.radam import RAdam
from tallow.optim.rmsprop import RMSprop
from tallow.optim.rprop import Rprop
from tallow.optim.sgd import SGD
from tallow.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]

__getattr__, __dir__ = names_of(__name__, lazy={"swa_utils": "tallow.optim.swa_utils"})
