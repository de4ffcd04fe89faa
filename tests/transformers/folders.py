"""Small random models as folders of the Hub, written by the real transformers, each with a tokenizer of its kind."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

LONG = 32  # tokens that the tokenizers take
WHISPER = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2}
WHISPER |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "num_mel_bins": 80}
WHISPER |= {"max_source_positions": 50, "max_target_positions": 40, "init_std": 0.2, "vocab_size": 51865}
SPEECH = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
SPEECH |= {"conv_dim": [7, 9, 11], "conv_stride": [5, 3, 2], "conv_kernel": [9, 4, 3], "conv_bias": True}
SPEECH |= {"num_conv_pos_embeddings": 6, "num_conv_pos_embedding_groups": 4, "vocab_size": 12, "initializer_range": 0.2}
SPEECH |= {"classifier_proj_size": 10, "mask_time_length": 3, "layer_norm_eps": 1e-3}
SPEAKERS = {"tdnn_dim": [9, 8, 10], "tdnn_kernel": [3, 2, 1], "tdnn_dilation": [1, 2, 1], "xvector_output_dim": 6}
WAVLM = {"num_buckets": 12, "max_bucket_distance": 20}
VITS = {"vocab_size": 17, "hidden_size": 18, "num_hidden_layers": 2, "num_attention_heads": 3, "window_size": 2}
VITS |= {
    "ffn_dim": 20,
    "flow_size": 14,
    "spectrogram_bins": 9,
    "upsample_initial_channel": 24,
    "initializer_range": 0.2,
}
VITS |= {"upsample_rates": [3, 2], "upsample_kernel_sizes": [7, 4], "resblock_kernel_sizes": [3, 5]}
VITS |= {"resblock_dilation_sizes": [[1, 3], [1, 2]], "depth_separable_num_layers": 2, "wavenet_dilation_rate": 2}
VITS |= {"duration_predictor_flow_bins": 5, "duration_predictor_filter_channels": 13, "prior_encoder_num_flows": 2}
VITS |= {"duration_predictor_num_flows": 3, "prior_encoder_num_wavenet_layers": 3}
VITS |= {"posterior_encoder_num_wavenet_layers": 2, "noise_scale": 0.0, "noise_scale_duration": 0.0}
# The special tokens of each kind of tokenizer.
SPECIAL = {
    "words-uncased": {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    | {"mask_token": "[MASK]"},
    "unigram": {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    | {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"},
    "bytes-gpt2": {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|pad|>"},
}
KIND_OF = {  # by model_type; the others have bytes as GPT-2 has
    **dict.fromkeys(("bert", "distilbert", "modernbert"), "words-uncased"),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), "unigram"),
    **dict.fromkeys(("t5", "bart", "marian", "clip", "clip_text_model"), "unigram"),
    **dict.fromkeys(("xlm-roberta-xl", "m2m_100", "mbart", "mt5", "pegasus", "umt5"), "unigram"),
}
RELATIVE_SIZES = {"embedding_size": 20, "intra_bottleneck_size": 16, "num_key_value_heads": 2, "type_vocab_size": 2}
CHAT = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class Folders:
    """Makes each folder at its first use: `folders("BertForMaskedLM")`, `folders("LlamaForCausalLM", head_dim=12)`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.made: dict[str, Path] = {}

    def __call__(self, name: str, **config: Any) -> str:
        """Return the path of a folder with a model of a class of transformers.

        Args:  config: entries that differ from the small sizes of `support.model_pairs`
        """
        key = json.dumps([name, config], sort_keys=True)
        if key not in self.made:
            self.made[key] = write(self.base / f"{name}-{len(self.made)}", name, config)
        return str(self.made[key])


def write(folder: Path, name: str, entries: dict[str, Any]) -> Path:
    """Write a random model and its tokenizer."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    kind = getattr(transformers, name)
    sizes = {key: value for key, value in _sizes(kind).items() if key != "vocab_size" or _has_images_or_sound(kind)}
    if not _has_images_or_sound(kind) or kind.config_class.model_type == "clip":
        tokenizer = _tokenizer(kind.config_class.model_type)
        sizes = _with_tokenizer(sizes, tokenizer)
        tokenizer.save_pretrained(folder)
    if "QuestionAnswering" in name:  # whose labels are starts and ends
        sizes = {key: value for key, value in sizes.items() if key not in ("id2label", "label2id")}
    torch.manual_seed(len(name))
    model = kind(kind.config_class(**(sizes | entries))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # norms are initialized to ones, biases to zeros
                parameter.add_(torch.randn_like(parameter) / 4)
    model.save_pretrained(folder)
    return folder


def _has_images_or_sound(kind: Any) -> bool:
    return kind.main_input_name != "input_ids" or kind.config_class.model_type in ("blip", "clip", "vits")


def _sizes(kind: Any) -> dict[str, Any]:
    if kind.config_class.model_type == "whisper":
        return WHISPER
    if kind.config_class.model_type == "vits":
        return VITS
    if kind.config_class.model_type in ("hubert", "wav2vec2", "wavlm"):
        own = kind.config_class.__dataclass_fields__
        return SPEECH | {name: size for name, size in (SPEAKERS | WAVLM).items() if name in own}
    transformers = pytest.importorskip("transformers")
    from support.image_folders import DEPTH, DETECTOR, RESNET, STAGES, blip_sizes
    from support.model_pairs import BART_SIZES, ENCODER_SIZES, EVERY, LABELS, T5_SIZES

    if kind.config_class.model_type == "resnet":
        return RESNET | LABELS
    if kind.config_class.model_type == "depth_anything":
        return DEPTH
    if kind.config_class.model_type == "blip":
        return blip_sizes(vocab_size=20)
    if kind.config_class.model_type == "segformer":
        return STAGES | LABELS
    if kind.config_class.model_type == "detr":
        eyes = RESNET | {"model_type": "resnet", "out_features": ["stage3"]}
        if kind.__name__ == "DetrForSegmentation":  # whose norms have groups of 8
            eyes |= {"out_features": ["stage1", "stage2", "stage3"]}
            return DETECTOR | {"d_model": 32, "encoder_attention_heads": 8, "backbone_config": eyes}
        return DETECTOR | {"backbone_config": eyes}
    for name, sizes in EVERY.values():
        if getattr(transformers, name).config_class is kind.config_class:
            return sizes
    # A relative of BERT, of BART or of T5.
    own = kind.config_class.__dataclass_fields__
    # Sizes within another config would be left at those of real models, which do not fit into memory.
    assert "text_config" not in own, f"{kind.__name__}: there are no small sizes"
    if "d_model" in own:
        return T5_SIZES if "d_kv" in own else BART_SIZES
    return ENCODER_SIZES | LABELS | {name: size for name, size in RELATIVE_SIZES.items() if name in own}


def _with_tokenizer(sizes: dict[str, Any], tokenizer: Any) -> dict[str, Any]:
    """Return sizes that fit a tokenizer: its vocabulary and special tokens."""
    own = {"vocab_size": len(tokenizer)}
    own |= {
        f"{name}_token_id": token
        for name in ("pad", "eos", "bos")
        if (token := getattr(tokenizer, f"{name}_token_id")) is not None
    }
    if "vision_config" in sizes:
        return sizes | {"text_config": sizes["text_config"] | own}
    if "d_model" in sizes:
        own["decoder_start_token_id"] = own["pad_token_id"]
        own |= {name: own["eos_token_id"] for name in ("forced_eos_token_id",) if name in sizes}
    if "vocab_size_per_layer_input" in sizes:  # a second table of all tokens
        own["vocab_size_per_layer_input"] = own["vocab_size"]
    return sizes | own


@cache
def _trained(kind: str) -> str:
    from support.tokenizer_kinds import KINDS

    return KINDS[kind]()


def _tokenizer(model_type: str) -> Any:
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer

    kind = KIND_OF.get(model_type, "bytes-gpt2")
    options: dict[str, Any] = SPECIAL[kind] | {"model_max_length": LONG}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(_trained(kind)), **options)
    tokenizer.chat_template = CHAT if kind == "bytes-gpt2" else None
    return tokenizer
