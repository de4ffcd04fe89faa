"""Learning rate schedules, as torch.optim.lr_scheduler."""

from tallow.lazy_names import names_of
from tallow.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from tallow.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from tallow.optim.lr_scheduler.cyclic import CyclicLR
from tallow.optim.lr_scheduler.decay import ConstantLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR, StepLR
from tallow.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR
from tallow.optim.lr_scheduler.one_cycle import OneCycleLR
from tallow.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tallow.optim.lr_scheduler.scheduler import LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

__getattr__, __dir__ = names_of(__name__)
