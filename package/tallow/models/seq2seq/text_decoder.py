"""The decoder of BART and of its relatives as a language model, without sources to attend to.

Loads Hugging Face folders of `BartForCausalLM`, and of the same of `MBart`, `Marian` and `Pegasus`.

Letters: B texts, T positions, D width.

Source:  names as in transformers' `modeling_bart.py`
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tallow.core.tensor import Tensor
from tallow.models.causal_lm import CacheShape, CausalLM
from tallow.models.decoders.decoder import DecoderModel
from tallow.models.pretrained import check_length
from tallow.models.seq2seq.bart import BartConfig, BartDecoder, BartDecoderLayer, without_computed_positions
from tallow.nn.cache import KVCache
from tallow.nn.embedding import Embedding

SHARED = "model.shared.weight"
TABLE = "model.decoder.embed_tokens.weight"


class BartTextDecoder(DecoderModel):
    """The decoder: hidden states (B, T, D) of texts. Its layers have the weights of attention to sources, unused.

    Args:    as DecoderModel
    """

    config_class = BartConfig
    base_model_prefix = "model"

    def __init__(self, config: BartConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        layers = (BartDecoderLayer(config, device, dtype) for _ in range(config.decoder_layers))
        self.decoder = BartDecoder(config, layers, device, dtype)
        width, padding = config.d_model, config.pad_token_id
        self.decoder.embed_tokens = Embedding(config.text_vocab_size, width, padding, device=device, dtype=dtype)
        self.scale = math.sqrt(width) if config.scale_embedding else 1.0

    @property
    def token_embedding(self) -> Embedding:
        table = self.decoder.embed_tokens
        assert table is not None
        return table

    @property
    def context_length(self) -> int:
        return self.config.max_position_embeddings

    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        check_length(tokens_BT.shape[1] + (0 if cache is None else cache.length), self.context_length)
        x_BTD = self.token_embedding(tokens_BT)
        return self.decoder(x_BTD if self.scale == 1 else x_BTD * self.scale, None, cache)


class BartForCausalLM(CausalLM):
    """Predicts the token after each position: logits (B, T, V). Positions count padding too.

    Args:    as DecoderModel
    """

    model_class = BartTextDecoder

    @property
    def cache_shape(self) -> CacheShape:
        heads = self.config.decoder_attention_heads
        return CacheShape(self.config.decoder_layers, heads, self.config.d_model // heads)

    @property
    def vocab_size(self) -> int:
        return self.config.text_vocab_size

    def adapt(self, state: Mapping[str, Any]) -> dict[str, Any]:
        adapted = without_computed_positions(self.config, state)
        shared = adapted.pop(SHARED, None)  # of a file of the whole model
        return {TABLE: shared, **adapted} if shared is not None else adapted

    def is_superfluous(self, name: str) -> bool:
        return name.startswith(("model.encoder.", "encoder.", "final_logits_bias")) or name.endswith("coder.version")
