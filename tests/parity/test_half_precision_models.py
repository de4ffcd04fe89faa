"""Models in bfloat16 and float16: tallow's outputs are as close to float32's as transformers' in the same dtype.

Two programs that round at different points differ from each other by as much as each differs from the exact result. So
the tests compare distances from float32: the root mean square over all outputs. tallow computes most sums in float32,
so its distance is usually smaller.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import model_pairs
from support.model_pairs import BASES, ENCODERS, EVERY, HEADS, IMAGE_MODELS, inputs_of, reference_model
from support.outputs import outputs_of, without_padding
from support.unusual_configs import BASE_MODELS, CLASSIFIERS, ENCODER_HEADS

import tallow as tl
from tallow import models
from tallow.models import AutoModel
from tallow.models.architectures import ARCHITECTURES
from tallow.transformers.configuration_decoders import DECODERS

# Factor on the distances: rounding at other points gives another error by chance.
SLACK = 1.5
TEXTS = 24  # outputs per text have only a few elements each
LANGUAGE_MODELS = (
    *("gpt2", "llama", "mistral, sliding", "qwen2, sliding", "qwen3", "gemma", "gemma2", "gemma3"),
    *("phi3, a part of each head", "falcon 7b", "falcon 40b", "falcon rw"),
    *("lfm2", "qwen3.5", "mamba", "mamba2", "falcon-h1", "jamba"),
    *("bart", "marian"),
)
VARIANTS = (
    *LANGUAGE_MODELS,
    *BASES,
    *IMAGE_MODELS,
    *(f"{variant} {head}" for variant in ENCODERS if "," not in variant for head in HEADS),
)
ALIKE = tuple(config.removesuffix("TextConfig").removesuffix("Config") for config in DECODERS.values())
ELSEWHERE = {
    *("WhisperForConditionalGeneration", "RWForCausalLM"),  # test_whisper.py; another name of Falcon's
    # test_unusual_configs.py covers these in float32; they have the same parts.
    *(case.family + case.head for case in (*BASE_MODELS, *CLASSIFIERS, *ENCODER_HEADS)),
    # tests/transformers compares these in float32; they consist of the parts of other heads.
    *(name for name, ours in ARCHITECTURES.items() if ours in models.DERIVED),
    # Decoders that differ from Llama in some terms: test_causal_lms.py compares these in float32.
    *(name for name in ARCHITECTURES if name.startswith(ALIKE) and name.endswith(("ForCausalLM", "Model"))),
    # test_encoder_relatives.py compares these in float32.
    *(family + head for family, kind in models.RELATIVES.items() for head in ("Model", *kind.heads)),
    # test_multilingual_seq2seq.py
    *(f"{family}ForConditionalGeneration" for family in ("M2M100", "MBart", "MT5", "Pegasus", "UMT5")),
    # tests/transformers compares these in float32.
    *(family + head for family, heads in models.PAIR_HEADS.items() for head in heads),
    *("MT5EncoderModel", "UMT5EncoderModel", "WhisperForAudioClassification"),
    *(family + head for family, heads in models.SPEECH_HEADS.items() for head in heads),
    *("RWKV7Model", "RWKV7ForCausalLM"),  # which transformers does not have
    *("VitsModel", "BartForCausalLM"),
    *("DetrModel", "DetrForObjectDetection", "DetrForSegmentation"),
    *("ResNetModel", "ResNetForImageClassification", "ResNetBackbone", "Dinov2Backbone"),
    *("ViTForMaskedImageModeling", "CLIPForImageClassification", "GPT2DoubleHeadsModel", "WhisperForCausalLM"),
    *("BlipForConditionalGeneration", "BlipForQuestionAnswering", "DepthAnythingForDepthEstimation"),
    *(f"Segformer{head}" for head in models.IMAGE_HEADS["Segformer"]),
    "BertForNextSentencePrediction",
    *("T5ForConditionalGeneration", "T5EncoderModel"),  # test_seq2seq.py; they are not computed in float16
    *("RobertaForCausalLM", "XLMRobertaForCausalLM", "CamembertForCausalLM"),
    "T5WithLMHeadModel",  # an old name
    # Rounding may choose other experts: no distance is to be expected. test_causal_lms.py
    *("MixtralForCausalLM", "OlmoeForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM"),
    *("Lfm2MoeForCausalLM", "Qwen3NextForCausalLM", "Qwen3_5MoeForCausalLM"),
    *("Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration"),  # other names of language models
}


def test_every_architecture_is_covered() -> None:
    assert {EVERY[variant][0] for variant in VARIANTS} | ELSEWHERE == set(ARCHITECTURES)


@pytest.fixture(scope="module", params=VARIANTS)
def saved_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path, Any]:
    """Return a transformers model, its folder, the inputs, and its float32 outputs."""
    folder = tmp_path_factory.mktemp("model")
    reference, inputs = reference_model(request.param), inputs_of(request.param, TEXTS)
    reference.save_pretrained(folder)
    return type(reference), folder, inputs, without_padding(model_pairs.outputs_of(reference, inputs), inputs)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_distance_from_float32(saved_model: tuple[Any, Path, Any, Any], dtype: str) -> None:
    reference_class, folder, inputs, exact = saved_model
    reference = reference_class.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    theirs = without_padding(model_pairs.outputs_of(reference, inputs), inputs)
    model = AutoModel.from_pretrained(folder, dtype=getattr(tl, dtype))
    assert {parameter.dtype for parameter in model.parameters()} == {getattr(tl, dtype)}
    ours = without_padding(outputs_of(model, inputs), inputs)
    for our, their, number in zip(ours, theirs, exact, strict=True):
        assert 0 < distance(our, number) <= SLACK * distance(their, number)


def distance(got: Any, exact: Any) -> float:
    return float(np.sqrt(np.square(got - exact, dtype=np.float64).mean()))
