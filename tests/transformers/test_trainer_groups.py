"""Groups of training arguments, searches of hyperparameters, samples for XLNet, and variants of weights."""

from __future__ import annotations

import dataclasses
import math
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both
from tests.transformers.folders import Folders

import tallow as tl
from tallow import transformers as mine
from tallow.errors import ArgumentError, CheckpointError

# The methods, and arguments that differ from the defaults.
GROUPS: dict[str, dict[str, Any]] = {
    "set_training": {"learning_rate": 1e-3, "batch_size": 4, "num_epochs": 2, "max_steps": 9, "seed": 7},
    "set_evaluate": {"strategy": "steps", "steps": 5, "batch_size": 3, "delay": 1.0, "loss_only": True},
    "set_testing": {"batch_size": 2, "loss_only": True},
    "set_save": {"strategy": "epoch", "total_limit": 2},
    "set_logging": {"strategy": "epoch", "first_step": True},
    "set_push_to_hub": {"model_id": "me/mine", "strategy": "end", "private_repo": True},
    "set_optimizer": {"name": "adafactor", "learning_rate": 1e-4, "beta1": 0.8, "weight_decay": 0.1},
    "set_lr_scheduler": {"name": "cosine", "num_epochs": 4, "warmup_steps": 6},
    "set_dataloader": {"train_batch_size": 5, "drop_last": True, "num_workers": 1, "sampler_seed": 3},
}


def test_groups_of_arguments(tmp_path: Path) -> None:
    """Transformers' arguments need accelerate; its methods set attributes alone, of any object."""
    real = pytest.importorskip("transformers")
    names = {each.name for each in dataclasses.fields(mine.TrainingArguments)} - {"report_to"}
    for method, arguments in GROUPS.items():
        for chosen in (arguments, {"model_id": "a/b"} if method == "set_push_to_hub" else {}):
            ours, theirs = mine.TrainingArguments(str(tmp_path)), SimpleNamespace()
            assert getattr(ours, method)(**chosen) is ours
            getattr(real.TrainingArguments, method)(theirs, **chosen)
            expected = {name: value for name, value in vars(theirs).items() if name in names}
            assert expected
            for name, value in expected.items():
                own = getattr(ours, name)
                assert getattr(own, "value", own) == (getattr(value, "value", value) or own), (method, name)
    for method in ("set_evaluate", "set_save", "set_logging"):
        with pytest.raises(ArgumentError, match="steps"):
            getattr(mine.TrainingArguments(str(tmp_path)), method)(strategy="steps", steps=0)


class Line(tl.nn.Module):
    """y = a x, which fits the samples where a is 2."""

    def __init__(self) -> None:
        super().__init__()
        self.a = tl.nn.Parameter(tl.zeros(1))

    def forward(self, x: Any, labels: Any = None) -> Any:
        y = self.a * x
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}


def trainer(folder: Path, **options: Any) -> Any:
    samples = [{"x": float(i), "labels": 2.0 * i} for i in range(4)]
    arguments = mine.TrainingArguments(
        str(folder), max_steps=3, report_to="none", save_strategy="no", disable_tqdm=True, optim="sgd", seed=1
    )
    return mine.Trainer(args=arguments, train_dataset=samples, eval_dataset=samples, **options)


@pytest.mark.parametrize("backend", ["random", "optuna"])
def test_the_best_trial_is_found(backend: str, tmp_path: Path) -> None:
    if backend == "optuna":
        pytest.importorskip("optuna")
    tried = []

    def space(trial: Any) -> dict[str, Any]:
        values = {
            "learning_rate": trial.suggest_float("learning_rate", 1e-5, 1e-1, log=True),
            "max_steps": trial.suggest_int("max_steps", 1, 3),
            "weight_decay": trial.suggest_categorical("weight_decay", [0.0, 0.1]),
        }
        tried.append(values)
        return values

    made = trainer(tmp_path, model_init=Line)
    best = made.hyperparameter_search(space, lambda metrics: metrics["eval_loss"], 6, backend=backend)
    assert len(tried) == 6
    assert best.hyperparameters == tried[int(best.run_id)]
    assert made.args.learning_rate == 5e-5
    for name, value in best.hyperparameters.items():
        setattr(made.args, name, value)
    made.train()
    assert made.evaluate()["eval_loss"] == pytest.approx(best.objective, rel=1e-5)


def test_a_trial_without_a_number_is_not_the_best_and_models_know_their_trial(tmp_path: Path) -> None:
    objectives, trials = iter([float("nan"), 2.0, 1.0]), []

    def new(trial: Any) -> Line:
        trials.append(trial)
        return Line()

    made = trainer(tmp_path, model_init=new)
    best = made.hyperparameter_search(lambda trial: {}, lambda metrics: next(objectives), 3, backend="random")
    assert (best.run_id, best.objective) == ("2", 1.0)
    assert [trial and trial.number for trial in trials] == [None, 0, 1, 2]


def test_searches_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="model_init"):
        trainer(tmp_path, model_init=lambda a, b: Line())
    with pytest.raises(ArgumentError, match="model_init"):
        trainer(tmp_path, model=Line()).hyperparameter_search(backend="random")
    made = trainer(tmp_path, model_init=Line)
    with pytest.raises(ArgumentError, match="backend"):
        made.hyperparameter_search(backend="ray")
    with pytest.raises(ArgumentError, match="direction"):
        made.hyperparameter_search(backend="random", direction="up")
    if find_spec("optuna") is None:
        with pytest.raises(ImportError, match="optuna"):
            made.hyperparameter_search()
    else:
        with pytest.raises(ArgumentError, match="n_jobs"):
            made.hyperparameter_search(n_jobs=2)


def test_a_run_that_diverges_is_not_the_best(tmp_path: Path) -> None:
    losses = iter([math.nan, 2.0, 1.0, 3.0])
    made = trainer(tmp_path, model_init=Line)
    best = made.hyperparameter_search(lambda _: {"max_steps": 1}, lambda _: next(losses), 4, backend="random")
    assert (best.run_id, best.objective) == ("2", 1.0)


def test_samples_for_permutations(folders: Folders) -> None:
    tokenizer = mine.AutoTokenizer.from_pretrained(folders("BertModel"))
    rows = [{"input_ids": tokenizer.encode("the cat sat on a mat and slept")} for _ in range(3)]
    for row in rows:
        row["input_ids"] += [tokenizer.pad_token_id] * (len(row["input_ids"]) % 2)
    tl.manual_seed(3)
    batch = mine.DataCollatorForPermutationLanguageModeling(tokenizer, plm_probability=0.5)(rows, return_tensors="np")
    masked = batch["labels"] != -100
    ids = np.array([row["input_ids"] for row in rows])
    assert masked.any()
    assert (batch["input_ids"][masked] == tokenizer.mask_token_id).all()
    np.testing.assert_array_equal(np.where(masked, batch["labels"], batch["input_ids"]), ids)
    assert not batch["perm_mask"][
        ~np.broadcast_to(masked[:, None], batch["perm_mask"].shape)
    ].any()  # all see the others
    assert all(batch["perm_mask"][row].diagonal()[masked[row]].all() for row in range(3))  # none sees itself
    pairs = batch["perm_mask"] * np.swapaxes(batch["perm_mask"], 1, 2)  # of two masked tokens one sees the other
    assert not (pairs - pairs * np.eye(ids.shape[1])).any()
    with pytest.raises(ArgumentError, match="even"):
        mine.DataCollatorForPermutationLanguageModeling(tokenizer)([[1, 2, 3]])


@pytest.mark.parametrize("shard", ["5GB", "5KB"])
def test_variants_of_weights(shard: str, folders: Folders, tmp_path: Path) -> None:
    folder = folders("BertForMaskedLM")

    def program(tf: Any, torch: Any) -> Any:
        own = tmp_path / tf.__name__
        tf.BertForMaskedLM.from_pretrained(folder).save_pretrained(own, variant="fp16", max_shard_size=shard)
        again = tf.AutoModelForMaskedLM.from_pretrained(own, variant="fp16")
        names = [path.name for path in own.glob("model*")]
        return [all(".fp16" in name for name in names), len(names) > 1, again.get_input_embeddings().weight]

    both(program)
    other = mine.BertForMaskedLM.from_pretrained(tmp_path / "transformers", variant="fp16")
    real = pytest.importorskip("transformers")
    theirs = real.BertForMaskedLM.from_pretrained(tmp_path / "tallow.transformers", variant="fp16")
    expected = theirs.get_input_embeddings().weight.detach().numpy()
    np.testing.assert_array_equal(other.get_input_embeddings().weight.detach().numpy(), expected)
    with pytest.raises(CheckpointError, match="neither"):
        mine.BertForMaskedLM.from_pretrained(tmp_path / "transformers")
    with pytest.raises(ArgumentError, match="variant"):
        mine.BertForMaskedLM.from_pretrained(tmp_path / "transformers", variant="../x")
