"""Convert the tokenizer in a GGUF file's metadata to the `tokenizer.json` format.

    tokenizer.ggml.model     "gpt2", byte-level BPE (Llama 3, Qwen, GPT-2); "llama", SentencePiece BPE (Llama 2, Gemma);
                             "gemma4", the same with merges in place of scores;
                             "bert", WordPiece; or "t5", SentencePiece Unigram (XLM-RoBERTa)
    tokenizer.ggml.pre       how "gpt2" splits text into words, before it merges bytes
    tokenizer.ggml.tokens    the tokens, by id;  .token_type  their types;  .merges, .scores  the order of merges
    tokenizer.chat_template  Jinja source; others are tokenizer.chat_template.<name>

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; patterns of each `pre` from llama.cpp's
         `src/llama-vocab.cpp` and the models' own files
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallow.errors import TokenizerError
from tallow.text.piece_merges import piece_merges
from tallow.text.sentencepiece import BYTE, CONTROL, NORMAL, SPACE, UNKNOWN, USER_DEFINED

# Names of ids in files, "seperator" as written there -> entries of `tokenizer_config.json`.
ROLES = {
    "bos": "bos_token",
    "eos": "eos_token",
    "unknown": "unk_token",
    "padding": "pad_token",
    "seperator": "sep_token",
    "mask": "mask_token",
}
TEMPLATE = "tokenizer.chat_template"
# Tokens that end a turn. Files may name only another that ends a text, or none; llama.cpp uses these names too.
ENDS = ("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>")
PHI3_WITH_SPACES = ("<s>", "<|endoftext|>")  # special tokens of Phi-3 that keep the space after them
HINT = "use the model's own tokenizer.json"
CAPITAL = re.compile("[A-Z]")

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SYMBOLS_AND_SPACES = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{SYMBOLS_AND_SPACES}"
QWEN2 = rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{SYMBOLS_AND_SPACES}"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
FALCON = (r"[\p{P}$+<=>^~|`]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")


@dataclass(frozen=True)
class Words:
    """Rules to split text into words, by one pattern after another.

    Attributes:
        ignore_merges: whether a word that is a token is used as it is, without merges.
        bos: whether a text begins with BOS, if the file does not say.
        eos: whether a text ends with EOS, if the file does not say.
        normalizer: the normalizer to apply first, by its name in `tokenizer.json`.
    """

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    bos: bool = False
    eos: bool = False
    normalizer: str | None = None


_GPT2 = Words((GPT2,))
_LLAMA3 = Words((LLAMA3,), ignore_merges=True, bos=True)
_QWEN2 = Words((QWEN2,), normalizer="NFC")
_ROBERTA = Words((GPT2,), bos=True, eos=True)
_DIGITS = Words((r"\p{N}", GPT2))
# By `tokenizer.ggml.pre`. Files from before that key are read like GPT-2, as in transformers.
WORDS = {None: _GPT2, "default": _GPT2, "gpt-2": _GPT2, "mpt": _GPT2, "olmo": _GPT2, "jais": _GPT2}
WORDS |= dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "smaug-bpe", "dbrx", "pixtral"), _LLAMA3)
WORDS |= dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"), _QWEN2)
WORDS |= dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"), _DIGITS)
WORDS |= dict.fromkeys(("gpt2", "phi-2", "gigachat", "a.x-4.0", "mellum", "exaone4"), _GPT2)
WORDS |= dict.fromkeys(("jina-es", "jina-de", "modern-bert"), _GPT2)
WORDS |= dict.fromkeys(("roberta-bpe", "jina-v1-en", "jina-v2-code", "jina-v2-es", "jina-v2-de"), _ROBERTA)
WORDS |= {"falcon": Words(FALCON), "gpt-4o": Words((GPT4O,))}
WORDS |= {"tekken": Words((TEKKEN,), ignore_merges=True, bos=True)}
WORDS |= {"deepseek-coder": Words((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"))}


def tokenizer_entries(metadata: Mapping[str, Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entries of `tokenizer.json` and `tokenizer_config.json` for the metadata of a GGUF file.

    Args:  name: name of the file, for error messages

    Raises:  TokenizerError for an unsupported or malformed tokenizer
    """
    vocabulary = _Vocabulary(metadata, name)
    kind = vocabulary.get("model")
    if not isinstance(kind, str) or kind not in KINDS:
        kinds = ", ".join(map(repr, KINDS))
        raise TokenizerError(f"{name}: its tokenizer has the model {kind!r:.80}; supported are {kinds}", hint=HINT)
    parts = KINDS[kind](vocabulary)
    entries = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(vocabulary.added_tokens())}
    return entries | parts, vocabulary.config()


def end_ids(metadata: Mapping[str, Any]) -> list[int]:
    """Return the ids of the tokens that end a text, or a turn of a conversation."""
    ids = [metadata.get(f"tokenizer.ggml.{role}_token_id") for role in ("eos", "eot", "eom")]
    tokens = metadata.get("tokenizer.ggml.tokens")
    ids += [tokens.index(end) for end in ENDS if end in tokens] if isinstance(tokens, list) else []
    return list(dict.fromkeys(token for token in ids if type(token) is int))


class _Vocabulary:
    """The tokens in a file's metadata, validated."""

    def __init__(self, metadata: Mapping[str, Any], name: str) -> None:
        self._metadata = metadata
        self.name = name
        self.tokens: list[str] = self.get("tokens")
        if not _is_list(self.tokens, str):
            raise TokenizerError(f"{name} has no tokenizer.ggml.tokens", hint=HINT)
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.types = self.list_of("token_type", int) or [NORMAL] * len(self.tokens)
        self._roles: dict[str, str] = {}

    def rename(self, tokens: list[str]) -> None:
        """Replace the tokens, each by that of the same id."""
        self.tokens = tokens
        self.ids = {token: i for i, token in enumerate(tokens)}

    def add_roles(self, tokens: Mapping[str, str]) -> None:
        """Set the tokens of roles for which the file has no id."""
        self._roles |= tokens

    def charsmap(self) -> str | None:
        """Return the table that normalizes characters, in base 64; None if there is none."""
        table = self.get("precompiled_charsmap")
        if table is None or table == []:
            return None
        if not _is_list(table, int) or not all(-128 <= byte < 256 for byte in table):
            raise TokenizerError(f"{self.name}: tokenizer.ggml.precompiled_charsmap is not bytes", hint=HINT)
        return base64.b64encode(bytes(byte & 255 for byte in table)).decode()

    def get(self, key: str) -> Any:
        return self._metadata.get(f"tokenizer.ggml.{key}")

    def list_of(self, key: str, kind: type) -> list[Any]:
        """Return an entry with a value for each token; empty if the entry is missing."""
        values = self.get(key)
        if values is None:
            return []
        if not _is_list(values, kind) or len(values) != len(self.tokens):
            raise TokenizerError(f"{self.name}: tokenizer.ggml.{key} has no {kind.__name__} for each token", hint=HINT)
        return values

    def token(self, role: str) -> str | None:
        """Return the token with a role, such as "bos"."""
        token_id = self.get(f"{role}_token_id")
        known = type(token_id) is int and 0 <= token_id < len(self.tokens)
        return self.tokens[token_id] if known else self._roles.get(role)

    def added_tokens(self) -> Iterator[dict[str, Any]]:
        """Yield the tokens that are matched in the text as a whole, before any other step.

        The token for masks takes the space before it, and those of Phi-3 the space after them, as in their models'
        own tokenizers; files do not say.
        """
        mask, is_phi3 = self.token("mask"), self._metadata.get("general.architecture") == "phi3"
        for i, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True)):
            if kind in (UNKNOWN, CONTROL, USER_DEFINED) and token and self.ids[token] == i:
                yield {
                    "id": i,
                    "content": token,
                    "special": kind != USER_DEFINED,
                    "single_word": False,
                    "lstrip": token == mask,
                    "rstrip": is_phi3 and kind != UNKNOWN and token not in PHI3_WITH_SPACES,
                    "normalized": False,
                }

    def config(self) -> dict[str, Any]:
        """Return the entries of `tokenizer_config.json`."""
        config: dict[str, Any] = {name: token for role, name in ROLES.items() if (token := self.token(role))}
        template = self._metadata.get(TEMPLATE)
        templates = {
            key.removeprefix(f"{TEMPLATE}."): value
            for key, value in self._metadata.items()
            if key.startswith(f"{TEMPLATE}.")
        }
        if templates:
            templates |= {} if template is None else {"default": template}
            template = [{"name": name, "template": source} for name, source in templates.items()]
        return config if template is None else config | {"chat_template": template}

    def ends(self, *, bos: bool, eos: bool = False, separator: bool | None = None) -> dict[str, Any] | None:
        """Return the post-processor that adds BOS and EOS to a text.

        In a pair of texts a separator may follow the first EOS, and then the second text has no BOS.

        Args:  bos, eos, separator: the defaults if the file does not say; without `separator` a pair is two texts
        """
        defaults = {"bos": bos, "eos": eos}
        flags = {role: self.get(f"add_{role}_token") for role in defaults}
        marks = {
            role: token
            for role, default in defaults.items()
            if (default if flags[role] is None else flags[role]) and (token := self.token(role)) is not None
        }
        if not marks:
            return None
        stored = self.get("add_sep_token")
        has_separator = separator if stored is None else bool(stored)
        mark = self.token("seperator") or marks.get("eos")
        second_segment = 0 if self.get("token_type_count") == 1 else 1

        def special(token: str | None, segment: int) -> list[dict[str, Any]]:
            return [] if token is None else [{"SpecialToken": {"id": token, "type_id": segment}}]

        def text(name: str, segment: int) -> list[dict[str, Any]]:
            return [{"Sequence": {"id": name, "type_id": segment}}]

        single = special(marks.get("bos"), 0) + text("A", 0) + special(marks.get("eos"), 0)
        if "eos" in marks and has_separator is not None:
            between = special(mark, 0) if has_separator else []
        else:
            between = special(marks.get("bos"), second_segment)
        pair = single + between + text("B", second_segment) + special(marks.get("eos"), second_segment)
        named = {*marks.values(), *([] if mark is None else [mark])}
        special_tokens = {token: {"id": token, "ids": [self.ids[token]], "tokens": [token]} for token in named}
        return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special_tokens}

    def model(self, merges: Sequence[Any], **options: Any) -> dict[str, Any]:
        model = {"type": "BPE", "dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
        return model | options | {"vocab": self.ids, "merges": merges}


def _byte_level(vocabulary: _Vocabulary) -> dict[str, Any]:
    """Return the entries of a byte-level BPE tokenizer."""
    pre = vocabulary.get("pre")
    if not isinstance(pre, str | None) or pre not in WORDS:
        supported = ", ".join(filter(None, WORDS))
        raise TokenizerError(
            f"{vocabulary.name}: its tokenizer splits text by {pre!r:.80}; supported are {supported}", hint=HINT
        )
    merges = vocabulary.get("merges")
    if not _is_list(merges, str):
        raise TokenizerError(f"{vocabulary.name} has no tokenizer.ggml.merges", hint=HINT)
    words = WORDS[pre]
    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    splits = [split | {"pattern": {"Regex": pattern}} for pattern in words.patterns]
    to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    options = {"unk_token": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": words.ignore_merges}
    return {
        "normalizer": words.normalizer and {"type": words.normalizer},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, to_bytes]},
        "post_processor": vocabulary.ends(bos=words.bos, eos=words.eos, separator=words.eos or None),
        "decoder": to_bytes,
        "model": vocabulary.model(merges, **options),
    }


def _sentence_piece(vocabulary: _Vocabulary) -> dict[str, Any]:
    """Return the entries of a SentencePiece BPE tokenizer with byte fallback."""
    merges: Any = vocabulary.get("merges") if vocabulary.get("model") == "gemma4" else None
    scores = vocabulary.list_of("scores", float)
    if not scores and merges is None:
        raise TokenizerError(f"{vocabulary.name} has no tokenizer.ggml.scores", hint=HINT)
    if merges is not None and not _is_list(merges, str):
        raise TokenizerError(f"{vocabulary.name}: tokenizer.ggml.merges are no strings", hint=HINT)
    unknown = vocabulary.token("unknown") or next(
        (token for token, kind in zip(vocabulary.tokens, vocabulary.types, strict=True) if kind == UNKNOWN), None
    )
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    prefix = [] if vocabulary.get("add_space_prefix") is False else [{"type": "Prepend", "prepend": SPACE}]
    to_text = [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []),
    ]
    options = {"unk_token": unknown, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False}
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*prefix, spaces]},
        "pre_tokenizer": None,
        "post_processor": vocabulary.ends(bos=True),
        "decoder": {"type": "Sequence", "decoders": to_text},
        "model": vocabulary.model(_merges(vocabulary, scores) if merges is None else merges, **options),
    }


def _merges(vocabulary: _Vocabulary, scores: Sequence[float]) -> list[tuple[str, str]]:
    """Return the pairs of tokens whose concatenation is a token, highest score first."""
    merged = {token: scores[i] for token, i in vocabulary.ids.items() if vocabulary.types[i] in (NORMAL, USER_DEFINED)}
    return piece_merges(merged, vocabulary.ids, vocabulary.name)


def _word_pieces(vocabulary: _Vocabulary) -> dict[str, Any]:
    """Return the entries of a WordPiece tokenizer, with BERT's rules to normalize text and to split words.

    A file marks the first pieces of words, with SPACE; a `tokenizer.json` the others, with "##". No entry says whether
    text is converted to lower case: it is if no piece has a capital letter.
    """
    pieces = list(map(_word_piece, vocabulary.tokens, vocabulary.types))
    vocabulary.rename(pieces)
    names = {"bos": "[CLS]", "eos": "[SEP]", "unknown": "[UNK]", "padding": "[PAD]", "mask": "[MASK]"}
    vocabulary.add_roles({role: name for role, name in names.items() if name in vocabulary.ids})
    unknown = vocabulary.token("unknown")
    if unknown is None:
        raise TokenizerError(f"{vocabulary.name} has no token for unknown words", hint=HINT)
    normal = (piece for piece, kind in zip(pieces, vocabulary.types, strict=True) if kind == NORMAL)
    cased = any(map(CAPITAL.search, (piece for piece in normal if not (piece[:1] == "[" and piece[-1:] == "]"))))
    continuation = {"prefix": "##", "cleanup": True}
    normalizer = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": not cased}
    return {
        "normalizer": {"type": "BertNormalizer"} | normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": vocabulary.ends(bos=True, eos=True, separator=False),
        "decoder": {"type": "WordPiece"} | continuation,
        "model": {
            "type": "WordPiece",
            "unk_token": unknown,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary.ids,
        },
    }


def _word_piece(token: str, kind: int) -> str:
    """Return a token of a "bert" vocabulary as in a `tokenizer.json`. In older files not all names in brackets, such as
    [unused1], have the type of special tokens."""
    if token.startswith(SPACE) and token != SPACE:
        return token[1:]
    if kind in (UNKNOWN, CONTROL, USER_DEFINED) or (token[:1] == "[" and token[-1:] == "]" and len(token) > 1):
        return token
    return f"##{token}"


def _unigram(vocabulary: _Vocabulary) -> dict[str, Any]:
    """Return the entries of a SentencePiece Unigram tokenizer."""
    scores = vocabulary.list_of("scores", float)
    if not scores:
        raise TokenizerError(f"{vocabulary.name} has no tokenizer.ggml.scores", hint=HINT)
    unknown = next((i for i, kind in enumerate(vocabulary.types) if kind == UNKNOWN), None)
    scheme = "never" if vocabulary.get("add_space_prefix") is False else "always"
    spaces = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": True}
    steps: list[dict[str, Any]] = []
    if charsmap := vocabulary.charsmap():
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if vocabulary.get("remove_extra_whitespaces") is not False:
        # Not "^" and "$", which match at each line in one of the two engines.
        for pattern, content in ((r"(?<![\s\S]) +| +(?![\s\S])", ""), (" {2,}", " ")):
            steps.append({"type": "Replace", "pattern": {"Regex": pattern}, "content": content})
    return {
        "normalizer": {"type": "Sequence", "normalizers": steps} if steps else None,
        "pre_tokenizer": spaces,
        "post_processor": vocabulary.ends(bos=False, eos=True, separator=False),
        "decoder": spaces,
        "model": {
            "type": "Unigram",
            "unk_id": unknown,
            "vocab": list(zip(vocabulary.tokens, scores, strict=True)),
            "byte_fallback": BYTE in vocabulary.types,
        },
    }


KINDS = {"gpt2": _byte_level, "llama": _sentence_piece, "gemma4": _sentence_piece, "bert": _word_pieces, "t5": _unigram}


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(issubclass(found, kind) for found in set(map(type, value)))
