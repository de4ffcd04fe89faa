"""Run `tallow train` with an event in the last rank.

Arguments: the file for a rank's output, which gets the rank as suffix; the event, and its step; and those of `tallow`.
"""

import signal
import sys

import tallow.distributed as dist
from tallow.cli import main
from tallow.training.language_modelling import LanguageModelTraining

output, event, at, *arguments = sys.argv[1:]
dist.init_process_group()
sys.stderr = open(f"{output}.{dist.get_rank()}", "w", buffering=1)  # noqa: SIM115 - until exit
is_last = dist.get_rank() == dist.get_world_size() - 1
learn = LanguageModelTraining.learn


def learn_until(self):
    if is_last and self.step == int(at):
        if event == "Ctrl-C":
            signal.raise_signal(signal.SIGINT)
        elif event == "error":
            raise OSError(5, "the disk is gone", "data")
    return learn(self)


LanguageModelTraining.learn = learn_until
if is_last and event == "options":  # as if every machine had a script of its own
    arguments += ["--clip", "2"]
sys.exit(main(arguments))
