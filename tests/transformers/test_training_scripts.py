"""The names that training scripts use around the Trainer: command lines, metrics in files, tables of configs."""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from tests.transformers.both import both, both_raise

import tallow.transformers as tf
from tallow.errors import ArgumentError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Model:
    name: str = dataclasses.field(metadata={"help": "of the model", "aliases": ["-n"]})
    width: int = 8
    rate: float | None = None
    revision: str | None = None
    fast: bool = True
    trust: bool = False
    tied: bool | None = None
    kind: Literal["a", "b"] = "a"
    colour: Colour = Colour.RED
    sizes: list[int] = dataclasses.field(default_factory=lambda: [1, 2])
    names: list[str] | None = None
    level: int | str = 3


@dataclasses.dataclass
class Data:
    file: str | None = None
    max_samples: int | None = dataclasses.field(default=None, metadata={"help": "at most"})


LINES = [
    "--name a",
    "-n a --width 3 --rate 1e-3 --revision main --max-samples 5",
    "--name a --no_fast --trust",
    "--name a --no-fast --trust no --tied yes --fast false",
    "--name a --kind b --colour blue --sizes 3 4 5 --names x y --level 4",
    "--name a --other 3 rest",
]


@pytest.mark.parametrize("line", LINES)
def test_command_lines(line: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        parser = tf.HfArgumentParser((Model, Data), prog="train")
        *made, rest = parser.parse_args_into_dataclasses(line.split(), return_remaining_strings=True)
        return [[repr(each) for each in made], rest]

    both(program)


@pytest.mark.parametrize("line", ["--width 3", "--name a --width x", "--name a --kind c", "--name a --trust perhaps"])
def test_wrong_command_lines(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        try:
            return tf.HfArgumentParser(Model, prog="train").parse_args_into_dataclasses(line.split())
        except SystemExit as end:
            return end.code

    both(program)
    assert "error" in capsys.readouterr().err


def test_other_sources_of_arguments(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text('{"name": "a", "width": 3, "file": "x"}')
    (tmp_path / "more.args").write_text("--width 5 --name b")

    def program(tf: Any, torch: Any) -> Any:
        parser = tf.HfArgumentParser((Model, Data))
        files = parser.parse_args_into_dataclasses(
            ["--config", str(tmp_path / "more.args"), "--name", "c"], args_file_flag="--config"
        )
        one = tf.HfArgumentParser(Data)
        one.add_argument("--more", type=int)
        space = one.parse_args_into_dataclasses(["--more", "3"])
        return [*map(repr, (*parser.parse_json_file(tmp_path / "all.json"), *files)), len(space), space[1].more]

    both(program)
    both_raise(lambda tf, torch: tf.HfArgumentParser(Data).parse_dict({"colour": 3}), errors=ArgumentError)
    both_raise(
        lambda tf, torch: tf.HfArgumentParser(Data).parse_args_into_dataclasses(["--colour"]), errors=ArgumentError
    )


def test_arguments_in_a_program_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a notebook, or Python in a browser's tab."""
    monkeypatch.setattr("sys.argv", [""])
    (made,) = tf.HfArgumentParser(Data).parse_args_into_dataclasses([])
    assert made == Data()


def test_required_packages() -> None:
    def program(tf: Any, torch: Any, name: str) -> Any:
        (tf.utils.versions.require_version if tf.__name__ == "transformers" else tf.require_version)(name)

    for name in ("PyYAML>=5", "huggingface-hub", "python>=3.8"):
        both(program, name)
    both_raise(program, "no-such-package>=1", errors=ModuleNotFoundError)


def test_training_arguments_of_a_command_line(tmp_path: Path) -> None:
    line = f"--output_dir {tmp_path} --learning_rate 1e-3 --lr_scheduler_type cosine --do_train --report_to none "
    line += "--gradient_checkpointing --logging_steps 5 --optim sgd --ddp_find_unused_parameters false --use_cpu"
    with pytest.warns(UserWarning, match="ddp_find_unused_parameters"):
        data, arguments = tf.HfArgumentParser((Data, tf.TrainingArguments)).parse_args_into_dataclasses(line.split())
    assert data == Data()
    assert arguments.learning_rate == 1e-3
    assert arguments.lr_scheduler_type == "cosine"
    assert arguments.do_train
    assert not arguments.do_eval
    assert arguments.gradient_checkpointing is True, "the name of a field that has another name here"
    assert (arguments.local_rank, arguments.local_process_index, arguments.ddp_timeout) == (0, 0, 1800)
    assert arguments.parallel_mode.value == "not_parallel"
    assert arguments.get_process_log_level() == tf.logging.get_verbosity()
    with arguments.main_process_first(desc="tokens"):
        pass
    with pytest.raises(AttributeError, match="frobnicate"):
        _ = arguments.frobnicate


METRICS = {"epoch": 3.0, "train_loss": 0.123456, "train_runtime": 3723.456, "train_samples": 12, "total_flos": 5e9}


def test_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = pytest.importorskip("transformers.trainer_pt_utils")
    trainer = tf.Trainer.__new__(tf.Trainer)
    trainer.args = SimpleNamespace(output_dir=str(tmp_path / "mine"))  # type: ignore[assignment]
    other = SimpleNamespace(args=SimpleNamespace(output_dir=str(tmp_path)), is_world_process_zero=lambda: True)
    module.log_metrics(other, "train", METRICS)
    expected = capsys.readouterr().out
    trainer.log_metrics("train", METRICS)
    assert capsys.readouterr().out == expected
    for split in ("train", "eval"):
        module.save_metrics(other, split, {f"{split}_loss": 0.5, "epoch": 1})
        trainer.save_metrics(split, {f"{split}_loss": 0.5, "epoch": 1})
    for path in tmp_path.glob("*.json"):
        assert json.loads((tmp_path / "mine" / path.name).read_text()) == json.loads(path.read_text())


def test_tables_of_configs_and_models() -> None:
    transformers = pytest.importorskip("transformers")
    for model_type, config in tf.CONFIG_MAPPING.items():
        if model_type in transformers.CONFIG_MAPPING:
            assert config.__name__ == transformers.CONFIG_MAPPING[model_type].__name__
    for name in ("MODEL_FOR_CAUSAL_LM_MAPPING", "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING"):
        theirs = {config.model_type: model.__name__ for config, model in getattr(transformers, name).items()}
        ours = {config.model_type: model.__name__ for config, model in getattr(tf, name).items()}
        shared = ours.keys() & theirs.keys()
        assert {"llama", "gpt2", "qwen3"} <= shared
        assert {kind: ours[kind] for kind in shared} == {kind: theirs[kind] for kind in shared}
    for name in ("SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ", "MASKED_LM", "PRETRAINING"):
        assert getattr(tf, f"MODEL_FOR_{name}_MAPPING")
