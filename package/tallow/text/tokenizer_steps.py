"""The steps of tokenizer classes: what they build from the entries of a folder's `tokenizer_config.json`.

A step is an entry of `tokenizer.json`: a normalizer, a pre-tokenizer, a decoder or a post-processor.

Source: transformers 5.23, `models/*/tokenization_*.py`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tallow.text.languages import language_code
from tallow.text.sentencepiece import SPACE

Entry = dict[str, Any]
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?"
REST = r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CLIP_WORDS = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


@dataclass
class Folder:
    """The parts of a folder that a class builds its steps from.

    Attributes:
        config: the entries of `tokenizer_config.json`.
        tokens: the special tokens by their names, such as {"bos_token": "<s>"}.
        charsmap: the normalizer of a SentencePiece model, a `Precompiled` entry, or None.
        id_of: returns the id of a token.
    """

    config: Mapping[str, Any]
    tokens: Mapping[str, str]
    charsmap: Entry | None
    id_of: Callable[[str], int]

    def get(self, name: str, default: Any) -> Any:
        """Return an entry of the config; null counts as absent."""
        value = self.config.get(name)
        return default if value is None else value


Steps = Callable[[Folder], Entry]


def sequence(kind: str, parts: Iterable[Entry]) -> Entry:
    """Return a step of several."""
    return {"type": "Sequence", kind: list(parts)}


def replace(pattern: Mapping[str, str], content: str) -> Entry:
    """Return a step that replaces {"String": text} or {"Regex": pattern}."""
    return {"type": "Replace", "pattern": pattern, "content": content}


def metaspace(scheme: str, split: bool = True) -> Entry:
    """Return the step that writes spaces as ▁."""
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split}


def byte_level(prefix: bool = False, use_regex: bool = True) -> Entry:
    """Return the step that writes bytes as letters."""
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": use_regex}


def split(pattern: Mapping[str, str], behavior: str, invert: bool = False) -> Entry:
    """Return the step that splits a text at a pattern."""
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def template(single: str, pair: str) -> Steps:
    """Return a post-processor: "cls A sep" are the class token, the text and the separator, "B:1" is of segment 1."""

    def parts(words: str, folder: Folder, found: dict[str, Entry]) -> list[Entry]:
        entries = []
        for word in words.split():
            name, _, segment = word.partition(":")
            if name in ("A", "B"):
                entries.append({"Sequence": {"id": name, "type_id": int(segment or 0)}})
            elif token := folder.tokens.get(f"{name}_token"):
                entries.append({"SpecialToken": {"id": token, "type_id": int(segment or 0)}})
                found[token] = {"id": token, "ids": [folder.id_of(token)], "tokens": [token]}
        return entries

    def build(folder: Folder) -> Entry:
        found: dict[str, Entry] = {}
        entry = {"type": "TemplateProcessing", "single": parts(single, folder, found)}
        return entry | {"pair": parts(pair, folder, found), "special_tokens": found}

    return build


def marks_of_roberta(first: str = "cls", last: str = "sep") -> Steps:
    """Return the post-processor of RoBERTa: two separators between texts, and one segment."""

    def build(folder: Folder) -> Entry:
        ends = {"sep": folder.tokens[f"{last}_token"], "cls": folder.tokens[f"{first}_token"]}
        return {
            "type": "RobertaProcessing",
            **{name: [token, folder.id_of(token)] for name, token in ends.items()},
            "trim_offsets": folder.get("trim_offsets", True),
            "add_prefix_space": folder.get("add_prefix_space", False),
        }

    return build


def added_ends(folder: Folder) -> Entry:
    """Return the post-processor that `add_bos_token` and `add_eos_token` describe."""
    first = "bos" if folder.get("add_bos_token", False) else ""
    last = "eos" if folder.get("add_eos_token", False) else ""
    second = " ".join(f"{word}:1" for word in (first, "B", last) if word)
    return template(f"{first} A {last}", f"{first} A {last} {second}")(folder)


BERT_MARKS = template("cls A sep", "cls A sep B:1 sep:1")
DOUBLE_MARKS = template("bos A eos", "bos A eos eos B eos")


def word_pieces(folder: Folder) -> Entry:
    """Return the steps of BERT."""
    return {
        "model": {
            "unk_token": folder.tokens["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
        },
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": folder.get("tokenize_chinese_chars", True),
            "strip_accents": folder.config.get("strip_accents"),
            "lowercase": folder.get("do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    }


def pairs(**options: Any) -> Entry:
    """Return the options of a byte-pair encoding."""
    plain = {"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    return plain | {"fuse_unk": False, "byte_fallback": False, "ignore_merges": False} | options


def bytes_of_words(normalizer: Entry | None = None, pattern: str | None = None, digits: bool = False) -> Steps:
    """Return the steps of a byte-level encoding.

    Args:
        pattern: what words are; None means those of GPT-2.
        digits: each digit is a word.
    """

    def build(folder: Folder) -> Entry:
        step = byte_level(folder.get("add_prefix_space", False), use_regex=pattern is None)
        steps = [split({"Regex": pattern}, "Isolated")] if pattern else []
        steps += [{"type": "Digits", "individual_digits": True}] if digits else []
        return {
            "model": pairs(continuing_subword_prefix="", end_of_word_suffix=""),
            "normalizer": normalizer,
            "pre_tokenizer": sequence("pretokenizers", [*steps, step]) if steps else step,
            "decoder": byte_level(True),
        }

    return build


# Not "$", which matches at the end of each line in one of the two engines.
WORD_ENDS = (replace({"Regex": r"</w>(?![\s\S])"}, ""), replace({"String": "</w>"}, " "))


def clip(folder: Folder) -> Entry:
    """Return the steps of CLIP."""
    spaces = replace({"Regex": r"\s+"}, " ")
    return {
        "model": pairs(continuing_subword_prefix="", end_of_word_suffix="</w>", unk_token=folder.tokens["unk_token"]),
        "normalizer": sequence("normalizers", [{"type": "NFC"}, spaces, {"type": "Lowercase"}]),
        "pre_tokenizer": sequence(
            "pretokenizers", [split({"Regex": CLIP_WORDS}, "Removed", invert=True), byte_level()]
        ),
        "decoder": sequence("decoders", [byte_level(True), *WORD_ENDS]),
    }


def llama(folder: Folder) -> Entry:
    """Return the steps of Llama 2."""
    prefix = folder.get("add_prefix_space", True)
    scheme = ("always" if folder.get("legacy", False) else "first") if prefix else "never"
    return {
        "model": pairs(fuse_unk=True, byte_fallback=True),
        "normalizer": None,
        "pre_tokenizer": metaspace(scheme, split=False),
        "decoder": sequence("decoders", [*PIECES, *([STRIP] if prefix else [])]),
    }


PIECES = (replace({"String": SPACE}, " "), {"type": "ByteFallback"}, {"type": "Fuse"})
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def code_llama(folder: Folder) -> Entry:
    """Return the steps of Code Llama."""
    steps = llama(folder)
    model = pairs(fuse_unk=True, byte_fallback=True, unk_token=folder.tokens["unk_token"])
    return steps | {"model": model, "decoder": sequence("decoders", [*PIECES, STRIP])}


def gemma(folder: Folder) -> Entry:
    """Return the steps of Gemma."""
    return {
        "model": pairs(fuse_unk=True, byte_fallback=True, unk_token=folder.tokens["unk_token"]),
        "normalizer": replace({"String": " "}, SPACE),
        "pre_tokenizer": split({"String": " "}, "MergedWithPrevious"),
        "decoder": sequence("decoders", PIECES),
    }


def unigram(unknown: int | None = None) -> Steps:
    """Return the steps of a SentencePiece model that first splits at spaces.

    Args:  unknown: the id of <unk>; None means its place in the vocabulary
    """

    def build(folder: Folder) -> Entry:
        space = metaspace("always" if folder.get("add_prefix_space", True) else "never")
        unk_id = folder.id_of(folder.tokens["unk_token"]) if unknown is None else unknown
        return {
            "model": {"unk_id": unk_id, "byte_fallback": False},
            "normalizer": folder.charsmap,
            "pre_tokenizer": sequence("pretokenizers", [{"type": "WhitespaceSplit"}, space]),
            "decoder": space,
        }

    return build


def albert(folder: Folder) -> Entry:
    """Return the steps of ALBERT."""
    keep, lower = folder.get("keep_accents", False), folder.get("do_lower_case", True)
    return unigram(1)(folder) | {"normalizer": _plain_quotes(folder.charsmap, keep, lower)}


def xlnet(folder: Folder) -> Entry:
    """Return the steps of XLNet."""
    lower = folder.get("do_lower_case", False)
    return unigram(folder.get("unk_id", 0))(folder) | {"normalizer": _plain_quotes(folder.charsmap, False, lower)}


def _plain_quotes(charsmap: Entry | None, keep_accents: bool, lower: bool) -> Entry:
    steps = [replace({"String": quotes}, '"') for quotes in ("``", "''")]
    steps += [] if keep_accents else [{"type": "NFKD"}, {"type": "StripAccents"}]
    steps += [{"type": "Lowercase"}] if lower else []
    steps += [charsmap] if charsmap else []
    return sequence("normalizers", steps)


def pegasus(folder: Folder) -> Entry:
    """Return the steps of Pegasus."""
    first = folder.charsmap or replace({"Regex": r"\n"}, " ")
    space = metaspace("always")
    return {
        "model": {"unk_id": folder.id_of(folder.tokens["unk_token"]), "byte_fallback": False},
        "normalizer": sequence("normalizers", [first, SINGLE_SPACES]),
        "pre_tokenizer": space,
        "decoder": space,
    }


SINGLE_SPACES = replace({"Regex": " {2,}"}, " ")


def deberta_v2(folder: Folder) -> Entry:
    """Return the steps of DeBERTa 2 and 3."""
    spaces = replace({"Regex": r"\s{2,}|[\n\r\t]"}, " ")
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    lower = [{"type": "Lowercase"}] if folder.get("do_lower_case", False) else []
    punctuation = [{"type": "Punctuation", "behavior": "Isolated"}] if folder.get("split_by_punct", False) else []
    space = metaspace("always" if folder.get("add_prefix_space", True) else "first")
    return {
        "model": {"unk_id": folder.id_of(folder.tokens["unk_token"]), "byte_fallback": False},
        "normalizer": sequence("normalizers", [*lower, spaces, {"type": "NFC"}, strip]),
        "pre_tokenizer": sequence("pretokenizers", [*punctuation, space]),
        "decoder": space,
    }


def nllb(folder: Folder) -> Entry:
    """Return the steps of NLLB."""
    space = metaspace("always")
    steps = [folder.charsmap, SINGLE_SPACES] if folder.charsmap else []
    return {
        "model": pairs(fuse_unk=True, unk_token=folder.tokens["unk_token"]),
        "normalizer": sequence("normalizers", steps) if steps else None,
        "pre_tokenizer": space,
        "decoder": space,
    }


def mbart50(folder: Folder) -> Entry:
    """Return the steps of mBART-50."""
    space = metaspace("always")
    steps = [folder.charsmap] if folder.charsmap else []
    normalizer = sequence("normalizers", [*steps, SINGLE_SPACES])
    return unigram(3)(folder) | {"normalizer": normalizer, "pre_tokenizer": space, "decoder": space}


def source_language(default: str, single: str, pair: str) -> Steps:
    """Return a post-processor that writes the language of the source, `src_lang`, for the word `lang`."""

    def build(folder: Folder) -> Entry:
        named = dict(folder.tokens) | {"lang_token": folder.get("src_lang", default)}
        return template(single, pair)(Folder(folder.config, named, folder.charsmap, folder.id_of))

    return build


def marks_of_nllb(folder: Folder) -> Entry:
    """Return the post-processor of NLLB, with the language of the source."""
    legacy = folder.get("legacy_behaviour", False)
    ends = ("A eos lang", "A B eos lang") if legacy else ("lang A eos", "lang A B eos")
    return source_language("eng_Latn", *ends)(folder)


def marks_of_whisper(folder: Folder) -> Entry:
    """Return the post-processor of Whisper, with the tokens that begin a transcript."""
    language = str(folder.get("language", ""))
    words = {
        "start_token": "<|startoftranscript|>",
        "lang_token": f"<|{language_code(language)}|>" if language else "",
        "task_token": f"<|{task}|>" if (task := folder.get("task", "")) else "",
        "times_token": "" if folder.get("predict_timestamps", False) else "<|notimestamps|>",
    }
    named = Folder(folder.config, dict(folder.tokens) | words, folder.charsmap, folder.id_of)
    return template("start lang task times A eos", "start lang task times A B:1 eos:1")(named)
