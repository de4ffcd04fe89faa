"""`tallow train` with a Ctrl-C that only the last rank gets, in the step that the first argument says."""

import signal
import sys

from tallow.cli import main
from tallow.distributed import get_rank, get_world_size
from tallow.training.language_modelling import LanguageModelTraining

at = int(sys.argv.pop(1))
learn = LanguageModelTraining.learn


def learn_and_interrupt(self):
    if self.step == at and get_rank() == get_world_size() - 1:
        signal.raise_signal(signal.SIGINT)
    return learn(self)


LanguageModelTraining.learn = learn_and_interrupt
sys.exit(main())
