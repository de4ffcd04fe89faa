"""BLIP: a ViT reads an image, and a BERT that also attends to the image writes its caption, or the answer to a question
that another such BERT has read.

Loads Hugging Face folders of `BlipForConditionalGeneration` and `BlipForQuestionAnswering`.

Letters: B texts, C channels, Y and X pixels, T positions of a text, N positions of an answer, A sources, S positions of
a source, D width, V vocabulary.

Source:  Li et al. 2022, arXiv:2201.12086; names as in the checkpoints
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError
from tallow.generation import LogitsProcessor, Sample
from tallow.generation.sequence import check_prompt
from tallow.models.causal_lm import CacheShape
from tallow.models.pretrained import PretrainedModel
from tallow.models.seq2seq.cross_layers import CrossKeys
from tallow.models.seq2seq.model import SourceDecoder, Sources
from tallow.models.text_generation import TextGeneration
from tallow.models.vision.blip_layers import BlipConfig, BlipTextLMHeadModel, BlipTextModel, BlipVisionModel
from tallow.nn.attention import key_mask
from tallow.nn.cache import KVCache
from tallow.tape.modes import no_grad

MOST_TOKENS = 50  # of a caption or an answer, where neither the caller nor the model limits it


class BlipWriter(TextGeneration, PretrainedModel):
    """The base of BLIPs that write.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    config_class = BlipConfig
    base_model_prefix = "blip"
    text_decoder: BlipTextLMHeadModel

    def __init__(self, config: BlipConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.vision_model = BlipVisionModel(config.vision_config, device, dtype)

    @property
    def tied_weights(self) -> Mapping[str, str]:
        if not self.config.text_config.tie_word_embeddings:
            return {}
        head, table = "text_decoder.cls.predictions.", "text_decoder.bert.embeddings.word_embeddings.weight"
        return {f"{head}decoder.weight": table, f"{head}decoder.bias": f"{head}bias"}

    def config_with(self, apart: Collection[str]) -> Any:
        if not apart:
            return self.config
        return replace(self.config, text_config=replace(self.config.text_config, tie_word_embeddings=False))

    def is_superfluous(self, name: str) -> bool:
        others = ("text_encoder.", "text_decoder.") if not hasattr(self, "text_encoder") else ()
        rest = ("itm_head.", "vision_proj.", "text_proj.", "logit_scale", "visual_projection.", "text_projection.")
        is_position = name.endswith(".position_ids")
        return is_position or name.startswith((*others[:1], *rest)) or name.endswith("cls.predictions.bias")

    # ------------------------------------------------------------------------------------------ what generation needs

    @property
    def context_length(self) -> int:
        """The most positions of a text."""
        return self.config.text_config.max_position_embeddings

    @property
    def vocab_size(self) -> int:
        """The number of tokens in the vocabulary."""
        return self.config.text_config.vocab_size

    @property
    def cache_shape(self) -> CacheShape:
        """The sizes of the decoder's cache."""
        text = self.config.text_config
        return CacheShape(
            text.num_hidden_layers, text.num_attention_heads, text.hidden_size // text.num_attention_heads
        )

    @property
    def stop_ids(self) -> frozenset[int]:
        """The token that ends a text."""
        return frozenset([self.config.text_config.sep_token_id])

    def decode(self, tokens_BT: Tensor, sources: Sources, cache: KVCache | None = None) -> Tensor:
        """Return the head's input (B, T, D). With a cache, the tokens follow those in it, and are appended to it."""
        return self.text_decoder.bert(tokens_BT, sources, cache)

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        """Return logits (B, T, V) from the head's input (B, T, D)."""
        return self.text_decoder.logits(hidden_BTD)

    def sources_of(self, encoded_ASD: Tensor) -> Sources:
        """Return encoded sources as the decoder attends to them."""
        return Sources(self.text_decoder.bert.cross_keys(encoded_ASD))

    def write_about(
        self,
        encoded_ASD: Tensor,
        prompt: Sequence[int],
        *,
        max_tokens: int | None = None,
        sample: Sample | None = None,
        num_beams: int | None = None,
        processors: Sequence[LogitsProcessor] = (),
    ) -> Iterator[int]:
        """Yield the ids of a text about one encoded source, behind a prompt.

        Args:    max_tokens, sample, num_beams, processors: as `Seq2SeqLM.generate_text`; at most 50 tokens by default
        Raises:  ArgumentError for a prompt that is too long
        """
        sources = self.sources_of(encoded_ASD)
        layers = [CrossKeys(*(each.contiguous() for each in pair)) for pair in sources.layers]
        decoder: Any = BlipDecoder(self, Sources(layers, sources.mask))  # type: ignore[arg-type]
        check_prompt(decoder, prompt, None)
        if max_tokens is None and self.generation_config.most_tokens(len(prompt)) is None:
            max_tokens = min(MOST_TOKENS, self.context_length - len(prompt))
        return self.write(
            decoder, prompt, max_tokens=max_tokens, sample=sample, num_beams=num_beams, processors=processors
        )


class BlipDecoder(SourceDecoder):
    """A BLIP's decoder with its sources, for the functions of `tallow.generation`."""

    @property
    def vocab_size(self) -> int:
        return self.model.vocab_size


class BlipForConditionalGeneration(BlipWriter):
    """Writes captions of images.

    Args:    as BlipWriter

    Example:
        model = AutoModel.from_pretrained("Salesforce/blip-image-captioning-base")
    """

    def __init__(self, config: BlipConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.text_decoder = BlipTextLMHeadModel(config.text_config, device, dtype)
        self.reset_parameters()

    def forward(
        self, pixel_values: Tensor, input_ids: Tensor, *, interpolate_pos_encoding: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return logits (B, T, V) of the next token of captions, and the encoded images (B, S, D).

        Shapes:  pixel_values (B, C, Y, X); input_ids (B, T), padded at the end only
        Raises:  ShapeError, ArgumentError
        """
        vision = self.vision_model(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding)
        encoded_BSD = vision.last_hidden_state
        return self.logits(self.decode(input_ids, self.sources_of(encoded_BSD))), encoded_BSD

    def caption_ids(self, pixels_1CYX: Tensor, prompt: Sequence[int] = (), **options: Any) -> Iterator[int]:
        """Yield the ids of the caption of an image, behind the ids of its beginning without special tokens.

        Args:    options: as `write_about`
        """
        with no_grad():
            encoded_1SD = self.vision_model(pixels_1CYX).last_hidden_state
        return self.write_about(encoded_1SD, [self.config.text_config.bos_token_id, *prompt], **options)


class BlipForQuestionAnswering(BlipWriter):
    """Answers questions about images.

    Args:    as BlipWriter
    """

    def __init__(self, config: BlipConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.text_encoder = BlipTextModel(config.text_config, device, dtype)
        self.text_decoder = BlipTextLMHeadModel(config.text_config, device, dtype)
        if config.text_config.hidden_size != config.vision_config.hidden_size:
            raise ArgumentError(
                f"BlipConfig: a text_config of width {config.text_config.hidden_size} for images of "
                f"{config.vision_config.hidden_size}",
                hint="the decoder reads the question as the encoder reads the image: pass one width",
            )
        self.reset_parameters()

    def read(self, encoded_BSD: Tensor, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return the hidden states (B, T, D) of questions about encoded images."""
        sources = Sources(self.text_encoder.cross_keys(encoded_BSD))
        mask = None if attention_mask is None else key_mask(attention_mask)
        return self.text_encoder(input_ids, sources, None, mask, is_causal=False)

    def forward(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        decoder_input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        interpolate_pos_encoding: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return logits (B, N, V) of the next token of answers, and the encoded images (B, S, D).

        Shapes:  input_ids, attention_mask (B, T), of questions; decoder_input_ids (B, N); pixel_values (B, C, Y, X)
        Raises:  ShapeError, ArgumentError
        """
        vision = self.vision_model(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding)
        question_BTD = self.read(vision.last_hidden_state, input_ids, attention_mask)
        # As in transformers 5.23, an answer sees the padding of its question too.
        hidden_BND = self.decode(decoder_input_ids, self.sources_of(question_BTD))
        return self.logits(hidden_BND), vision.last_hidden_state

    def answer_ids(self, pixels_1CYX: Tensor, question: Sequence[int], **options: Any) -> Iterator[int]:
        """Yield the ids of the answer to a question about an image.

        Args:
            question: its ids, with special tokens.
            options: as `write_about`.
        """
        device = pixels_1CYX.device
        with no_grad():
            ids_1T = wrap(devices.move(np.array([question], np.int64), device))
            encoded_1TD = self.read(self.vision_model(pixels_1CYX).last_hidden_state, ids_1T)
        return self.write_about(encoded_1TD, [self.config.text_config.bos_token_id], **options)
