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


DEPTH: dict[str, Any] = {"patch_size": 6, "reassemble_hidden_size": 24, "reassemble_factors": [4, 2, 1, 0.5]}
DEPTH |= {"neck_hidden_sizes": [5, 7, 9, 11], "fusion_hidden_size": 10, "head_hidden_size": 7}
DINO: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 5, "num_attention_heads": 3, "mlp_ratio": 2}
DINO |= {"image_size": 30, "patch_size": 6, "out_indices": [1, 2, 4, 5], "reshape_hidden_states": False}
DEPTH["backbone_config"] = DINO | {"model_type": "dinov2"}
STAGES: dict[str, Any] = {"num_encoder_blocks": 3, "depths": [1, 2, 1], "sr_ratios": [3, 2, 1], "mlp_ratios": [2, 3, 1]}
STAGES |= {"hidden_sizes": [6, 10, 14], "patch_sizes": [5, 3, 3], "strides": [2, 2, 2], "decoder_hidden_size": 9}
STAGES |= {"num_attention_heads": [2, 5, 7]}

GROUND = {"id2label": {0: "sky", 1: "road", 2: "tree"}, "label2id": {"sky": 0, "road": 1, "tree": 2}}
KEPT = {"size": {"height": 42, "width": 54}, "keep_aspect_ratio": True, "ensure_multiple_of": 6}


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


def saved_depth(folder: Path, **options: Any) -> Any:
    """Save a Depth Anything of transformers with its processor, and return it.  Args: options: `dino` of its DINOv2"""
    dino = transformers.Dinov2Config(**DINO | options.pop("dino", {}))
    config = transformers.DepthAnythingConfig(**DEPTH | {"backbone_config": dino} | options)
    model = random_weights(transformers.DepthAnythingForDepthEstimation(config))
    model.head.conv3.bias.data.fill_(1.0)  # a relative depth below 0 would be 0
    model.save_pretrained(folder)
    transformers.DPTImageProcessor(**KEPT).save_pretrained(folder)
    return model


def saved_segmenter(folder: Path, kind: str = "ForSemanticSegmentation", **options: Any) -> Any:
    """Save a SegFormer of transformers with its processor, and return it."""
    made = getattr(transformers, f"Segformer{kind}")
    model = random_weights(made(transformers.SegformerConfig(**STAGES | GROUND | options)))
    model.save_pretrained(folder)
    transformers.SegformerImageProcessor(size={"height": 44, "width": 52}).save_pretrained(folder)
    return model


def blip_sizes(**options: Any) -> dict[str, Any]:
    """Return the sizes of the parts of a BLIP.  Args: options: of the part of texts"""
    texts = {"vocab_size": len(WORDS), "hidden_size": 18, "num_hidden_layers": 2, "num_attention_heads": 3}
    texts |= {"intermediate_size": 22, "max_position_embeddings": 30, "bos_token_id": 1, "sep_token_id": END}
    texts |= {"eos_token_id": END, "pad_token_id": 0}
    images = {"hidden_size": 18, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
    images |= {"image_size": 24, "patch_size": 6, "initializer_range": 0.3}
    return {"text_config": texts | options, "vision_config": images}


def saved_blip(folder: Path, kind: str, **options: Any) -> Any:
    """Save a BLIP of transformers with its processor, and return it.  Args: options: of the part of texts"""
    tied = options.get("tie_word_embeddings", True)
    config = transformers.BlipConfig(**blip_sizes(**options), tie_word_embeddings=tied, attn_implementation="eager")
    model = random_weights(getattr(transformers, f"Blip{kind}")(config))
    model.save_pretrained(folder)
    prepare = transformers.BlipImageProcessor(size={"height": 24, "width": 24})
    transformers.BlipProcessor(prepare, tokenizer()).save_pretrained(folder)
    return model


def saved(name: str, sizes: dict[str, Any], folder: Path) -> tuple[Path, Any]:
    """Save a model of transformers with its processor, and return both."""
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**sizes)).eval()
    model.save_pretrained(folder)
    processor().save_pretrained(folder)
    return folder, model
