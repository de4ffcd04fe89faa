"""Search of hyperparameters: a Trainer trains with values that each trial chooses, by Optuna or at random.

Source:  names as in transformers' `trainer_utils.py` and `integrations`
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from inspect import signature
from typing import Any, NamedTuple

from tallow.errors import ArgumentError, MissingPackageError, warn
from tallow.transformers.trainer_callback import TrainerCallback

DIRECTIONS = ("minimize", "maximize")
OPTUNA, RANDOM = "optuna", "random"


class BestRun(NamedTuple):
    """The best trial of a search: its number as a text, the objective, and the values."""

    run_id: str
    objective: Any
    hyperparameters: dict[str, Any]
    run_summary: Any = None


def default_compute_objective(metrics: Mapping[str, float]) -> float:
    """Return the sum of all metrics but those of speed, or without any the loss."""
    left = {name: value for name, value in metrics.items() if name not in ("eval_loss", "epoch")}
    left = {name: value for name, value in left.items() if not name.endswith(("_runtime", "_per_second"))}
    return sum(left.values()) if left else metrics["eval_loss"]


def default_hp_space_optuna(trial: Any) -> dict[str, Any]:
    """Return the values of a trial: learning rate, epochs, seed and batch size."""
    return {
        "learning_rate": trial.suggest_float("learning_rate", 1e-6, 1e-4, log=True),
        "num_train_epochs": trial.suggest_int("num_train_epochs", 1, 5),
        "seed": trial.suggest_int("seed", 1, 40),
        "per_device_train_batch_size": trial.suggest_categorical("per_device_train_batch_size", [4, 8, 16, 32, 64]),
    }


class RandomTrial:
    """A trial whose values are drawn at random, with the names of Optuna's.

    Args:    number: the seed of the draws, so that a search can be repeated

    Attributes:
        params: the values.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.params: dict[str, Any] = {}
        self._numbers = random.Random(number)

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False) -> Any:
        """Return a number from `low` to `high`: a multiple of `step` above `low`, or evenly by its logarithm."""
        if step is not None:
            value = low + step * self._numbers.randrange(int((high - low) / step + 1e-9) + 1)
        elif log:
            value = math.exp(self._numbers.uniform(math.log(low), math.log(high)))
        else:
            value = self._numbers.uniform(low, high)
        return self.params.setdefault(name, value)

    def suggest_int(self, name: str, low: int, high: int, step: int = 1, log: bool = False) -> Any:
        """Return a whole number from `low` to `high`, both included."""
        if log:
            value = min(high, int(math.exp(self._numbers.uniform(math.log(low), math.log(high + 1)))))
        else:
            value = self._numbers.randrange(low, high + 1, step)
        return self.params.setdefault(name, value)

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Return one of several values."""
        return self.params.setdefault(name, self._numbers.choice(list(choices)))

    def should_prune(self) -> bool:
        """Return False: no trial ends early."""
        return False


class ObjectiveCallback(TrainerCallback):
    """Keeps the objective of each evaluation of a trial, and ends a trial that Optuna finds bad."""

    def __init__(self, trial: Any, compute: Callable[[dict[str, float]], Any]) -> None:
        self.trial, self.compute = trial, compute
        self.objective: Any = None

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.objective = self.compute(dict(kwargs["metrics"]))
        if isinstance(self.objective, list | tuple) or isinstance(self.trial, RandomTrial):
            return  # Optuna prunes by one number only
        self.trial.report(self.objective, state.global_step)
        if self.trial.should_prune():
            import optuna  # which made the trial

            raise optuna.TrialPruned()


def chosen_backend(backend: Any) -> str:
    """Return the backend of a search.

    Args:    backend: "optuna" or "random"; None means Optuna
    Raises:  MissingPackageError without Optuna; ArgumentError for another backend
    """
    name = OPTUNA if backend is None else str(getattr(backend, "value", backend)).lower()
    if name not in (OPTUNA, RANDOM):
        raise ArgumentError(f"backend={backend!r:.80}", hint='pass "optuna", or "random", which needs no package')
    if name == OPTUNA and find_spec("optuna") is None:
        raise MissingPackageError("optuna", "hyperparameter_search (backend='random' needs no package)", "optuna")
    return name


def values_for(arguments: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are training arguments, of their types; warn of others."""
    found = {}
    for name, value in values.items():
        if not hasattr(arguments, name):
            warn(f"hyperparameter_search: TrainingArguments has no {name}, which has no effect")
            continue
        former = getattr(arguments, name)
        found[name] = value if former is None else type(former)(value)
    return found


class TrainerSearch:
    """Adds `hyperparameter_search` to a Trainer."""

    args: Any
    model_init: Any
    _trial: Any = None  # that trains now

    def call_model_init(self, trial: Any = None) -> Any:
        """Return a new model, by `model_init`, which may take the trial of a search.

        Raises:  ArgumentError if it takes more, or returns None
        """
        names = signature(self.model_init).parameters.values()
        taken = [each for each in names if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        needed = sum(each.default is each.empty for each in taken)
        if needed > 1:
            raise ArgumentError(f"model_init needs {needed} arguments", hint="it takes none, or the trial")
        takes_trial = needed == 1 or (len(taken) == 1 and trial is not None)
        model = self.model_init(trial) if takes_trial else self.model_init()
        if model is None:
            raise ArgumentError("model_init returned None", hint="return the model")
        return model

    def hyperparameter_search(
        self,
        hp_space: Callable[[Any], dict[str, Any]] | None = None,
        compute_objective: Callable[[dict[str, float]], Any] | None = None,
        n_trials: int = 20,
        direction: str | list[str] = "minimize",
        backend: Any = None,
        hp_name: Callable[[Any], str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Train several times with other training arguments, and return the best run.

        The arguments are afterwards those of before.

        Args:
            hp_space: function from a trial to training arguments, by the trial's `suggest_float`, `suggest_int` and
                `suggest_categorical`; None means `default_hp_space_optuna`.
            compute_objective: function from metrics to a number, or with several directions a tuple; None means
                `default_compute_objective`.
            n_trials: how often to train.
            direction: "minimize", "maximize", or a list of them.
            backend: "optuna", or "random", which draws all values at random and needs no package; None means "optuna".
            hp_name: function from a trial to the name of its folder in `output_dir`; None means run-0, run-1, ...
            kwargs: of `optuna.create_study`, and `timeout`, `n_jobs` and `gc_after_trial` of `Study.optimize`.

        Returns: a BestRun; with several directions a list of them
        Raises:  ArgumentError without `model_init`, and for another backend or direction; MissingPackageError
        """
        name = chosen_backend(backend)
        if self.model_init is None:
            raise ArgumentError("hyperparameter_search needs model_init", hint="Trainer(model_init=function)")
        for each in [direction] if isinstance(direction, str) else direction:
            if each not in DIRECTIONS:
                raise ArgumentError(f"direction={each!r:.80}", hint='pass "minimize" or "maximize"')
        space, compute = hp_space or default_hp_space_optuna, compute_objective or default_compute_objective
        run = lambda trial: self._try(trial, space, compute, hp_name)  # noqa: E731
        search = _by_optuna if name == OPTUNA else _at_random
        return search(run, n_trials, direction, kwargs)

    def _try(self, trial: Any, space: Any, compute: Any, hp_name: Any) -> Any:
        """Train with the values of a trial, and return the objective."""
        former, noted = copy.copy(vars(self.args)), ObjectiveCallback(trial, compute)
        self._trial = trial
        self.add_callback(noted)  # type: ignore[attr-defined]
        try:
            for name, value in values_for(self.args, space(trial)).items():
                setattr(self.args, name, value)
            folder = hp_name(trial) if hp_name is not None else f"run-{trial.number}"
            self.args.output_dir = f"{former['output_dir']}/{folder}"
            self.train()  # type: ignore[attr-defined]
            if noted.objective is None:
                self.evaluate()  # type: ignore[attr-defined]
            return noted.objective
        finally:
            self._trial = None
            self.remove_callback(noted)  # type: ignore[attr-defined]
            vars(self.args).update(former)


def _by_optuna(run: Callable[[Any], Any], count: int, direction: Any, options: dict[str, Any]) -> Any:
    import optuna  # optional: `chosen_backend` has found it

    own = {name: options.pop(name) for name in ("timeout", "n_jobs", "gc_after_trial") if name in options}
    if own.get("n_jobs", 1) != 1:
        raise ArgumentError(f"n_jobs={own['n_jobs']!r:.80}: trials share one Trainer", hint="leave n_jobs out")
    several = not isinstance(direction, str)
    study = optuna.create_study(**{"directions" if several else "direction": direction}, **options)
    study.optimize(run, n_trials=count, **own)
    best = study.best_trials if several else [study.best_trial]
    runs = [BestRun(str(trial.number), trial.values if several else trial.value, trial.params) for trial in best]
    return runs if several else runs[0]


def _at_random(run: Callable[[Any], Any], count: int, direction: Any, options: dict[str, Any]) -> Any:
    if options or not isinstance(direction, str) or count < 1:
        given = ", ".join(options) or f"direction={direction!r}, n_trials={count}"
        raise ArgumentError(f"backend='random' does not take {given:.200}", hint="pass backend='optuna'")
    trials = [RandomTrial(number) for number in range(count)]
    sign = 1 if direction == "minimize" else -1
    found = [(sign * run(trial), trial) for trial in trials]
    value, best = min(found, key=lambda pair: (math.isnan(pair[0]), pair[0]))  # NaN, of a run that diverged, is worst
    return BestRun(str(best.number), sign * value, best.params)
