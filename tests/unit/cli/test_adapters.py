"""`tallow train --lora`, and adapters in `tallow generate`, `tallow chat` and `tallow convert`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.cli import main
from tallow.models import AutoModel
from tallow.peft import PeftModel
from tallow.training.language_modelling import LanguageModelTraining

pytestmark = pytest.mark.native  # a package that Pyodide lacks reads the tokenizer's file

OPTIONS = "--lora --lora-r 4 --lora-targets all-linear --context 16 --batch-size 4 --learning-rate 0.02 --seed 3"
TEXT = "The cat sat on the mat. "


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of bytes."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "text.txt").write_text("A dog ran to the house. " * 20)
    sizes = ["--width", "32", "--layers", "2", "--heads", "2", "--context", "32", "--batch-size", "4"]
    assert main(["train", str(folder / "text.txt"), "--out", str(folder / "base"), "--steps", "3", *sizes]) == 0
    return folder / "base"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 20)
    return path


def train(base: Path, text: Path, out: Path, *options: Any, steps: int = 30) -> int:
    fixed = ["train", text, "--out", out, "--model", base, "--steps", steps, *OPTIONS.split(), *options]
    return main([str(each) for each in fixed])


def generated(capsys: pytest.CaptureFixture[str], *options: Any) -> str:
    capsys.readouterr()
    assert main(["generate", "The c", "--temperature", "0", "--steps", "30", *map(str, options)]) == 0
    return capsys.readouterr().out


def test_an_adapter_is_trained_used_and_merged(
    base: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = (base / "model.safetensors").read_bytes()
    out, merged = tmp_path / "adapter", tmp_path / "merged"
    assert train(base, text, out, "--eval", text) == 0
    stderr = capsys.readouterr().err
    assert "has the adapter of step 30" in stderr
    assert sorted(each.name for each in out.iterdir()) == [
        *("adapter_config.json", "adapter_model.safetensors", "checkpoint.safetensors")
    ]
    tensors = tl.load(out / "adapter_model.safetensors")
    assert f"{sum(each.numel() for each in tensors.values())} parameters" in stderr
    assert len(tensors) == 2 * 7 * 2
    entries = json.loads((out / "adapter_config.json").read_text())
    assert (entries["r"], entries["lora_alpha"], entries["base_model_name_or_path"]) == (4, 16, str(base))
    assert (base / "model.safetensors").read_bytes() == weights
    assert main(["convert", str(base), str(merged), "--adapter", str(out)]) == 0
    assert (merged / "tokenizer.json").exists()

    adapted = generated(capsys, "--model", base, "--adapter", out)
    assert adapted == generated(capsys, "--model", merged)
    assert adapted != generated(capsys, "--model", base)
    ids = tl.tensor([list(TEXT.encode())])
    with tl.no_grad():
        expected = PeftModel.from_pretrained(AutoModel.from_pretrained(base), out)(ids).numpy()
        result = AutoModel.from_pretrained(merged)(ids).numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_a_resumed_run_ends_where_a_run_without_a_break_does(
    base: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(base, text, tmp_path / "whole", steps=8) == 0
    learn = LanguageModelTraining.learn

    def learn_and_stop(self: LanguageModelTraining) -> tuple[float]:
        if self.step == 4:
            raise KeyboardInterrupt
        return learn(self)

    with monkeypatch.context() as patch:
        patch.setattr(LanguageModelTraining, "learn", learn_and_stop)
        assert train(base, text, tmp_path / "parts", "--save-every", 2, steps=8) == 130
    assert train(base, text, tmp_path / "parts", "--save-every", 2, "--resume", steps=8) == 0
    whole, parts = (tl.load(tmp_path / name / "adapter_model.safetensors") for name in ("whole", "parts"))
    for name, each in whole.items():
        np.testing.assert_array_equal(each.numpy(), parts[name].numpy())
    capsys.readouterr()
    assert train(base, text, tmp_path / "parts", "--resume", "--lora-alpha", 8, steps=8) == 2
    assert "adapter.lora_alpha: 16 there, 8 here" in capsys.readouterr().err
    assert train(base, text, tmp_path / "parts", steps=8) == 2
    assert "already has a checkpoint.safetensors" in capsys.readouterr().err


def test_checkpoints_hold_only_what_is_trained(base: Path, text: Path, tmp_path: Path) -> None:
    assert train(base, text, tmp_path / "out", steps=1) == 0
    trained = sum(each.numel() for each in tl.load(tmp_path / "out" / "adapter_model.safetensors").values())
    stored = sum(each.numel() for each in tl.load(tmp_path / "out" / "checkpoint.safetensors").values())
    assert stored < 3.1 * trained  # the adapter, and two moments of the optimizer


def test_bad_options(base: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def assert_refused(message: str, *arguments: Any) -> None:
        assert main([str(each) for each in arguments]) == 2
        assert message in capsys.readouterr().err

    out = tmp_path / "out"
    assert_refused("--lora-r without --lora", "train", text, "--out", out, "--model", base, "--lora-r", 8)
    assert_refused("--lora without --model", "train", text, "--out", out, "--lora")
    one = ["train", text, "--out", out, "--model", base, "--lora", "--lora-targets"]
    assert_refused("Llama has no such modules", *one, "nothing")
    assert not out.exists()
    assert_refused("--adapter without --model", "generate", "A", "--adapter", out)
    assert_refused("adapter_config.json does not exist", "generate", "A", "--model", base, "--adapter", base)
    assert_refused("--adapter with a .safetensors file", "convert", base, "x.safetensors", "--adapter", base)
    assert_refused("adapter_config.json does not exist", "chat", "--model", base, "--adapter", base)
