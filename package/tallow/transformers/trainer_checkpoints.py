"""The part of the Trainer that saves checkpoints, and resumes from them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tallow import random as tensor_random
from tallow.core.creation import tensor
from tallow.errors import ArgumentError, CheckpointError, warn
from tallow.io import files, safetensors
from tallow.io.model_folder import load_folder
from tallow.transformers.adapters import adapters_of
from tallow.transformers.trainer_callback import TrainerControl, TrainerState
from tallow.transformers.trainer_utils import (
    PREFIX_CHECKPOINT_DIR,
    get_last_checkpoint,
    rotate_checkpoints,
    sorted_checkpoints,
)
from tallow.transformers.training_args import TrainingArguments

WEIGHTS = "model.safetensors"
STATE, OPTIMIZER, SCHEDULER, NUMBERS = "trainer_state.json", "optimizer.pt", "scheduler.pt", "rng_state.pth"
ARGUMENTS = "training_args.json"


class TrainerCheckpoints:
    """Checkpoints; `Trainer` inherits them."""

    args: TrainingArguments
    model: Any
    state: TrainerState
    control: TrainerControl
    optimizer: Any
    lr_scheduler: Any
    processing_class: Any
    data_collator: Any
    callback_handler: Any
    stateful: Callable[[], Iterator[Any]]

    def save_model(self, output_dir: str | Path | None = None) -> None:
        """Write the model, its tokenizer and the arguments, so that `from_pretrained` loads them.

        The arguments are `training_args.json`. A model without `save_pretrained` becomes `model.safetensors`.

        Raises:  OSError
        """
        folder = Path(output_dir or self.args.output_dir or ".")
        folder.mkdir(parents=True, exist_ok=True)
        if hasattr(self.model, "save_pretrained"):
            self.model.save_pretrained(folder)
        else:
            state = {name: value.detach().cpu().contiguous() for name, value in self.model.state_dict().items()}
            safetensors.save(state, folder / WEIGHTS, {"format": "pt"})
        tokenizer = self.processing_class or getattr(self.data_collator, "tokenizer", None)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
        (folder / ARGUMENTS).write_text(self.args.to_json_string(), encoding="utf-8")

    def save_state(self) -> None:
        """Write the state of the run to `output_dir`.  Raises: OSError"""
        self.state.save_to_json(Path(self.args.output_dir or ".") / STATE)

    def log_metrics(self, split: str, metrics: Mapping[str, float]) -> None:
        """Print metrics, one on a line.

        Args:  split: "train", "eval", "test"
        """
        shown = {name: str(value) for name, value in self.metrics_format(metrics).items()}
        print(f"***** {split} metrics *****")
        left, right = (max(map(len, texts), default=0) for texts in (shown, shown.values()))
        for name in sorted(shown):
            print(f"  {name:<{left}} = {shown[name]:>{right}}")

    def metrics_format(self, metrics: Mapping[str, float]) -> dict[str, Any]:
        """Return metrics as people read them: numbers of four digits, and seconds as hours, minutes and seconds."""
        return {name: _readable(name, value) for name, value in metrics.items()}

    def save_metrics(self, split: str, metrics: Mapping[str, float], combined: bool = True) -> None:
        """Write metrics to `{split}_results.json` of `output_dir`, and with `combined` add them to `all_results.json`.

        Raises:  OSError
        """
        folder = Path(self.args.output_dir or ".")
        folder.mkdir(parents=True, exist_ok=True)
        files = {folder / f"{split}_results.json": dict(metrics)}
        if combined:
            every = folder / "all_results.json"
            files[every] = (json.loads(every.read_text(encoding="utf-8")) if every.exists() else {}) | dict(metrics)
        for path, values in files.items():
            path.write_text(json.dumps(values, indent=4, sort_keys=True), encoding="utf-8")

    def create_model_card(
        self,
        language: str | None = None,
        license: str | None = None,
        tags: str | list[str] | None = None,
        model_name: str | None = None,
        finetuned_from: str | None = None,
        tasks: str | list[str] | None = None,
        dataset_tags: str | list[str] | None = None,
        dataset: str | list[str] | None = None,
        dataset_args: str | list[str] | None = None,
    ) -> None:
        """Write `README.md` of `output_dir`: the arguments as its header, and the results of the last evaluation.

        Args:
            tags: besides those of the model, see `PreTrainedModel.add_model_tags`.
            dataset_tags, dataset: both name the data; the tags are those of the Hub.
            dataset_args: settings of the data, such as "en-de".

        Raises:  OSError
        """
        folder = Path(self.args.output_dir or ".")
        folder.mkdir(parents=True, exist_ok=True)
        own = [tags] if isinstance(tags, str) else tags or []
        every = list(dict.fromkeys([*own, *(getattr(self.model, "model_tags", None) or [])]))
        entries = {"language": language, "license": license, "tags": every or None, "base_model": finetuned_from}
        entries |= {"tasks": tasks, "datasets": dataset_tags or dataset, "dataset_args": dataset_args}
        header = {name: value for name, value in entries.items() if value is not None}
        lines = ["---", *(f"{name}: {json.dumps(value)}" for name, value in header.items()), "---", ""]
        evaluations: list[Mapping[str, float]] = [entry for entry in self.state.log_history if "eval_loss" in entry]
        last = evaluations[-1] if evaluations else {}
        results = [f"- {name}: {_readable(name, value)}" for name, value in last.items()]
        text = [*lines, f"# {model_name or folder.name}", "", *results]
        (folder / "README.md").write_text("\n".join(text) + "\n", encoding="utf-8")

    def push_to_hub(self, commit_message: str = "End of training", **kwargs: Any) -> Any:
        """Upload the model and its tokenizer to the Hub.

        Args:  kwargs: those of the model's `push_to_hub`

        Raises:  as the model's `push_to_hub`
        """
        name = self.args.hub_model_id or Path(self.args.output_dir or ".").name
        options = {"commit_message": commit_message, "token": self.args.hub_token, "revision": self.args.hub_revision}
        options = {key: value for key, value in (options | kwargs).items() if value is not None}
        if self.processing_class is not None and hasattr(self.processing_class, "push_to_hub"):
            self.processing_class.push_to_hub(name, **options)
        return self.model.push_to_hub(name, **options)

    def _save_checkpoint(self) -> None:
        root = Path(self.args.output_dir or ".")
        folder = root / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        self.save_model(folder)
        if self.state.best_global_step:
            best = root / f"{PREFIX_CHECKPOINT_DIR}-{self.state.best_global_step}"
            if best.exists():
                self.state.best_model_checkpoint = str(best)
        if not self.args.save_only_model:
            files.save(self.optimizer.state_dict(), folder / OPTIMIZER)
            files.save(self.lr_scheduler.state_dict(), folder / SCHEDULER)
            files.save(_numbers(), folder / NUMBERS)
        states: dict[str, list[Any]] = {}
        for each in self.stateful():
            states.setdefault(type(each).__name__, []).append(each.state())
        self.state.stateful_callbacks = {name: found[0] if len(found) == 1 else found for name, found in states.items()}
        self.state.save_to_json(folder / STATE)
        if self.args.push_to_hub and self.args.hub_strategy != "end":
            self.push_to_hub(f"Training in progress, step {self.state.global_step}")
        rotate_checkpoints(root, self.args.save_total_limit, self.state.best_model_checkpoint)

    def _found_checkpoint(self, wanted: str | bool | None) -> str | None:
        if wanted is True:
            last = get_last_checkpoint(self.args.output_dir or ".")
            if last is None:
                raise ArgumentError(f"there is no checkpoint to resume in {self.args.output_dir}")
            return last
        return str(wanted) if wanted else None

    def _load_model(self, checkpoint: str) -> None:
        folder = Path(checkpoint)
        if (adapters := adapters_of(self.model)) is not None:
            _load_adapter(adapters, folder)
            return
        if not folder.is_dir():
            raise CheckpointError(f"{folder} is not a folder", hint="pass a folder of checkpoints, or True")
        found = self.model.load_state_dict(load_folder(folder), strict=False)
        tied = {name for name in found.missing_keys if name in self._tied()}
        if missing := [name for name in found.missing_keys if name not in tied]:
            raise CheckpointError(f"{folder} lacks weights of the model: {', '.join(missing[:5])}")
        if found.unexpected_keys:
            warn(f"{folder} has weights that the model lacks: {', '.join(found.unexpected_keys[:5])}")
        if hasattr(self.model, "tie_weights"):
            self.model.tie_weights()

    def _tied(self) -> set[str]:
        """Return the names, in the state of the model, of parameters that have another name too."""
        first = {name for name, _ in self.model.named_parameters()}
        return {name for name, _ in self.model.named_parameters(remove_duplicate=False)} - first

    def _load_state(self, checkpoint: str) -> None:
        self.state = TrainerState.load_from_json(Path(checkpoint) / STATE)
        best = self.state.best_model_checkpoint
        if best is not None and not Path(best).is_dir():
            warn(f"{best}, the best checkpoint so far, does not exist any more")
            self.state.best_model_checkpoint = None
        if not self.args.restore_callback_states_from_checkpoint:
            return
        for each in self.stateful():
            saved = self.state.stateful_callbacks.get(type(each).__name__)
            if isinstance(saved, list):
                saved = saved.pop(0) if saved else None
            if saved is not None:
                vars(each).update({**saved.get("args", {}), **saved.get("attributes", {})})

    def _load_optimizer_and_scheduler(self, checkpoint: str) -> None:
        for name, target in ((OPTIMIZER, self.optimizer), (SCHEDULER, self.lr_scheduler)):
            path = Path(checkpoint) / name
            if path.exists():
                target.load_state_dict(files.load(path))

    def _load_rng_state(self, checkpoint: str) -> None:
        """Continue the random numbers of a checkpoint; those of another program stay as they are."""
        path = Path(checkpoint) / NUMBERS
        saved = files.load(path) if path.exists() else {}
        if isinstance(saved, dict) and "tallow" in saved:
            version, words, gauss = saved["python"]
            random.setstate((int(version), tuple(map(int, words)), gauss))
            kind, keys, *rest = saved["numpy"]
            np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))
            tensor_random.set_rng_state(saved["tallow"])

    def _load_best_model(self) -> None:
        """Load the best checkpoint, and remove others than the best with a limit of one."""
        best = self.state.best_model_checkpoint
        if best is None:
            return
        if self.args.load_best_model_at_end:
            self._load_model(best)
        if self.args.save_total_limit == 1:
            for path in sorted_checkpoints(self.args.output_dir or "."):
                if path != Path(best):
                    shutil.rmtree(path, ignore_errors=True)


def _numbers() -> dict[str, Any]:
    """Return the states of the random numbers of Python, NumPy and tallow."""
    kind, keys, *rest = np.random.get_state()
    version, words, gauss = random.getstate()
    return {
        "python": (version, list(words), gauss),
        "numpy": (str(kind), tensor(np.asarray(keys).astype(np.int64)), *rest),
        "tallow": tensor_random.get_rng_state(),
    }


def _readable(name: str, value: Any) -> Any:
    if "_runtime" in name:
        return f"{timedelta(seconds=int(value))}.{int(value % 1 * 100):02d}"
    if name == "total_flos":
        return f"{int(value) >> 30}GF"
    return round(value, 4) if isinstance(value, float) else value


def _load_adapter(adapters: Any, folder: Path) -> None:
    name = adapters.active_adapter
    adapters.delete_adapter(name)
    adapters.load_adapter(folder, name, is_trainable=True)
    adapters.set_adapter(name)
