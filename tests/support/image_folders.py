"""Small folders of models of images, as transformers saves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers

WORDS = ["<pad>", "<s>", "</s>", "this", "is", "a", "photo", "of", "cat", "two", "dogs", "tree", ".", "!"]
END = WORDS.index("</s>")


def processor() -> Any:
    # Here, because it takes seconds: a run of all tests collects this file in each of its processes.
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    return CLIPImageProcessorPil(size={"shortest_edge": 24}, crop_size={"height": 24, "width": 24})


def tokenizer() -> Any:
    words = {word: i for i, word in enumerate(WORDS)}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    model.normalizer = tokenizers.normalizers.Lowercase()
    model.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    model.post_processor = tokenizers.processors.BertProcessing(("</s>", END), ("<s>", 1))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="</s>", eos_token="</s>", model_max_length=40
    )


def saved(name: str, sizes: dict[str, Any], folder: Path) -> tuple[Path, Any]:
    """Save a model of transformers with its processor, and return both."""
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**sizes)).eval()
    model.save_pretrained(folder)
    processor().save_pretrained(folder)
    return folder, model
