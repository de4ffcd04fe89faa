"""Training runs that can be stopped after any step and resumed to the same final weights.

`Training` is the base class: steps, a learning rate schedule, validation and checkpoints.
`LanguageModelTraining` trains language models on texts, in one process or several; `tallow train` is its command.
"""

from tallow.lazy_names import names_of
from tallow.training.language_modelling import LanguageModelSettings, LanguageModelTraining
from tallow.training.progress import follow, interruption
from tallow.training.run import Settings, Training, learning_rate_factor

__all__ = [
    "LanguageModelSettings",
    "LanguageModelTraining",
    "Settings",
    "Training",
    "follow",
    "interruption",
    "learning_rate_factor",
]

__getattr__, __dir__ = names_of(__name__)
