"""Whisper's decoder as a language model, without sounds to attend to; it drafts texts for a larger Whisper.

Loads Hugging Face folders of `WhisperForCausalLM`, and the decoder of those of the whole model.

Letters: B texts, T positions, D width.

Source:  names as in transformers' `modeling_whisper.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.causal_lm import CacheShape, CausalLM
from tallow.models.config import end_ids
from tallow.models.decoders.decoder import DecoderModel
from tallow.models.whisper.model import WhisperConfig, WhisperDecoder
from tallow.nn.cache import KVCache
from tallow.nn.embedding import Embedding

HEAD, OWN_HEAD = "proj_out.weight", "lm_head.weight"


@dataclass(frozen=True, kw_only=True)
class WhisperTextConfig(WhisperConfig):
    """The sizes of the decoder alone; as WhisperConfig.

    Attributes:
        eos_token_id: the ids that end a text.
    """

    eos_token_id: tuple[int, ...] = (50256,)

    sees_both_sides: ClassVar[bool] = False
    layer_shapes: ClassVar[None] = None
    computed: ClassVar = {"is_encoder_decoder": (True, False)}  # False in folders of the decoder alone

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        end_ids(entries)


class WhisperTextDecoder(DecoderModel):
    """The decoder: hidden states (B, T, D) of texts. Its layers have the weights of attention to sounds, unused.

    Args:    as DecoderModel
    """

    config_class = WhisperTextConfig
    base_model_prefix = "model"

    def __init__(self, config: WhisperTextConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.decoder = WhisperDecoder(config, device, dtype)

    @property
    def token_embedding(self) -> Embedding:
        return self.decoder.embed_tokens

    @property
    def context_length(self) -> int:
        return self.config.max_target_positions

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        return self.decoder(tokens_BT, None, cache)


class WhisperForCausalLM(CausalLM):
    """Predicts the token after each position: logits (B, T, V). Positions count padding too.

    Args:    as DecoderModel
    """

    model_class = WhisperTextDecoder

    @property
    def cache_shape(self) -> CacheShape:
        heads = self.config.decoder_attention_heads
        return CacheShape(self.config.decoder_layers, heads, self.config.d_model // heads)

    @property
    def tied_weights(self) -> Mapping[str, str]:
        return dict(zip((HEAD,), super().tied_weights.values(), strict=False))

    def adapt(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {OWN_HEAD if name == HEAD else name: value for name, value in super().adapt(state).items()}

    def is_superfluous(self, name: str) -> bool:
        return name.startswith(("model.encoder.", "encoder."))
