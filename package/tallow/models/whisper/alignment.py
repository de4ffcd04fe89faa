"""The attention heads of OpenAI's models that attend to the sound of the next word; they give the times of words.

Hugging Face folders list them in `generation_config.json`; OpenAI's files do not.

Source:  https://github.com/openai/whisper, `__init__.py` (_ALIGNMENT_HEADS, masks in base 85)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.text.whisper import ENGLISH_ONLY_VOCAB

if TYPE_CHECKING:
    from tallow.models.whisper.model import WhisperConfig

# Layer.head
PUBLISHED = {
    "tiny.en": "1.0 2.0 2.5 3.0 3.1 3.2 3.3 3.4",
    "tiny": "2.2 3.0 3.2 3.3 3.4 3.5",
    "base.en": "3.3 4.7 5.1 5.5 5.7",
    "base": "3.1 4.2 4.3 4.7 5.1 5.2 5.4 5.6",
    "small.en": "6.6 7.0 7.3 7.8 8.2 8.5 8.7 9.0 9.4 9.8 9.10 10.0 10.1 10.2 10.3 10.6 10.11 11.2 11.4",
    "small": "5.3 5.9 8.0 8.4 8.7 8.8 9.0 9.7 9.9 10.5",
    "medium.en": "11.4 14.1 14.12 14.14 15.4 16.0 16.4 16.9 17.12 17.14 18.7 18.10 18.15 20.0 20.3 20.9 20.14 21.12",
    "medium": "13.15 15.4 15.15 16.1 20.0 23.4",
    "large-v3": "7.0 10.17 12.18 13.12 16.1 17.14 19.11 21.4 24.1 25.6",
    "large-v3-turbo": "2.4 2.11 3.3 3.6 3.11 3.14",
}
# (encoder layers, decoder layers, width) -> name
SIZES = {
    (4, 4, 384): "tiny",
    (6, 6, 512): "base",
    (12, 12, 768): "small",
    (24, 24, 1024): "medium",
    (32, 32, 1280): "large-v3",
    (32, 4, 1280): "large-v3-turbo",
}
HEAD_WIDTH = 64
MANY_LANGUAGES = 51865  # vocabulary of the multilingual models up to large-v2
LARGE_V3 = 51866  # vocabulary of later models


def published_heads(config: WhisperConfig) -> tuple[tuple[int, int], ...] | None:
    """Return the alignment heads of a published model as (layer, head).

    Returns None for other sizes, and for large-v1 and large-v2, which have equal sizes but different heads.
    """
    name = SIZES.get((config.encoder_layers, config.decoder_layers, config.d_model), "")
    if config.d_model != HEAD_WIDTH * config.decoder_attention_heads:
        return None
    if config.vocab_size == ENGLISH_ONLY_VOCAB:
        name = f"{name}.en"
    elif config.vocab_size != (LARGE_V3 if name.startswith("large") else MANY_LANGUAGES):
        return None
    if name not in PUBLISHED:
        return None
    pairs = (pair.split(".") for pair in PUBLISHED[name].split())
    return tuple((int(layer), int(head)) for layer, head in pairs)
