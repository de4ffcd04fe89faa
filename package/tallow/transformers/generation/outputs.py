"""The results of `generate` with `return_dict_in_generate=True`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallow.core.tensor import Tensor
from tallow.transformers.modeling_outputs import ModelOutput, Tensors


@dataclass
class GenerateDecoderOnlyOutput(ModelOutput):
    """Texts of a decoder. One entry of a tuple for each token that was generated.

    Attributes:
        sequences: prompts and what follows, (B, T).
        scores: logits after all processors, (B, V).
        logits: logits of the model, (B, V).
        attentions, hidden_states: for each token a tuple, as `forward` returns it.
        past_key_values: the cache.
    """

    sequences: Tensor | None = None
    scores: Tensors | None = None
    logits: Tensors | None = None
    attentions: tuple[Tensors, ...] | None = None
    hidden_states: tuple[Tensors, ...] | None = None
    past_key_values: Any = None


@dataclass
class GenerateEncoderDecoderOutput(ModelOutput):
    """Texts of an encoder-decoder model; attributes as in GenerateDecoderOnlyOutput, by part of the model."""

    sequences: Tensor | None = None
    scores: Tensors | None = None
    logits: Tensors | None = None
    encoder_attentions: Tensors | None = None
    encoder_hidden_states: Tensors | None = None
    decoder_attentions: tuple[Tensors, ...] | None = None
    cross_attentions: tuple[Tensors, ...] | None = None
    decoder_hidden_states: tuple[Tensors, ...] | None = None
    past_key_values: Any = None


@dataclass
class GenerateBeamDecoderOnlyOutput(ModelOutput):
    """Texts of a decoder that were found by beam search; attributes as in GenerateDecoderOnlyOutput.

    Attributes:
        sequences_scores: sum of log-probabilities / length^length_penalty, (B,).
        beam_indices: the row of `scores` that each token was chosen from, (B, T); -1 after the end of a text.
    """

    sequences: Tensor | None = None
    sequences_scores: Tensor | None = None
    scores: Tensors | None = None
    logits: Tensors | None = None
    beam_indices: Tensor | None = None
    attentions: tuple[Tensors, ...] | None = None
    hidden_states: tuple[Tensors, ...] | None = None
    past_key_values: Any = None


@dataclass
class GenerateBeamEncoderDecoderOutput(ModelOutput):
    """Texts of an encoder-decoder model that were found by beam search; attributes as in
    GenerateBeamDecoderOnlyOutput and GenerateEncoderDecoderOutput.
    """

    sequences: Tensor | None = None
    sequences_scores: Tensor | None = None
    scores: Tensors | None = None
    logits: Tensors | None = None
    beam_indices: Tensor | None = None
    encoder_attentions: Tensors | None = None
    encoder_hidden_states: Tensors | None = None
    decoder_attentions: tuple[Tensors, ...] | None = None
    cross_attentions: tuple[Tensors, ...] | None = None
    decoder_hidden_states: tuple[Tensors, ...] | None = None
    past_key_values: Any = None
