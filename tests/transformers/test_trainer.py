"""Trainer: losses, logs and weights equal a loop over PyTorch in the documented order, and the real Trainer's."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tallow as tl
import tallow.transformers as mine
from tallow.errors import ArgumentError, CheckpointError, TallowWarning, UnsupportedError
from tallow.utils.torch_numbers import TorchNumbers

RNG = np.random.default_rng(0)
X = RNG.standard_normal((21, 5)).astype(np.float32)
Y = RNG.integers(0, 3, 21)
COMMON: dict[str, Any] = {"use_cpu": True, "disable_tqdm": True, "report_to": "none", "learning_rate": 1e-2}
COMMON |= {"per_device_train_batch_size": 4}
QUIET: dict[str, Any] = COMMON | {"save_strategy": "no", "logging_steps": 1}


def samples(count: int = 21) -> list[dict[str, Any]]:
    return [{"x": X[i].tolist(), "labels": int(Y[i]), "unused": "text"} for i in range(count)]


def network(torch: Any, seed: int = 3) -> Any:
    """Return the same small network for tallow and PyTorch."""

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Linear(5, 8)
            self.layer_norm = torch.nn.LayerNorm(8)
            self.b = torch.nn.Linear(8, 3)

        def forward(self, x: Any, labels: Any = None) -> Any:
            logits = self.b(self.layer_norm(self.a(x)).tanh())
            if labels is None:
                return {"logits": logits}
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

    made, rng = Network(), np.random.default_rng(seed)
    for parameter in made.parameters():
        parameter.data = torch.tensor((rng.standard_normal(tuple(parameter.shape)) / 2).astype(np.float32))
    return made


def weights(model: Any) -> list[npt.NDArray[Any]]:
    return [each.detach().numpy().copy() for each in model.parameters()]


def same(actual: list[Any], expected: list[Any], tol: float = 1e-6) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=tol)


def trainer(folder: Any, model: Any = None, **options: Any) -> mine.Trainer:
    names = (
        "callbacks",
        "compute_metrics",
        "eval_dataset",
        "train_dataset",
        "compute_loss_func",
        "optimizers",
        "model_init",
    )
    own = {name: options.pop(name) for name in names if name in options}
    if "model_init" not in own and model is None:
        model = network(tl)
    own.setdefault("train_dataset", samples())
    return mine.Trainer(model, mine.TrainingArguments(str(folder), **(QUIET | options)), **own)


def loop(**options: Any) -> tuple[list[float], list[float], list[float], list[npt.NDArray[Any]]]:
    """Return losses, norms, learning rates and weights of a loop over PyTorch and transformers' schedules."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    model, accumulated = network(torch), options.get("gradient_accumulation_steps", 1)
    decay = options.get("weight_decay", 0.0)
    parts = [[p for n, p in model.named_parameters() if ("bias" in n or "norm" in n) == flat] for flat in (False, True)]
    groups = [{"params": parts[0], "weight_decay": decay}, {"params": parts[1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, eps=1e-8)
    size, updates = 4, math.ceil(6 / accumulated)
    steps = options.get("max_steps", 3 * updates)
    kind = options.get("lr_scheduler_type", "linear")
    warmup = options.get("warmup_steps", 0)
    schedule = transformers.get_scheduler(kind, optimizer, warmup if warmup >= 1 else math.ceil(steps * warmup), steps)
    losses: list[float] = []
    norms: list[float] = []
    rates: list[float] = []
    smoothing = options.get("label_smoothing_factor", 0.0)
    for epoch in range(math.ceil(steps / updates)):
        order = torch.randperm(21, generator=torch.Generator().manual_seed(42 + epoch)).tolist()
        batches = [order[i : i + size] for i in range(0, 21, size)]
        for first in range(0, len(batches), accumulated):
            if len(losses) == steps:
                break
            group, total = batches[first : first + accumulated], 0.0
            for batch in group:
                logits = model(torch.tensor(X[batch]))["logits"]
                loss = torch.nn.functional.cross_entropy(
                    logits, torch.tensor(Y[batch]), label_smoothing=smoothing
                ) / len(group)
                loss.backward()
                total += loss.item()
            norms.append(
                torch.nn.utils.clip_grad_norm_(model.parameters(), options.get("max_grad_norm", 1.0) or 1e9).item()
            )
            optimizer.step()
            rates.append(schedule.get_last_lr()[0])
            schedule.step()
            optimizer.zero_grad()
            losses.append(total)
    return losses, norms, rates, weights(model)


CASES: list[dict[str, Any]] = [
    {},
    {"gradient_accumulation_steps": 4, "weight_decay": 0.3},
    {"max_grad_norm": 0.1, "lr_scheduler_type": "cosine", "warmup_steps": 0.3},
    {"max_grad_norm": 0.0, "max_steps": 8, "warmup_steps": 2, "weight_decay": 0.1},
    {"label_smoothing_factor": 0.2, "lr_scheduler_type": "constant"},
]


@pytest.mark.parametrize("options", CASES)
def test_steps_equal_a_loop_over_pytorch(options: dict[str, Any], tmp_path: Path) -> None:
    losses, norms, rates, expected = loop(**options)
    run = trainer(tmp_path, **options)
    result = run.train()
    logs = [each for each in run.state.log_history if "loss" in each]
    same([each["loss"] for each in logs], losses)
    same([each["grad_norm"] for each in logs], norms, 1e-5)
    same([each["learning_rate"] for each in logs], rates, 1e-9)
    same(weights(run.model), expected, 1e-5)
    assert result.global_step == len(losses) == run.state.global_step
    assert result.training_loss == pytest.approx(np.mean(losses), abs=1e-6)


FULL: list[dict[str, Any]] = [
    {"gradient_accumulation_steps": 2, "logging_steps": 2, "eval_strategy": "steps", "eval_steps": 4}
    | {"save_steps": 4, "load_best_model_at_end": True, "save_total_limit": 2, "warmup_steps": 0.2},
    {"eval_strategy": "epoch", "save_strategy": "best", "metric_for_best_model": "accuracy", "logging_first_step": True}
    | {"logging_steps": 0.25, "lr_scheduler_type": "polynomial", "eval_on_start": True},
    {
        "logging_strategy": "epoch",
        "save_strategy": "epoch",
        "optim": "sgd",
        "eval_strategy": "no",
        "save_total_limit": 1,
    },
    {"eval_strategy": "steps", "eval_steps": 5, "lr_scheduler_type": "reduce_lr_on_plateau", "eval_delay": 6}
    | {
        "lr_scheduler_kwargs": {"patience": 0},
        "save_strategy": "no",
        "logging_steps": 3,
        "per_device_eval_batch_size": 3,
    },
]


@pytest.mark.parametrize("options", FULL)
def test_whole_runs_equal_transformers(options: dict[str, Any], tmp_path: Path) -> None:
    """Logs, checkpoints and weights; transformers' Trainer needs accelerate."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    results = []
    for name, library, tensors in (("real", transformers, torch), ("own", mine, tl)):
        evaluated = [{key: value for key, value in each.items() if key != "unused"} for each in samples(7)]
        run = library.Trainer(
            network(tensors),
            library.TrainingArguments(str(tmp_path / name), **(COMMON | options)),
            train_dataset=samples(),
            eval_dataset=evaluated,
            compute_metrics=accuracy,
        )
        run.train()
        timed = ("runtime", "per_second", "preparation_time", "total_flos")
        logs = [{key: each[key] for key in sorted(each) if not key.endswith(timed)} for each in run.state.log_history]
        best = run.state.best_model_checkpoint
        results.append(
            (
                logs,
                weights(run.model),
                sorted(path.name for path in (tmp_path / name).iterdir()),
                best and Path(best).name,
            )
        )
    (expected, theirs, folders, best), (logs, ours, own_folders, own_best) = results
    assert [list(each) for each in logs] == [list(each) for each in expected]
    same([list(each.values()) for each in logs], [list(each.values()) for each in expected], 1e-5)
    same(ours, theirs, 1e-5)
    assert (own_folders, own_best) == (folders, best)


def accuracy(prediction: Any) -> dict[str, float]:
    predicted, labels = prediction
    return {"accuracy": (predicted.argmax(-1) == labels).mean()}


def test_a_resumed_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    options = {"save_strategy": "steps", "save_steps": 4, "gradient_accumulation_steps": 2, "weight_decay": 0.1}
    whole = trainer(tmp_path / "whole", **options)
    whole.train()

    class Stop(mine.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            control.should_training_stop = state.global_step == 5

    trainer(tmp_path / "part", callbacks=[Stop], **options).train()
    assert sorted(path.name for path in (tmp_path / "part").iterdir()) == ["checkpoint-4"]
    resumed = trainer(tmp_path / "part", model=network(tl, seed=9), **options)
    resumed.train(resume_from_checkpoint=True)
    same(weights(resumed.model), weights(whole.model), 0)
    losses = [[each["loss"] for each in run.state.log_history if "loss" in each] for run in (resumed, whole)]
    assert losses[0] == losses[1]


def test_resuming_refuses_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no checkpoint"):
        trainer(tmp_path).train(resume_from_checkpoint=True)
    run = trainer(tmp_path, save_strategy="steps", save_steps=4)
    run.train()
    state = tmp_path / "checkpoint-4" / "trainer_state.json"
    state.write_text('{"global_step": "4"}')
    with pytest.raises(CheckpointError, match="not the state"):
        trainer(tmp_path).train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))


def test_checkpoints_are_safetensors_and_json(tmp_path: Path) -> None:
    run = trainer(tmp_path, save_strategy="steps", save_steps=2, max_steps=2, hub_token="secret")
    run.train()
    folder = tmp_path / "checkpoint-2"
    names = ["model.safetensors", "optimizer.pt", "rng_state.pth", "scheduler.pt"]
    assert sorted(path.name for path in folder.iterdir()) == [*names, "trainer_state.json", "training_args.json"]
    saved = tl.load(folder / "model.safetensors")
    assert all((saved[name] == each).all() for name, each in run.model.state_dict().items())
    arguments = json.loads((folder / "training_args.json").read_text())
    assert (arguments["learning_rate"], arguments["hub_token"]) == (1e-2, "<HUB_TOKEN>")


def test_early_stopping_and_best_model(tmp_path: Path) -> None:
    values = iter([0.5, 0.9, 0.8, 0.7, 0.6])
    run = trainer(
        tmp_path,
        compute_metrics=lambda prediction: {"score": next(values)},
        eval_dataset=samples(5),
        callbacks=[mine.EarlyStoppingCallback(early_stopping_patience=2)],
        eval_strategy="steps",
        eval_steps=2,
        save_strategy="steps",
        save_steps=2,
        num_train_epochs=5,
        load_best_model_at_end=True,
        metric_for_best_model="score",
        save_total_limit=1,
    )
    run.train()
    assert (run.state.global_step, run.state.best_metric, run.state.best_global_step) == (8, 0.9, 4)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["checkpoint-4"]
    saved = tl.load(tmp_path / "checkpoint-4" / "model.safetensors")
    assert all((saved[name] == each).all() for name, each in run.model.state_dict().items())


def test_callbacks_get_events_in_order(tmp_path: Path) -> None:
    events: list[str] = []

    class Record(mine.TrainerCallback):
        def __getattribute__(self, name: str) -> Any:
            if name.startswith("on_"):
                return lambda args, state, control, **kwargs: events.append(name[3:])
            return super().__getattribute__(name)

    options = {"eval_strategy": "epoch", "max_steps": 2, "gradient_accumulation_steps": 3, "save_strategy": "epoch"}
    run = trainer(tmp_path, callbacks=[Record()], eval_dataset=samples(8), **options)
    run.train()
    step = ["step_begin", "substep_end", "substep_end", "pre_optimizer_step", "optimizer_step", "step_end", "log"]
    end = ["epoch_end", "prediction_step", "log", "evaluate", "save", "log", "train_end"]
    assert events == ["init_end", "train_begin", "epoch_begin", *step, *step, *end]
    assert run.pop_callback(Record) is not None
    assert run.pop_callback(Record) is None


def test_predict_fills_rows_of_different_lengths(tmp_path: Path) -> None:
    class Same(tl.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = tl.nn.Parameter(tl.ones(1))

        def forward(self, x: Any, labels: Any) -> Any:
            return {"loss": (x * self.w).mean(), "logits": x * 2, "past_key_values": x, "more": (x + 1, x)}

    rows = [{"x": [1.0] * n, "labels": [n] * n} for n in (2, 2, 3, 1)]
    arguments = mine.TrainingArguments(str(tmp_path), per_device_eval_batch_size=2, **QUIET)
    run = mine.Trainer(Same(), arguments, lambda batch: padded(batch))
    output = run.predict(rows)
    logits, (more, again) = output.predictions
    np.testing.assert_array_equal(logits, [[2, 2, -100], [2, 2, -100], [2, 2, 2], [2, 0, 0]])
    assert more.shape == again.shape == (4, 3)
    np.testing.assert_array_equal(output.label_ids, [[2, 2, -100], [2, 2, -100], [3, 3, 3], [1, 0, 0]])
    assert output.metrics["test_loss"] == pytest.approx((1 + 4 / 6) / 2)


def test_a_last_batch_with_fewer_samples_counts_as_one_of_seq2seq_trainer(tmp_path: Path) -> None:
    """It gathers losses as they are, where Trainer leaves out what a short batch repeats. The loss is named first."""
    options: dict[str, Any] = {"eval_dataset": samples(3), "compute_metrics": accuracy}
    options |= {"data_collator": mine.default_data_collator}
    with tl.no_grad():
        losses = [float(network(tl)(tl.tensor(X[rows]), tl.tensor(Y[rows]))["loss"]) for rows in ([0, 1], [2])]
    for kind, weights in ((mine.Trainer, (2, 1)), (mine.Seq2SeqTrainer, (1, 1))):
        arguments = mine.Seq2SeqTrainingArguments(str(tmp_path), per_device_eval_batch_size=2, **QUIET)
        metrics = kind(network(tl), arguments, **options).evaluate()
        assert next(iter(metrics)) == "eval_loss"
        assert metrics["eval_loss"] == pytest.approx(np.average(losses, weights=weights), abs=1e-5)


def padded(batch: list[dict[str, Any]]) -> dict[str, Any]:
    size = max(len(each["x"]) for each in batch)
    return {name: tl.tensor([each[name] + [0] * (size - len(each["x"])) for each in batch]) for name in batch[0]}


def test_evaluation_of_several_datasets_and_batch_metrics(tmp_path: Path) -> None:
    run = trainer(tmp_path, eval_dataset={"a": samples(9), "b": samples(4)}, compute_metrics=accuracy)
    metrics = run.evaluate()
    model = network(tl)
    right = (model(tl.tensor(X))["logits"].argmax(-1).numpy() == Y).astype(float)
    assert metrics["eval_a_accuracy"] == pytest.approx(right[:9].mean())
    assert metrics["eval_b_accuracy"] == pytest.approx(right[:4].mean())
    counts = []

    def count(prediction: Any, compute_result: bool) -> dict[str, Any]:
        counts.append((len(prediction.predictions), len(prediction.losses), compute_result))
        return {"batches": len(counts)}

    options = {"batch_eval_metrics": True, "include_for_metrics": ["loss", "inputs"], "per_device_eval_batch_size": 4}
    run = trainer(tmp_path, eval_dataset=samples(9), compute_metrics=count, **options)
    run.rules = run.rules._replace(main_input="x")
    assert run.evaluate()["eval_batches"] == 3
    assert counts == [(4, 4, False), (4, 4, False), (1, 1, True)]


def test_custom_loss_and_model_init(tmp_path: Path) -> None:
    def loss(outputs: Any, labels: Any, num_items_in_batch: Any) -> Any:
        return tl.nn.functional.cross_entropy(outputs["logits"], labels, reduction="sum") / num_items_in_batch

    run = trainer(
        tmp_path, model_init=lambda: network(tl), compute_loss_func=loss, gradient_accumulation_steps=6, max_steps=1
    )
    run.train()
    torch = pytest.importorskip("torch")
    logits = network(torch)(torch.tensor(X))["logits"]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(Y)).item()
    assert run.state.log_history[0]["loss"] == pytest.approx(expected, abs=1e-6)


def test_models_that_divide_by_the_labels_of_a_step(tmp_path: Path) -> None:
    class Counts(tl.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = tl.nn.Linear(5, 3)

        def forward(self, x: Any, labels: Any, **kwargs: Any) -> Any:
            loss = tl.nn.functional.cross_entropy(self.a(x), labels, reduction="sum")
            return {"loss": loss / kwargs["num_items_in_batch"]}

    tl.manual_seed(0)
    run = trainer(tmp_path, model=Counts(), gradient_accumulation_steps=6, max_steps=1)
    expected = tl.nn.functional.cross_entropy(run.model.a(tl.tensor(X)), tl.tensor(Y)).item()
    run.train()
    assert run.state.log_history[0]["loss"] == pytest.approx(expected, abs=1e-6)


def test_streams_of_samples(tmp_path: Path) -> None:
    class Stream(tl.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(samples(21))

    with pytest.raises(ArgumentError, match="max_steps"):
        trainer(tmp_path, train_dataset=Stream())
    run = trainer(tmp_path, train_dataset=Stream(), max_steps=4)
    assert run.train().global_step == 4


def test_samples_in_groups_of_a_length(tmp_path: Path) -> None:
    from tallow.transformers.trainer_pt_utils import LengthGroupedSampler

    lengths = np.random.default_rng(0).integers(1, 100, 200).tolist()
    order = list(LengthGroupedSampler(5, lengths=lengths, seed=1))
    assert sorted(order) == list(range(200))
    assert lengths[order[0]] == max(lengths)
    spread = np.mean([np.ptp([lengths[i] for i in order[j : j + 5]]) for j in range(5, 200, 5)])
    assert spread < 25  # random batches of five spread over 66


def test_numbers_of_pytorchs_generator() -> None:
    torch = pytest.importorskip("torch")
    for seed in (0, 42, 2**33 + 5, 2**64 - 1):
        for size in (1, 2, 30, 5000):
            expected = torch.randperm(size, generator=torch.Generator().manual_seed(seed)).tolist()
            assert TorchNumbers(seed).randperm(size) == expected


def test_bfloat16_and_noise_on_embeddings_train(tmp_path: Path) -> None:
    run = trainer(tmp_path, bf16=True, max_steps=12, num_train_epochs=9)
    run.train()
    losses = [each["loss"] for each in run.state.log_history if "loss" in each]
    assert np.mean(losses[-4:]) < np.mean(losses[:4])


@pytest.mark.native
def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    run = trainer(tmp_path, max_steps=3, report_to="tensorboard")
    run.train()
    (file,) = (tmp_path / "runs").iterdir()
    content = file.read_bytes()
    assert b"train/loss" in content
    assert b"train/learning_rate" in content


def test_notebooks_show_a_table(tmp_path: Path) -> None:
    from tallow.transformers.trainer_progress import NotebookProgressCallback

    shown = NotebookProgressCallback()
    shown._show = lambda state: None  # type: ignore[method-assign]
    options = {"eval_strategy": "epoch", "num_train_epochs": 2}
    run = trainer(
        tmp_path, eval_dataset=samples(5), compute_metrics=lambda _: {"<b>": 0.25}, callbacks=[shown], **options
    )
    run.train()
    assert [row["Step"] for row in shown.rows] == [6, 12]
    page = shown.table(run.state)
    assert "[12/12, Epoch 2.00/2]" in page
    assert "&lt;B&gt;" in page
    assert "<b>" not in page


class Stream:
    """Samples without places or a length, as an IterableDataset of `datasets`."""

    def __init__(self) -> None:
        self.epochs: list[int] = []

    def set_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def __getitem__(self, index: int) -> Any:  # as PyTorch's class has it
        raise NotImplementedError

    def __iter__(self) -> Any:
        return iter(samples(8))


def test_streams_of_other_packages(tmp_path: Path) -> None:
    stream = Stream()
    read = trainer(tmp_path, max_steps=4, train_dataset=stream, eval_dataset=stream)
    read.train()
    known = trainer(tmp_path, max_steps=4, train_dataset=samples(8), train_sampling_strategy="sequential")
    known.train()
    same(weights(read.model), weights(known.model))
    assert stream.epochs == [0, 1]
    assert read.evaluate()["eval_loss"] > 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"fp16": True}, UnsupportedError),
        ({"deepspeed": "x.json"}, UnsupportedError),
        ({"report_to": "wandb"}, UnsupportedError),
        ({"eval_strategy": "sometimes"}, ArgumentError),
        ({"optim": "adam"}, ArgumentError),
        ({"load_best_model_at_end": True}, ArgumentError),
        ({"eval_strategy": "steps", "eval_steps": 3, "save_steps": 4, "load_best_model_at_end": True}, ArgumentError),
        ({"logging_steps": 0}, ArgumentError),
        ({"logging_steps": 1.5}, ArgumentError),
        ({"warmup_steps": -1}, ArgumentError),
        ({"lr_scheduler_type": "reduce_lr_on_plateau"}, ArgumentError),
        ({"train_sampling_strategy": "batch_rebalance"}, ArgumentError),
    ],
)
def test_arguments_refuse(options: dict[str, Any], error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        mine.TrainingArguments(str(tmp_path), **options)


def test_arguments_of_version_4(tmp_path: Path) -> None:
    old = {"evaluation_strategy": "epoch", "warmup_ratio": 0.1, "no_cuda": True, "overwrite_output_dir": True}
    with pytest.warns(TallowWarning, match="ddp_backend='gloo'"):
        arguments = mine.TrainingArguments(str(tmp_path), group_by_length=True, ddp_backend="gloo", **old)
    assert (arguments.eval_strategy, arguments.warmup_steps, arguments.use_cpu) == ("epoch", 0.1, True)
    assert arguments.train_sampling_strategy == "group_by_length"
    assert (arguments.do_eval, arguments.get_warmup_steps(55)) == (True, 6)


def test_trainer_refuses(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="model"):
        mine.Trainer()
    with pytest.raises(ArgumentError, match="eval_dataset"):
        trainer(tmp_path, eval_strategy="epoch")
    with pytest.raises(ArgumentError, match="train_dataset"):
        mine.Trainer(network(tl), mine.TrainingArguments(str(tmp_path), **QUIET)).train()
    unlabelled = [{"x": each["x"]} for each in samples()]
    with pytest.raises(ArgumentError, match="no loss"):
        trainer(tmp_path, train_dataset=unlabelled).train()
