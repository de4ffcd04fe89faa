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


DETECTOR = {"d_model": 20, "encoder_layers": 2, "decoder_layers": 2, "num_queries": 7, "num_labels": 5}
DETECTOR |= {"encoder_attention_heads": 5, "decoder_attention_heads": 2, "encoder_ffn_dim": 28, "decoder_ffn_dim": 22}
RESNET: dict[str, Any] = {"embedding_size": 6, "hidden_sizes": [8, 12, 20], "depths": [1, 2, 1]}


def random_weights(model: Any) -> Any:
    """Give a model weights under which all parts of the input change the output."""
    generator = torch.Generator().manual_seed(0)
    for name, value in model.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 2.0, generator=generator)
        elif value.ndim == 4:  # of a convolution: the sizes of its output are those of its input
            value.normal_(std=value[0].numel() ** -0.5, generator=generator)
        elif value.is_floating_point():
            scale = 3.0 if "query_position" in name else 0.4
            value += scale * torch.randn(value.shape, generator=generator)
    return model.eval()


def saved_detector(folder: Path, layer_type: str = "bottleneck", **options: Any) -> Any:
    """Save a DETR of transformers with its processor, and return it."""
    eyes = transformers.ResNetConfig(**RESNET, layer_type=layer_type, out_features=["stage3"])
    config = transformers.DetrConfig(backbone_config=eyes, **DETECTOR, **options)
    model = random_weights(transformers.DetrForObjectDetection(config))
    model.save_pretrained(folder)
    transformers.DetrImageProcessor(size={"shortest_edge": 40, "longest_edge": 70}).save_pretrained(folder)
    return model


def saved(name: str, sizes: dict[str, Any], folder: Path) -> tuple[Path, Any]:
    """Save a model of transformers with its processor, and return both."""
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**sizes)).eval()
    model.save_pretrained(folder)
    processor().save_pretrained(folder)
    return folder, model
