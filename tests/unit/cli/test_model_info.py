"""`tallow info MODEL`: whether a model loads, and its sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.small_models import ENTRIES

from tallow.cli import main
from tallow.io import safetensors
from tallow.models import Llama


def shown(capsys: pytest.CaptureFixture[str], name: Any) -> dict[str, Any]:
    assert main(["info", "--json", str(name)]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = Llama.config_class.from_entries(ENTRIES["Llama"], "entries")
    safetensors.save(Llama(config).state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(ENTRIES["Llama"] | {"architectures": ["LlamaForCausalLM"]}))
    return tmp_path


def test_a_model_that_loads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = shown(capsys, folder)
    assert rows["loads"] == "yes, as Llama"
    assert rows["architecture"] == "LlamaForCausalLM"
    size = (folder / "model.safetensors").stat().st_size
    assert rows["weights"] == f"{size / 1000:.1f} kB"
    assert rows["context"] == "10 tokens"
    assert rows["cache"] == "at most 64.0 kB for 1,000 tokens"  # 2 layers, 1 head of 4 elements, keys and values


def test_a_model_that_does_not_load(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"logit_scale": 2.0}))
    assert "does not support" in shown(capsys, folder)["loads"]
    (folder / "config.json").write_text(json.dumps({"architectures": ["NewForCausalLM"], "model_type": "new"}))
    assert shown(capsys, folder)["loads"].startswith("no: tallow has no file for it; a program for transformers")


@pytest.mark.parametrize(
    ("entries", "row", "words"),
    [
        ({"num_hidden_layers": 10**9}, "loads", "no: its config.json says more than 1,000 layers"),
        ({"architectures": 5}, "architecture", "unknown"),
    ],
)
def test_a_config_that_is_odd(
    entries: dict[str, Any], row: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | entries))
    assert shown(capsys, folder)[row].startswith(words)
