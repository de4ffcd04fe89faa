"""Whole folders of well-known models: every file as the published folder has it, but small random weights.

The entries of `config.json`, `tokenizer_config.json` and `generation_config.json` are those of the published files,
down to those that nothing reads; only sizes are smaller. The vocabularies have the published sizes and special tokens;
their words come from the folder of real data, so that texts become words.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from safetensors.torch import load_file, save_file

from support import hub_files, sentencepiece_files
from support.hugging_face import minilm_folder
from support.paths import data_dir
from support.qwen3 import byte_vocabulary
from support.sentencepiece_files import BPE, CONTROL, NORMAL, UNIGRAM, UNKNOWN, USER_DEFINED, Piece, field
from support.shrunk_configs import TOKENS, shrunk
from tallow.text.llama2c import Llama2cTokenizer

Weights = dict[str, torch.Tensor]
COLLECTIONS = (
    *("configs", "tokenizer_configs", "special_tokens_maps", "generation_configs"),
    *("sentence_transformers", "preprocessor_configs"),
)
NEEDED = ("hub/configs.jsonl", "gpt2.tiktoken", "multilingual.tiktoken", "llama2c_tokenizer_32000.bin")
CONFIG = "config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
IDENTITY = "torch.nn.modules.linear.Identity"


class Whole(NamedTuple):
    """The files of a folder.

    Attributes:
        files: objects for JSON, text or bytes, by the names of the files. `config.json` has the published sizes.
        names: gives the weights the names that the published file has, from those that transformers writes.
        fast: make a `tokenizer.json` of the other files.
    """

    files: dict[str, Any]
    names: Callable[[Weights], Weights] = dict
    fast: bool = False


def missing() -> str:
    """Return the reason why folders cannot be made here, or "" if they can."""
    absent = [name for name in NEEDED if not (data_dir() / name).exists()]
    return f"{data_dir()} has no {', '.join(absent)}" if absent else ""


def write(folder: Path, whole: Whole) -> Path:
    """Write a folder with random weights."""
    folder.mkdir(parents=True)
    config = whole.files[CONFIG]
    small = shrunk(config) | {name: config[name] for name in config if _is_of_vocabulary(name)}
    if "num_mel_bins" in config:  # the length of the sound is in another file
        small |= {"max_source_positions": config["max_source_positions"]}
    kind = getattr(transformers, config["architectures"][0])
    model = kind(kind.config_class(**small)).eval()
    _randomize(model, zlib.crc32(folder.name.encode()))
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    weights = folder / "model.safetensors"
    save_file(
        {name: each.contiguous() for name, each in whole.names(load_file(weights)).items()}, weights, {"format": "pt"}
    )
    for name, content in (whole.files | {CONFIG: small}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            (folder / name).write_text(text, encoding="utf-8")
    if whole.fast:
        transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def _is_of_vocabulary(name: str) -> bool:
    return name.endswith(("_token_id", "_token_ids", "vocab_size")) or name in TOKENS


def _randomize(model: torch.nn.Module, seed: int) -> None:
    """Give every weight a value that affects the output; nearly equal logits would hide faults."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.copy_(noise * 0.3 if weight.ndim > 1 or name.endswith("bias") else 1 + noise * 0.1)


@cache
def hub() -> dict[str, dict[str, Any]]:
    """Return the files of the folders in the collection."""
    return hub_files.folders(*COLLECTIONS)


def published(folder: str, *names: str) -> dict[str, Any]:
    """Return files of a folder of the collection."""
    return {name: hub()[folder][name] for name in (CONFIG, *names)}


# ------------------------------------------------------------------------------------------------------- vocabularies


@cache
def byte_files(name: str = "gpt2", size: int | None = None, start: int = 0) -> tuple[dict[str, int], str]:
    """Return the entries of a `vocab.json` and the text of `merges.txt`, of a byte-level BPE.

    Args:
        size: of the vocabulary; by default that of the file of ranks. A larger one gets further words.
        start: the lowest id.
    """
    vocab, merges = byte_vocabulary(data_dir() / f"{name}.tiktoken")
    words = list(vocab)[:size]
    words += [f"Ġfurther{i}" for i in range((size or 0) - len(words))]
    known = set(words)
    lines = [f"{left} {right}" for left, right in merges if left + right in known]
    return {word: start + i for i, word in enumerate(words)}, "\n".join(["#version: 0.2", *lines, ""])


@cache
def words_of_llama() -> tuple[list[str], list[float], list[int]]:
    """Return the pieces of Llama 2, their scores and types."""
    form = Llama2cTokenizer.load(data_dir() / "llama2c_tokenizer_32000.bin").gguf_form()
    return tuple(list(form[f"tokenizer.ggml.{name}"]) for name in ("tokens", "scores", "token_type"))  # type: ignore[return-value]


def spiece(special: Iterable[tuple[str, int]], size: int, *, kind: int, ids: Mapping[str, int]) -> bytes:
    """Return a SentencePiece model: special pieces, then words of Llama's.

    Args:  ids: of the special pieces by the names of the trainer's fields: unk, bos, eos, pad; -1 for none
    """
    tokens, scores, types = words_of_llama()
    pieces: list[Piece] = [(piece, 0.0, type) for piece, type in special]
    taken = {piece for piece, _, _ in pieces}
    start = 3 if kind == BPE else 259  # a unigram model has no bytes
    found = zip(tokens[start:], scores[start:], types[start:], strict=True)
    words = [(piece, score if kind == BPE else score / 2000 - 1, type) for piece, score, type in found]
    pieces += [word for word in words if word[0] not in taken][: size - len(pieces)]
    pieces += [(f"▁further{i}", -99.0, NORMAL) for i in range(size - len(pieces))]
    trainer = b"".join(field(number, ids[name]) for number, name in enumerate(("unk", "bos", "eos", "pad"), 40))
    trainer += field(35, 1) if kind == BPE else b""  # byte_fallback
    return sentencepiece_files.model(pieces, kind=kind, trainer=trainer)


def added(token: str, **flags: bool) -> dict[str, Any]:
    """Return a token as `special_tokens_map.json` and the list of added tokens have it."""
    return {"content": token, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False} | flags


# ------------------------------------------------------------------------------------------------------------ encoders

BERT = {
    "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": False,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0",
    "type_vocab_size": 2,
    "use_cache": True,
    "vocab_size": 30522,
}
SMALL_BERT = BERT | {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6}
BERT_TOKENS = {
    **{f"{name}_token": f"[{name.upper()}]" for name in ("cls", "mask", "pad", "sep", "unk")},
    "do_basic_tokenize": True,
    "do_lower_case": True,
    "never_split": None,
    "strip_accents": None,
    "tokenize_chinese_chars": True,
    "model_max_length": 512,
    "tokenizer_class": "BertTokenizer",
}


def words_of_bert() -> str:
    return (minilm_folder() / "vocab.txt").read_text("utf-8")


def with_positions(prefix: str) -> Callable[[Weights], Weights]:
    """Return a function that adds the positions which older files hold among the weights."""

    def names(weights: Weights) -> Weights:
        count = len(weights[f"{prefix}embeddings.position_embeddings.weight"])
        return weights | {f"{prefix}embeddings.position_ids": torch.arange(count)[None]}

    return names


def _names_of_tensorflow(weights: Weights) -> Weights:
    """BERT's first files: gamma and beta, and the heads of both tasks."""
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): each
        for name, each in weights.items()
    }
    width = len(weights["bert.embeddings.LayerNorm.weight"])
    further = {"bert.pooler.dense": (width, width), "cls.seq_relationship": (2, width)}
    for name, (rows, columns) in further.items():
        renamed |= {f"{name}.weight": torch.ones(rows, columns), f"{name}.bias": torch.zeros(rows)}
    return renamed


def bert_base_uncased(*, fast: bool) -> Whole:
    files = {
        CONFIG: {"architectures": ["BertForMaskedLM"], **BERT},
        TOKENIZER_CONFIG: {"do_lower_case": True, "model_max_length": 512},
        "vocab.txt": words_of_bert(),
    }
    return Whole(files, _names_of_tensorflow, fast)


def roberta_base() -> Whole:
    vocab, merges = byte_files(start=4)
    special = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    last = ["<|endoftext|>", "madeupword0000", "madeupword0001", "madeupword0002", "<mask>"]
    config = {name: value for name, value in BERT.items() if name != "gradient_checkpointing"} | {
        "architectures": ["RobertaForMaskedLM"],
        "bos_token_id": 0,
        "eos_token_id": 2,
        "layer_norm_eps": 1e-05,
        "max_position_embeddings": 514,
        "model_type": "roberta",
        "pad_token_id": 1,
        "type_vocab_size": 1,
        "vocab_size": 50265,
    }
    files = {
        CONFIG: config,
        TOKENIZER_CONFIG: {"model_max_length": 512},
        "vocab.json": special | vocab | {word: 4 + len(vocab) + i for i, word in enumerate(last)},
        "merges.txt": merges,
    }
    return Whole(files, with_positions("roberta."))


def cross_encoder(form: Mapping[str, Any], labels: int = 1) -> Whole:
    """ms-marco-MiniLM-L-6-v2.  Args: form: the entries of `config.json` that sentence-transformers writes"""
    names = [f"LABEL_{i}" for i in range(labels)] if labels == 1 else ["contradiction", "entailment", "neutral"]
    config = {
        "_name_or_path": "microsoft/MiniLM-L12-H384-uncased",
        "architectures": ["BertForSequenceClassification"],
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
        **SMALL_BERT,
        **form,
    }
    files = {
        CONFIG: config,
        TOKENIZER_CONFIG: BERT_TOKENS | {"name_or_path": "microsoft/MiniLM-L12-H384-uncased"},
        "special_tokens_map.json": {name: each for name, each in BERT_TOKENS.items() if name.endswith("_token")},
        "vocab.txt": words_of_bert(),
    }
    return Whole(files, with_positions("bert."), fast=True)


OLD_CROSS_ENCODER = {"sbert_ce_default_activation_function": IDENTITY}
NEW_CROSS_ENCODER = {"sentence_transformers": {"activation_fn": IDENTITY, "version": "4.1.0.dev0"}}


def sentence_encoder(folder: str, pooling: str, **files: Any) -> Whole:
    """An encoder of sentence-transformers.  Args: folder: of the collection, for `config.json` and the rest"""
    names = (TOKENIZER_CONFIG, "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json")
    found = published(folder, *(name for name in names if name in hub()[folder]))
    parts = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    width = shrunk(found[CONFIG])["hidden_size"]
    found["1_Pooling/config.json"] = {
        "word_embedding_dimension": width,
        **{f"pooling_mode_{part}": part == pooling for part in parts},
    }
    return Whole(found | files, with_positions(""), fast=True)


def all_minilm() -> Whole:
    return sentence_encoder("DeathGamer111/MiniLM-L6-v2:", "mean_tokens", **{"vocab.txt": words_of_bert()})


def bge_small() -> Whole:
    folder = "SergiFuster/dailynoteclassifier-setfit-v1.5-16-shot:"
    return sentence_encoder(folder, "cls_token", **{"vocab.txt": words_of_bert()})


def e5_small_v2() -> Whole:
    files = {
        CONFIG: {
            "_name_or_path": "checkpoint",
            "architectures": ["BertModel"],
            "classifier_dropout": None,
            **SMALL_BERT,
        },
        TOKENIZER_CONFIG: BERT_TOKENS,
        "vocab.txt": words_of_bert(),
        "sentence_bert_config.json": {"max_seq_length": 512, "do_lower_case": False},
    }
    return sentence_encoder("DeathGamer111/MiniLM-L6-v2:", "mean_tokens", **files)


def vit_base() -> Whole:
    """vit-base-patch16-224 with three of its labels."""
    labels = ["tench, Tinca tinca", "goldfish, Carassius auratus", "tiger shark, Galeocerdo cuvieri"]
    config = {
        "architectures": ["ViTForImageClassification"],
        "attention_probs_dropout_prob": 0.0,
        "encoder_stride": 16,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "hidden_size": 768,
        "image_size": 224,
        "initializer_range": 0.02,
        "intermediate_size": 3072,
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
        "layer_norm_eps": 1e-12,
        "model_type": "vit",
        "num_attention_heads": 12,
        "num_channels": 3,
        "num_hidden_layers": 12,
        "patch_size": 16,
        "qkv_bias": True,
        "transformers_version": "4.13.0.dev0",
    }
    size = shrunk(config)["image_size"]
    half = [0.5, 0.5, 0.5]
    processor = {"do_normalize": True, "do_resize": True, "image_mean": half, "image_std": half, "size": size}
    return Whole({CONFIG: config, "preprocessor_config.json": processor})


# ------------------------------------------------------------------------------------------------------------ decoders

GPT2 = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1,
    "bos_token_id": 50256,
    "embd_pdrop": 0.1,
    "eos_token_id": 50256,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "resid_pdrop": 0.1,
    "summary_activation": None,
    "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True,
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    "vocab_size": 50257,
}
CHATML_OF_SMOLLM = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou "
    "are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
    "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TURNS_OF_GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif "
    "%}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception("
    "'Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == "
    "'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' "
    "+ role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{'<start_of_turn>model\n'}}{% endif %}"
)
TURNS_OF_LLAMA = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]["
    "'content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for "
    "message in loop_messages %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + "
    "system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}"
    "{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)


def _names_of_gpt2(weights: Weights) -> Weights:
    """GPT-2's first files: no prefix, and the masks of attention."""
    masks = torch.ones(1024, 1024).tril()[None, None]
    layers = {name.split(".")[2] for name in weights if name.startswith("transformer.h.")}
    renamed = {name.removeprefix("transformer."): each for name, each in weights.items()}
    return renamed | {f"h.{layer}.attn.bias": masks.clone() for layer in layers}


def gpt2(**entries: Any) -> Whole:
    vocab, merges = byte_files()
    files = {
        CONFIG: GPT2 | entries,
        TOKENIZER_CONFIG: {"model_max_length": 1024},
        "generation_config.json": {
            "_from_model_config": True,
            "bos_token_id": 50256,
            "eos_token_id": 50256,
            "transformers_version": "4.26.0.dev0",
        },
        "vocab.json": vocab | {"<|endoftext|>": len(vocab)},
        "merges.txt": merges,
    }
    return Whole(files, _names_of_gpt2, fast=True)


def gpt2_medium() -> Whole:
    return gpt2(n_special=0, predict_special_tokens=True, n_embd=1024, n_head=16, n_layer=24)


def distilgpt2() -> Whole:
    return gpt2(_num_labels=1, id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0}, n_layer=6)


def _names_of_llama(weights: Weights) -> Weights:
    """The first files of Llama 2 hold the frequencies of the rotary angles."""
    return weights | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}


def llama_2_chat() -> Whole:
    names = (TOKENIZER_CONFIG, "generation_config.json", "special_tokens_map.json")
    files = published("isatyabrata/llama2-7b-chat-hf:", *names)
    files[TOKENIZER_CONFIG] = files[TOKENIZER_CONFIG] | {"chat_template": TURNS_OF_LLAMA}
    special = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    ids = {"unk": 0, "bos": 1, "eos": 2, "pad": -1}
    files["tokenizer.model"] = spiece(special, 32000, kind=BPE, ids=ids)
    return Whole(files, _names_of_llama)


def qwen_2_5() -> Whole:
    names = (TOKENIZER_CONFIG, "generation_config.json", "special_tokens_map.json")
    files = published("XS-Wu/digital_person_1:", *names)
    vocab, merges = byte_files(size=151643)
    return Whole(files | {"vocab.json": vocab, "merges.txt": merges}, fast=True)


def smollm2() -> Whole:
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>"]
    names += ["<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>"]
    names += ["<jupyter_code>", "<jupyter_output>", "<jupyter_script>", "<empty_output>"]
    config = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": 576,
        "initializer_range": 0.041666666666666664,
        "intermediate_size": 1536,
        "is_llama_config": True,
        "max_position_embeddings": 8192,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": 9,
        "num_hidden_layers": 30,
        "num_key_value_heads": 3,
        "pad_token_id": 2,
        "pretraining_tp": 1,
        "rms_norm_eps": 1e-05,
        "rope_interleaved": False,
        "rope_scaling": None,
        "rope_theta": 100000,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16", "fp16": "float16"}},
        "transformers_version": "4.42.3",
        "use_cache": True,
        "vocab_size": 49152,
    }
    special = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>"}
    special |= {"unk_token": "<|endoftext|>"}
    listed = {"additional_special_tokens": names[1:3]}
    vocab, merges = byte_files(size=49152 - len(names), start=len(names))
    files = {
        CONFIG: config,
        TOKENIZER_CONFIG: {
            "add_prefix_space": False,
            "added_tokens_decoder": {str(i): added(name, special=True) for i, name in enumerate(names)},
            **listed,
            **special,
            "chat_template": CHATML_OF_SMOLLM,
            "clean_up_tokenization_spaces": False,
            "model_max_length": 8192,
            "tokenizer_class": "GPT2Tokenizer",
            "vocab_size": 49152,
        },
        "special_tokens_map.json": listed | {name: added(token) for name, token in special.items()},
        "generation_config.json": {
            "_from_model_config": True,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 2,
            "transformers_version": "4.42.3",
        },
        "vocab.json": {name: i for i, name in enumerate(names)} | vocab,
        "merges.txt": merges,
    }
    return Whole(files, fast=True)


def gemma_2_it() -> Whole:
    size = 6000  # its special tokens have low ids
    ids = {"bos_token_id": 2, "eos_token_id": [1, 107], "pad_token_id": 0}
    config = {
        "architectures": ["Gemma2ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_logit_softcapping": 50.0,
        "cache_implementation": "hybrid",
        "final_logit_softcapping": 30.0,
        "head_dim": 256,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 2304,
        "initializer_range": 0.02,
        "intermediate_size": 9216,
        "max_position_embeddings": 8192,
        "model_type": "gemma2",
        "num_attention_heads": 8,
        "num_hidden_layers": 26,
        "num_key_value_heads": 4,
        "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-06,
        "rope_theta": 10000.0,
        "sliding_window": 4096,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.42.4",
        "use_cache": True,
        "vocab_size": size,
        **ids,
    }
    pieces = [("<pad>", CONTROL), ("<eos>", CONTROL), ("<bos>", CONTROL), ("<unk>", UNKNOWN), ("<mask>", USER_DEFINED)]
    pieces += [("[@BOS@]", USER_DEFINED), *((f"<unused{i}>", USER_DEFINED) for i in range(100))]
    pieces += [("<start_of_turn>", USER_DEFINED), ("<end_of_turn>", USER_DEFINED)]
    special = {f"{name}_token": f"<{name}>" for name in ("bos", "eos", "pad", "unk")}
    turns = ["<start_of_turn>", "<end_of_turn>"]
    files = {
        CONFIG: config,
        TOKENIZER_CONFIG: {
            "add_bos_token": True,
            "add_eos_token": False,
            "added_tokens_decoder": {
                str(i): added(f"<{name}>", special=True) for i, name in enumerate(("pad", "eos", "bos", "unk"))
            }
            | {str(i): added(turn, special=True) for i, turn in enumerate(turns, 106)},
            "additional_special_tokens": turns,
            **special,
            "chat_template": TURNS_OF_GEMMA,
            "clean_up_tokenization_spaces": False,
            "model_max_length": 1000000000000000019884624838656,
            "sp_model_kwargs": {},
            "spaces_between_special_tokens": False,
            "tokenizer_class": "GemmaTokenizer",
            "use_default_system_prompt": False,
        },
        "special_tokens_map.json": {"additional_special_tokens": turns}
        | {name: added(token) for name, token in special.items()},
        "generation_config.json": {
            "_from_model_config": True,
            "cache_implementation": "hybrid",
            "transformers_version": "4.42.4",
            **ids,
        },
        "tokenizer.model": spiece(pieces, size, kind=BPE, ids={"unk": 3, "bos": 2, "eos": 1, "pad": 0}),
    }
    return Whole(files, fast=True)


# --------------------------------------------------------------------------------------------------- encoder-decoders


def _names_of_t5(weights: Weights) -> Weights:
    """T5's first files have a table of positions that nothing reads."""
    table = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    unread = weights[f"decoder.{table}"].clone()
    return weights | {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": unread}


def t5_small() -> Whole:
    files = published("Entropy87/Dyula-to-French-Translation:saved_model", "generation_config.json")
    pieces = [("<pad>", CONTROL), ("</s>", CONTROL), ("<unk>", UNKNOWN)]
    ids = {"unk": 2, "bos": -1, "eos": 1, "pad": 0}
    files |= {
        TOKENIZER_CONFIG: {"model_max_length": 512},
        "spiece.model": spiece(pieces, 32000, kind=UNIGRAM, ids=ids),
    }
    return Whole(files, _names_of_t5)


def opus_mt() -> Whole:
    files = published("Brycekratzer/NLP-Final-Project-Translatinator:models")
    files |= {"generation_config.json": hub()["BFM123/Triad_Lingua:models"]["generation_config.json"]}
    pieces = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    ids = {"unk": 0, "bos": 1, "eos": 2, "pad": -1}
    model = spiece(pieces, 31000, kind=UNIGRAM, ids=ids)
    words = dict.fromkeys(["</s>", "<unk>", *words_of_llama()[0][259:30000]])
    vocab = {word: i for i, word in enumerate(words)}
    vocab |= {f"▁further{i}": i for i in range(len(vocab), 65000)} | {"<pad>": 65000}
    files |= {
        TOKENIZER_CONFIG: {"target_lang": "es", "source_lang": "en"},
        "source.spm": model,
        "target.spm": model,
        "vocab.json": vocab,
    }
    return Whole(files)


def whisper_tiny() -> Whole:
    """whisper-tiny; the collection has the files of whisper-base, which differ in sizes alone."""
    names = ("generation_config.json", "preprocessor_config.json", "special_tokens_map.json")
    files = published("theonlyengine/whisper-base:", *names)
    vocab, merges = byte_files("multilingual")
    languages = files["generation_config.json"]["lang_to_id"]
    special = ["<|endoftext|>", "<|startoftranscript|>", *sorted(languages, key=languages.__getitem__)]
    special += [f"<|{name}|>" for name in ("translate", "transcribe", "startoflm", "startofprev", "nocaptions")]
    special += ["<|notimestamps|>"]
    times = [f"<|{i / 50:.2f}|>" for i in range(1501)]
    first = len(vocab)
    files |= {
        TOKENIZER_CONFIG: {
            "add_bos_token": False,
            "add_prefix_space": False,
            "bos_token": "<|endoftext|>",
            "added_tokens_decoder": {
                str(i): added(token, special=token not in times) for i, token in enumerate(special + times, first)
            },
            "clean_up_tokenization_spaces": True,
            "eos_token": "<|endoftext|>",
            "errors": "replace",
            "model_max_length": 1024,
            "pad_token": "<|endoftext|>",
            "processor_class": "WhisperProcessor",
            "return_attention_mask": False,
            "tokenizer_class": "WhisperTokenizer",
            "unk_token": "<|endoftext|>",
        },
        "added_tokens.json": {token: i for i, token in enumerate(special, first)},
        "normalizer.json": {"accessorise": "accessorize"},
        "vocab.json": vocab,
        "merges.txt": merges,
    }
    return Whole(files, fast=True)


FOLDERS: dict[str, Callable[[], Whole]] = {
    "bert-base-uncased": partial(bert_base_uncased, fast=True),
    "bert-base-uncased of vocab.txt": partial(bert_base_uncased, fast=False),
    "roberta-base": roberta_base,
    "cross-encoder, old": partial(cross_encoder, OLD_CROSS_ENCODER),
    "cross-encoder, new": partial(cross_encoder, NEW_CROSS_ENCODER),
    "nli": partial(cross_encoder, {}, 3),
    "all-MiniLM-L6-v2": all_minilm,
    "bge-small-en-v1.5": bge_small,
    "e5-small-v2": e5_small_v2,
    "vit-base-patch16-224": vit_base,
    "gpt2-medium": gpt2_medium,
    "distilgpt2": distilgpt2,
    "Llama-2-7b-chat-hf": llama_2_chat,
    "Qwen2.5-3B": qwen_2_5,
    "SmolLM2-135M-Instruct": smollm2,
    "gemma-2-2b-it": gemma_2_it,
    "t5-small": t5_small,
    "opus-mt-en-es": opus_mt,
    "whisper-tiny": whisper_tiny,
}
