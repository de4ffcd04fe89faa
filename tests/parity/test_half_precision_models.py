"""Models in bfloat16 and float16: tallow's numbers are as near to those of float32 as transformers' in the same dtype.

Two programs that round at different places differ from each other by what each differs from the exact numbers, so it is
the distances from float32 that are compared, the root mean square over all results. Most of tallow's sums are taken in
float32, so its distance is the smaller one as a rule.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import model_pairs
from support.model_pairs import BASES, ENCODERS, EVERY, HEADS, inputs_of, reference_model
from support.outputs import of_text, outputs_of
from support.unusual_configs import BARE, ENCODED, LABELLED

import tallow as tl
from tallow.models import AutoModel
from tallow.models.auto import ARCHITECTURES

# Of the distances: the same rounding at other places comes out otherwise by chance.
SLACK = 1.5
TEXTS = 24  # of whole texts there are only a few numbers each
LANGUAGE_MODELS = (
    *("gpt2", "llama", "mistral, sliding", "qwen2, sliding", "qwen3", "gemma", "gemma2", "phi3, a part of each head"),
    *("falcon 7b", "falcon 40b", "falcon rw"),
)
VARIANTS = (
    *LANGUAGE_MODELS,
    *BASES,
    *(f"{variant} {head}" for variant in ENCODERS if "," not in variant for head in HEADS),
)
ELSEWHERE = {
    *("WhisperForConditionalGeneration", "RWForCausalLM"),  # test_whisper.py; another name of Falcon's
    # test_unusual_configs.py, in float32: others of the same parts.
    *(case.family + case.head for case in (*BARE, *LABELLED, *ENCODED)),
    *("RobertaForCausalLM", "XLMRobertaForCausalLM"),
}


def test_every_architecture_is_among_the_variants() -> None:
    assert {EVERY[variant][0] for variant in VARIANTS} | ELSEWHERE == set(ARCHITECTURES)


@pytest.fixture(scope="module", params=VARIANTS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path, Any]:
    """A model of transformers, the folder it is saved in, the inputs, and what it makes of them in float32."""
    folder = tmp_path_factory.mktemp("model")
    reference, inputs = reference_model(request.param), inputs_of(request.param, TEXTS)
    reference.save_pretrained(folder)
    return type(reference), folder, inputs, of_text(model_pairs.outputs_of(reference, inputs), inputs)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_distance_from_float32(saved: tuple[Any, Path, Any, Any], dtype: str) -> None:
    reference_class, folder, inputs, exact = saved
    reference = reference_class.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    theirs = of_text(model_pairs.outputs_of(reference, inputs), inputs)
    model = AutoModel.from_pretrained(folder, dtype=getattr(tl, dtype))
    assert {parameter.dtype for parameter in model.parameters()} == {getattr(tl, dtype)}
    ours = of_text(outputs_of(model, inputs), inputs)
    for our, their, number in zip(ours, theirs, exact, strict=True):
        assert 0 < distance(our, number) <= SLACK * distance(their, number)


def distance(got: Any, exact: Any) -> float:
    return float(np.sqrt(np.square(got - exact, dtype=np.float64).mean()))
