"""Tokenizers' folders without `tokenizer.json`: the files of each class, with small vocabularies."""

from __future__ import annotations

import functools
import io
import itertools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import sentencepiece

from support import tokenizer_kinds

TEXTS = [
    *("", " ", "hello", "  hello  world ", "Héllo Wörld, ça va?", "日本語 a𠀀b 한국어", "🙂👩‍👩‍👧 x"),
    *("a\nb\r\n\tc\n\n", "a\x00b\x07c\u200bd", "[MASK] <mask> <s>x</s> [SEP][CLS]", "x <|endoftext|> y"),
    *("Hello [MASK]!", "A <new> and <New>,<other>b", "DON'T you'll we'Ve"),
]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def write(folder: Path, files: Mapping[str, Any]) -> Path:
    """Write JSON, text or bytes under each name."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        elif isinstance(content, str):
            (folder / name).write_text(content, encoding="utf-8", newline="")
        else:
            (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def words(*special: str, first: str = "[PAD]") -> str:
    """Return the lines of a WordPiece vocabulary."""
    model = json.loads(tokenizer_kinds.KINDS["words-cased"]())["model"]
    pieces = [token for token in sorted(model["vocab"], key=model["vocab"].get) if token[:1] != "[" or len(token) == 1]
    return "\n".join([first, *special, *pieces]) + "\n"


def merges(special: tuple[str, ...] = (), last: tuple[str, ...] = (), end: str = "") -> dict[str, Any]:
    """Return `vocab.json` and `merges.txt` of a BPE of bytes."""
    model = json.loads(tokenizer_kinds.KINDS["bytes-gpt2"]())["model"]
    tokens = [token for token in sorted(model["vocab"], key=model["vocab"].get) if token[:2] != "<|"]
    pairs = [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]
    if end:  # a mark at the end of words
        tokens += [token + end for token in tokens]
        pairs += [[left, right + end] for left, right in pairs]
    vocab = {token: i for i, token in enumerate([*special, *tokens, *last])}
    return {"vocab.json": vocab, "merges.txt": "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in pairs)}


@functools.cache
def pieces(kind: str, **options: Any) -> bytes:
    """Train a SentencePiece model."""
    target = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(tokenizer_kinds.CORPUS * 4),
        model_writer=target,
        model_type=kind,
        vocab_size=600,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return target.getvalue()


T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "bos_piece": "[CLS]", "eos_piece": "[SEP]"}
XLNET = {"control_symbols": "<cls>,<sep>,<pad>,<mask>,<eod>", "user_defined_symbols": "<eop>,£"}
GEMMA = {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "eos_piece": "<eos>", "bos_piece": "<bos>"}
GEMMA |= {"user_defined_symbols": "<mask>,\n\n,▁▁", "add_dummy_prefix": False, "normalization_rule_name": "identity"}
LLAMA = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "byte_fallback": True}


LEGACY = {"tokenizer_class": "LlamaTokenizer", "legacy": True, "add_bos_token": True, "add_eos_token": True}


def spm(model: str, file: str, kind: str, config: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    named = {} if config is None else {"tokenizer_config.json": config}
    return {file: pieces(kind, **options), "config.json": {"model_type": model}} | named


BERT = ("[UNK]", "[CLS]", "[SEP]", "[MASK]")
END = "<|endoftext|>"
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>")


def bert(config: dict[str, Any] | None = None, model: str = "bert", **files: Any) -> dict[str, Any]:
    named = {} if config is None else {"tokenizer_config.json": config}
    return {"vocab.txt": words(*BERT), "config.json": {"model_type": model}} | named | files


def bpe(model: str, config: dict[str, Any] | None = None, **vocabulary: Any) -> dict[str, Any]:
    named = {} if config is None else {"tokenizer_config.json": config}
    return merges(**vocabulary) | {"config.json": {"model_type": model}} | named


SIZE = len(words(*BERT).split())
TRANSCRIPT = (END, "<|startoftranscript|>", "<|en|>", "<|zh|>", "<|de|>", "<|transcribe|>", "<|notimestamps|>")
NEW = {"content": "<new>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False, "special": True}
DECLARED = {"0": NEW | {"content": "[PAD]", "lstrip": False}}
FOLDERS: dict[str, Callable[[], dict[str, Any]]] = {
    "bert": bert,
    "bert, uncased": lambda: bert({"do_lower_case": True, "model_max_length": 512}),
    "bert, cased": lambda: bert({"do_lower_case": False, "tokenizer_class": "BertTokenizer"}),
    "bert, accents": lambda: bert({"do_lower_case": True, "strip_accents": False}),
    "bert, ideographs": lambda: bert({"tokenize_chinese_chars": False, "strip_accents": True}),
    "bert, Windows lines": lambda: bert() | {"vocab.txt": words(*BERT).replace("\n", "\r\n")},
    "bert, other names": lambda: bert({"unk_token": "[X]"}) | {"vocab.txt": words("[X]", *BERT)},
    "bert, added": lambda: bert(**{"added_tokens.json": {"<new>": SIZE, "<other>": SIZE + 1}}),
    "bert, declared": lambda: bert({"added_tokens_decoder": DECLARED, "additional_special_tokens": ["<new>"]}),
    "distilbert": lambda: bert(model="distilbert"),
    "electra": lambda: bert({"tokenizer_class": "ElectraTokenizer"}, model="electra"),
    "mpnet": lambda: bert(model="mpnet") | {"vocab.txt": words("<pad>", "</s>", "[UNK]", "<mask>", first="<s>")},
    "gpt2": lambda: bpe("gpt2", last=(END,)),
    "gpt2, prefix": lambda: bpe("gpt2", {"add_prefix_space": True, "add_bos_token": True}, last=(END,)),
    "opt": lambda: bpe(
        "opt",
        {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "</s>", "pad_token": "<pad>"}
        | {"eos_token": "</s>", "unk_token": "</s>"},
        special=ROBERTA,
    ),
    "roberta": lambda: bpe("roberta", special=ROBERTA, last=("<mask>",)),
    "roberta, prefix": lambda: bpe("roberta", {"add_prefix_space": True}, special=ROBERTA, last=("<mask>",)),
    "bart": lambda: bpe("bart", {"tokenizer_class": "BartTokenizer"}, special=ROBERTA, last=("<mask>",)),
    "clip": lambda: bpe("clip", end="</w>", last=("<|startoftext|>", END)),
    "qwen2": lambda: bpe("qwen2", {"tokenizer_class": "Qwen2Tokenizer"}, last=(END, "<|im_start|>")),
    "gpt-neox": lambda: bpe("gpt_neox", special=(END, "<|padding|>")),
    "whisper": lambda: bpe("whisper", last=TRANSCRIPT),
    "whisper, language": lambda: bpe(
        "whisper",
        {"language": "German", "task": "transcribe", "predict_timestamps": True},
        last=TRANSCRIPT,
    ),
    "t5": lambda: spm("t5", "spiece.model", "unigram", **T5),
    "t5, extra ids": lambda: spm("t5", "spiece.model", "unigram", {"extra_ids": 5}, **T5),
    "mt5": lambda: spm("mt5", "spiece.model", "unigram", {"tokenizer_class": "T5Tokenizer"}, **T5),
    "albert": lambda: spm("albert", "spiece.model", "unigram", control_symbols="[MASK]", **ALBERT),
    "albert, cased": lambda: spm(
        "albert", "spiece.model", "unigram", {"do_lower_case": False, "keep_accents": True}, **ALBERT
    ),
    "xlnet": lambda: spm("xlnet", "spiece.model", "unigram", **XLNET),
    "llama": lambda: spm("llama", "tokenizer.model", "bpe", {"tokenizer_class": "LlamaTokenizer"}, **LLAMA),
    "llama, legacy": lambda: spm("llama", "tokenizer.model", "bpe", LEGACY, **LLAMA),
    "llama, no prefix": lambda: spm(
        "llama",
        "tokenizer.model",
        "bpe",
        {"add_prefix_space": False, "add_bos_token": True, "tokenizer_class": "LlamaTokenizerFast"},
        **LLAMA,
    ),
    "gemma": lambda: spm("gemma", "tokenizer.model", "bpe", {"add_bos_token": True}, **LLAMA | GEMMA),
    "xlm-roberta": lambda: spm("xlm-roberta", "sentencepiece.bpe.model", "unigram"),
    "camembert": lambda: spm("camembert", "sentencepiece.bpe.model", "unigram"),
    "nllb": lambda: spm(
        "m2m_100",
        "sentencepiece.bpe.model",
        "bpe",
        {"tokenizer_class": "NllbTokenizer", "extra_special_tokens": ["eng_Latn", "fra_Latn"], "src_lang": "fra_Latn"},
    ),
    "mbart": lambda: spm("mbart", "sentencepiece.bpe.model", "unigram", {"src_lang": "de_DE"}),
    "mbart50": lambda: spm(
        "mbart", "sentencepiece.bpe.model", "unigram", {"tokenizer_class": "MBart50Tokenizer", "src_lang": "ro_RO"}
    ),
}


def marian(config: dict[str, Any] | None = None, *, separate: bool = False) -> dict[str, Any]:
    """Return the files of a translation model: not all pieces of the source have an id, and the target has others."""
    source, target = pieces("unigram"), pieces("unigram", user_defined_symbols="Ж,日本")
    names = [
        [model.id_to_piece(i) for i in range(3, len(model))]
        for model in (sentencepiece.SentencePieceProcessor(model_proto=data) for data in (source, target))
    ]
    special, last = ["</s>", "<unk>"], [">>fra<<", ">>deu<<", "<pad>"]
    both = [special, names[0][::-2] if separate else [*names[0][::-2], *names[1]], last]
    files = {"vocab.json": {token: i for i, token in enumerate(dict.fromkeys(itertools.chain(*both)))}}
    if separate:
        files["target_vocab.json"] = {token: i for i, token in enumerate([*special, *names[1], "<pad>"])}
    config = {"separate_vocabs": separate} | (config or {})
    named = {"config.json": {"model_type": "marian"}, "tokenizer_config.json": config}
    return files | named | {"source.spm": source, "target.spm": target}


# Texts that have other ids in the JavaScript library.
DIFFERENCES = {"albert": ["👩\u200d👧", "문장"], "xlnet": ["👩\u200d👧", "문장"], "t5": ["👩\u200d👧"]}


def write_cases(folder: Path, limit: int = 8) -> None:
    """Write each folder to `older`, with what transformers' tokenizer gives for texts in `expected.json`; and to
    `absent` one with what the JavaScript library does not have.

    Args:  limit: of the ids of texts that are truncated
    """
    import transformers

    classes = {"marian": transformers.MarianTokenizer}
    others = {"marian": marian, "marian, separate": functools.partial(marian, separate=True)}
    for place in ("older", "absent"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    write(
        folder / "absent" / "Precompiled", spm("t5", "spiece.model", "unigram", normalization_rule_name="nfkc_cf", **T5)
    )
    for name, files in (FOLDERS | others).items():
        place = write(folder / "older" / name, files())
        tokenizer = classes.get(name.partition(",")[0], transformers.AutoTokenizer).from_pretrained(place)
        texts = [*TEXTS, *tokenizer_kinds.texts(60, 0)]
        rows = [_expected(tokenizer, text, limit) for text in texts if not _differs(text, place)]
        differs = {text: tokenizer.encode(text) for text in DIFFERENCES.get(name, ())}
        write(place, {"expected.json": {"limit": limit, "rows": rows, "differs": differs}})


def _differs(text: str, folder: Path) -> bool:
    """Return whether a text may have other ids in the JavaScript library, see the docstring of `_JavaScript`."""
    if (folder / "merges.txt").exists():
        return False
    return bool(re.search("[\U00020000-\U0003ffff]" if (folder / "vocab.txt").exists() else "\u200d|[가-힣]", text))


def _expected(tokenizer: Any, text: str, limit: int) -> dict[str, Any]:
    target = tokenizer(text_target=text)["input_ids"]
    truncated = {}
    for side in ("right", "left"):
        tokenizer.truncation_side = side
        truncated[side] = tokenizer.encode(text, truncation=True, max_length=limit)
    tokenizer.truncation_side = "right"
    first = text or "a"  # transformers takes an empty text of a pair for none
    pair = tokenizer(first, "a cat")
    return {
        "text": text,
        "ids": tokenizer.encode(text),
        "plain": tokenizer.encode(text, add_special_tokens=False),
        "truncated": truncated,
        "pair": [first, pair["input_ids"], pair.get("token_type_ids")],
        "target": target,
        "decoded": [tokenizer.decode(target, skip_special_tokens=skip) for skip in (True, False)],
    }
