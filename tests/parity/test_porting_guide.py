"""docs/porting.md: its code runs, and its RoBERTa and XLM-RoBERTa match transformers."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch
from support.guides import program
from support.paths import ROOT

transformers = pytest.importorskip("transformers")
GUIDE = ROOT / "docs" / "porting.md"


@pytest.mark.parametrize("name", ["Roberta", "XLMRoberta"])
def test_the_guides_code_runs(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=120,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=40,
        type_vocab_size=1,
        initializer_range=0.2,
        pad_token_id=1,
    )
    getattr(transformers, f"{name}Model")(config).save_pretrained(tmp_path)
    source = program(GUIDE)
    if name == "XLMRoberta":  # as the guide says
        source = source.replace('= ("roberta",)', '= ("xlm-roberta",)')
        source = source.replace("transformers.RobertaModel", "transformers.XLMRobertaModel")
    path = tmp_path / "porting.py"
    path.write_text(source, encoding="utf-8")
    runpy.run_path(str(path), {"folder": tmp_path}, run_name="porting")
