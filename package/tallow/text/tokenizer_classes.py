"""The tokenizer classes of transformers: the special tokens and the steps that a class has of its own.

A folder names a class by `tokenizer_class`, or by the `model_type` of its `config.json`. Most classes build their steps
(normalizer, pre-tokenizer, decoder, post-processor) themselves, from the entries of `tokenizer_config.json`, and take
only the vocabulary from the folder's files. A folder of another class has its steps in `tokenizer.json`.

Source: transformers 5.23, `models/*/tokenization_*.py` and `models/auto/tokenization_auto.py`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from tallow.text import piece_vocabularies
from tallow.text.piece_vocabularies import Scored
from tallow.text.sentencepiece import SentencePieceModel
from tallow.text.tokenizer_steps import (
    BERT_MARKS,
    DOUBLE_MARKS,
    REST,
    WORDS,
    Steps,
    added_ends,
    albert,
    bytes_of_words,
    clip,
    code_llama,
    deberta_v2,
    gemma,
    llama,
    marks_of_nllb,
    marks_of_roberta,
    marks_of_whisper,
    mbart50,
    nllb,
    pegasus,
    source_language,
    template,
    unigram,
    word_pieces,
    xlnet,
)

INPUTS = ("input_ids", "attention_mask")
WITH_SEGMENTS = ("input_ids", "token_type_ids", "attention_mask")
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True)
class TokenizerClass:
    """A class of tokenizers.

    Attributes:
        model: the kind of its vocabulary.
        tokens: its special tokens, where a folder names no others.
        steps: returns its entries `model`, `normalizer`, `pre_tokenizer` and `decoder` of a `tokenizer.json`.
        post_processor: returns that entry; None leaves it as in the file.
        extra: returns more special tokens for a config, where a folder names none.
        pieces: returns its vocabulary for a SentencePiece model.
        mask: how its mask token differs from a plain one.
        pad_type: the segment of padding.
        inputs: what its models take.
    """

    model: str
    tokens: Mapping[str, str]
    steps: Steps
    post_processor: Steps | None = None
    padding_side: str = "right"
    extra: Callable[[Mapping[str, Any]], Sequence[str]] = lambda config: ()
    pieces: Callable[[SentencePieceModel, Mapping[str, str], Mapping[str, Any]], Scored] = piece_vocabularies.plain
    mask: Mapping[str, bool] = field(default_factory=dict)
    pad_type: int = 0
    inputs: tuple[str, ...] = INPUTS


def tokens(names: str) -> dict[str, str]:
    """Return special tokens from pairs of a name and a token: "bos <s> eos </s>"."""
    words = names.split()
    return {f"{name}_token": token for name, token in zip(words[::2], words[1::2], strict=True)}


_FAIRSEQ = tokens("bos <s> eos </s> sep </s> cls <s> unk <unk> pad <pad> mask <mask>")
_END = "<|endoftext|>"
_GPT2 = tokens(f"unk {_END} bos {_END} eos {_END}")
_QWEN = tokens(f"unk {_END} eos {_END} pad {_END}")
_PIECES = tokens("unk <unk> bos <s> eos </s>")
_CLS = tokens("bos [CLS] eos [SEP] unk [UNK] sep [SEP] pad [PAD] cls [CLS] mask [MASK]")
_NFC = {"type": "NFC"}
_T5 = tokens("eos </s> unk <unk> pad <pad>")
_LEFT = {"lstrip": True}
_NOT_USED = ("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED")
_COHERE = "unk <UNK> bos <BOS_TOKEN> eos <|END_OF_TURN_TOKEN|> pad <PAD> cls <CLS> sep <SEP> mask <MASK_TOKEN>"
_BERT = TokenizerClass(
    "WordPiece",
    tokens("unk [UNK] sep [SEP] pad [PAD] cls [CLS] mask [MASK]"),
    word_pieces,
    BERT_MARKS,
    inputs=WITH_SEGMENTS,
)

CLASSES = {
    "AlbertTokenizer": TokenizerClass("Unigram", _CLS | tokens("unk <unk> pad <pad>"), albert, BERT_MARKS),
    "BertTokenizer": _BERT,
    "CLIPTokenizer": TokenizerClass("BPE", _QWEN | tokens("bos <|startoftext|>"), clip, marks_of_roberta("bos", "eos")),
    "CamembertTokenizer": TokenizerClass(
        "Unigram",
        _FAIRSEQ,
        unigram(),
        DOUBLE_MARKS,
        extra=lambda _: _NOT_USED,
        pieces=piece_vocabularies.camembert,
        mask=_LEFT,
    ),
    "CodeGenTokenizer": TokenizerClass("BPE", _GPT2, bytes_of_words()),
    "CodeLlamaTokenizer": TokenizerClass("BPE", _PIECES, code_llama, padding_side="left"),
    "CohereTokenizer": TokenizerClass("BPE", tokens(_COHERE), bytes_of_words(_NFC, digits=True), padding_side="left"),
    "DebertaTokenizer": TokenizerClass(
        "BPE", _CLS, bytes_of_words(), template("cls A sep", "cls A sep sep B sep"), mask=_LEFT, inputs=WITH_SEGMENTS
    ),
    "DebertaV2Tokenizer": TokenizerClass("Unigram", _CLS, deberta_v2, BERT_MARKS, inputs=WITH_SEGMENTS),
    "DistilBertTokenizer": replace(_BERT, inputs=INPUTS),
    "GPT2Tokenizer": TokenizerClass("BPE", _GPT2, bytes_of_words()),
    "GPTNeoXTokenizer": TokenizerClass("BPE", _GPT2 | tokens("pad <|padding|>"), bytes_of_words(_NFC), added_ends),
    "GemmaTokenizer": TokenizerClass(
        "BPE", tokens("unk <unk> bos <bos> eos <eos> pad <pad> mask <mask>"), gemma, padding_side="left"
    ),
    "LlamaTokenizer": TokenizerClass("BPE", _PIECES, llama, padding_side="left"),
    "MBart50Tokenizer": TokenizerClass(
        "Unigram",
        {name: token for name, token in _FAIRSEQ.items() if name != "bos_token"},
        mbart50,
        source_language("en_XX", "lang A eos", "lang A B eos"),
        extra=lambda _: piece_vocabularies.MBART50,
        pieces=piece_vocabularies.mbart50,
        mask=_LEFT,
    ),
    "MBartTokenizer": TokenizerClass(
        "Unigram",
        _FAIRSEQ,
        lambda folder: unigram(3)(folder) | {"normalizer": None},
        source_language("en_XX", "A eos lang", "A B eos lang"),
        extra=lambda _: piece_vocabularies.MBART,
        pieces=piece_vocabularies.mbart,
        mask=_LEFT,
    ),
    "MPNetTokenizer": TokenizerClass(
        "WordPiece", _FAIRSEQ | tokens("unk [UNK]"), word_pieces, marks_of_roberta(), mask=_LEFT
    ),
    "NllbTokenizer": TokenizerClass("BPE", _FAIRSEQ, nllb, marks_of_nllb, pieces=piece_vocabularies.nllb, mask=_LEFT),
    "PegasusTokenizer": TokenizerClass("Unigram", _T5 | tokens("mask <mask_2>"), pegasus, template("A eos", "A B eos")),
    "Qwen2Tokenizer": TokenizerClass(
        "BPE", _QWEN, bytes_of_words(_NFC, rf"{WORDS}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+{REST}")
    ),
    "Qwen3_5Tokenizer": TokenizerClass(
        "BPE",
        _QWEN,
        bytes_of_words(_NFC, rf"{WORDS}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+{REST}"),
    ),
    "RobertaTokenizer": TokenizerClass("BPE", _FAIRSEQ, bytes_of_words(), marks_of_roberta()),
    "T5Tokenizer": TokenizerClass(
        "Unigram",
        _T5,
        unigram(2),
        template("A eos", "A eos B eos"),
        extra=piece_vocabularies.sentinels,
        pieces=piece_vocabularies.t5,
    ),
    "WhisperTokenizer": TokenizerClass("BPE", _GPT2, bytes_of_words(), marks_of_whisper),
    "XLMRobertaTokenizer": TokenizerClass(
        "Unigram", _FAIRSEQ, unigram(3), DOUBLE_MARKS, pieces=piece_vocabularies.fairseq
    ),
    "XLNetTokenizer": TokenizerClass(
        "Unigram",
        tokens("bos <s> eos </s> unk <unk> sep <sep> pad <pad> cls <cls> mask <mask>"),
        xlnet,
        template("A sep cls:2", "A sep B:1 sep:1 cls:2"),
        padding_side="left",
        extra=lambda _: ("<eop>", "<eod>"),
        mask=_LEFT,
        pad_type=3,
    ),
}

# Other names of these classes: whole ones before "Tokenizer".
_SAME = {
    "Bert": "ConvBert DPRContextEncoder DPRQuestionEncoder DPRReader Electra LayoutLM Lxmert MobileBert SqueezeBert",
    "Roberta": "Bart LED Longformer Mvp",
    "T5": "MT5",
}
ALIASES = {f"{name}Tokenizer": f"{kept}Tokenizer" for kept, names in _SAME.items() for name in names.split()}

# Patterns of a `model_type` -> the class before "Tokenizer"; the first that matches. Empty: steps as in tokenizer.json.
_TYPES = {
    "*istral* mixtral pixtral voxtral* phi3* phimoe modernbert* olmo2 olmo3 olmo_hybrid flex_olmo minicpm?*": "",
    "fuyu glm* granite* gpt_bigcode stablelm persimmon aria kosmos-2 llava llava_next vipllava smolvlm siglip2": "",
    "umt5 xlm-roberta-xl nystromformer bigbird_pegasus pegasus_x internlm2 internlm3 nemotron ernie4_5* molmo*": "",
    "bert electra distilbert convbert mobilebert megatron-bert squeezebert nomic_bert layoutlm lxmert vilt visual_bert "
    "ernie blip align chinese_clip git grounding-dino mm-grounding-dino flava nezha bark bros tvp realm": "Bert",
    "roberta roberta-prelayernorm bart longformer mega ibert data2vec-text clap bridgetower lilt mra": "Roberta",
    "florence2 led mvp": "Roberta",
    "gpt2 gpt_neo gptj codegen opt phi starcoder2 dbrx blip-2 instructblip* emu3 jais2 hyperclovax_vision_v2": "GPT2",
    "gpt_neox mamba mamba2 falcon_mamba olmo olmoe mpt rwkv xlstm": "GPTNeoX",
    "qwen3_5* qwen4_exp": "Qwen3_5",
    "qwen2* qwen3* audioflamingo3 colqwen2 internvl ovis2 qianfan_ocr vibevoice lighton_ocr": "Qwen2",
    "gemma* recurrent_gemma shieldgemma2 t5gemma diffusion_gemma zaya": "Gemma",
    "code_llama": "CodeLlama",
    "idefics idefics2": "Llama",
    "t5 mt5 switch_transformers musicgen*": "T5",
    "xlm-roberta xmod gte jina_embeddings_v3 trocr metaclip_2": "XLMRoberta",
    "clip aimv2 clipseg groupvit omdet-turbo oneformer owlv2 owlvit sam3* xclip": "CLIP",
    "albert yoso": "Albert",
    "camembert": "Camembert",
    "cohere cohere2 aya_vision": "Cohere",
    "deberta": "Deberta",
    "deberta-v2": "DebertaV2",
    "mbart": "MBart",
    "mbart50": "MBart50",
    "mpnet": "MPNet",
    "nllb nllb-moe": "Nllb",
    "pegasus": "Pegasus",
    "whisper": "Whisper",
    "xlnet": "XLNet",
}
# Types of models whose folders often name a wrong class: that of the type counts.
_OVER_NAMES = ("qwen2", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen4_exp", "hyperclovax_vision_v2")


def class_name(named: str | None, model_type: str | None, has_bytes: bool) -> str:
    """Return the name of the class of a folder, as in CLASSES; "" for one whose steps are in its `tokenizer.json`.

    Args:
        named: the entry `tokenizer_class`.
        model_type: the entry of `config.json`.
        has_bytes: the folder has a `tokenizer.json` with bytes as letters.
    """
    registered = _class_of_type(model_type or "")
    if named is None:
        name = registered or ""
    elif registered == "" or (named.removesuffix("Fast") == "LlamaTokenizer" and has_bytes):
        name = ""
    else:
        name = registered if registered and model_type in _OVER_NAMES else named
    return known_name(name)


def known_name(name: str) -> str:
    """Return the name in CLASSES for a class, or for another name of it; "" for an unknown one."""
    name = name.removesuffix("Fast")
    name = ALIASES.get(name, name)
    return name if name in CLASSES else ""


def _class_of_type(model_type: str) -> str | None:
    """Return the class of a type of models; "" for those without one of their own, None for unknown types."""
    for patterns, name in _TYPES.items():
        if any(fnmatchcase(model_type, pattern) for pattern in patterns.split()):
            return name and f"{name}Tokenizer"
    return None
