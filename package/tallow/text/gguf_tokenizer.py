"""The tokenizers of GGUF files as `tokenizer.json`: what llama.cpp keeps in the metadata, said in Hugging Face's words.

    tokenizer.ggml.model     "gpt2", pairs of bytes (Llama 3, Qwen), or "llama", SentencePiece's (Llama 2, Mistral)
    tokenizer.ggml.pre       how "gpt2" cuts text into words, before it merges bytes
    tokenizer.ggml.tokens    the pieces, by id;  .token_type  what each is;  .merges, .scores  which go together first
    tokenizer.chat_template  Jinja source; further ones are tokenizer.chat_template.<name>

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the words of each `pre` as in llama.cpp's
         `src/llama-vocab.cpp` and in the models' own files
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallow.errors import TokenizerError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6  # types of tokens; those not in use are 5
SPACE = "▁"  # how SentencePiece writes it
ROLES = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
TEMPLATE = "tokenizer.chat_template"
# Tokens that end a turn: files may name another that ends a text, or none, and llama.cpp goes by these names too.
ENDS = ("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>")
MAX_EXPANSION = 64  # letters of the pairs of pieces to one of the pieces
FREE_LETTERS = 1 << 16
MEND = "take the model's own tokenizer.json"

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


@dataclass(frozen=True)
class Words:
    """How text becomes words: cut out by one pattern after the other.

    Attributes:
        whole: a word that is a token is taken as it is, whatever the merges make of it.
        bos: whether a text begins with BOS, where the file does not say.
        normalizer: what is done to the text before, by its name in `tokenizer.json`.
    """

    patterns: tuple[str, ...]
    whole: bool = False
    bos: bool = False
    normalizer: str | None = None


_GPT2 = Words((GPT2,))
_LLAMA3 = Words((LLAMA3,), whole=True, bos=True)
_QWEN2 = Words((QWEN2,), normalizer="NFC")
_DIGITS = Words((r"\p{N}", GPT2))
# By `tokenizer.ggml.pre`. Files older than that key are read as GPT-2's, as transformers does.
WORDS = {None: _GPT2, "default": _GPT2, "gpt-2": _GPT2, "mpt": _GPT2, "olmo": _GPT2, "jais": _GPT2}
WORDS |= dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "smaug-bpe", "dbrx", "pixtral"), _LLAMA3)
WORDS |= dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"), _QWEN2)
WORDS |= dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"), _DIGITS)
WORDS |= {"tekken": Words((TEKKEN,), whole=True, bos=True)}
WORDS |= {"deepseek-coder": Words((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"))}


def tokenizer_entries(metadata: Mapping[str, Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of the `tokenizer.json` and the `tokenizer_config.json` that the metadata of a GGUF file stand for.

    Args:  name: of the file, for error messages

    Raises:  TokenizerError for a tokenizer of another kind, or one that is malformed
    """
    vocabulary = _Vocabulary(metadata, name)
    kind = vocabulary.get("model")
    if kind not in KINDS:
        kinds = ", ".join(map(repr, KINDS))
        raise TokenizerError(f"{name}: its tokenizer is of kind {kind!r:.80}; {kinds} are read", mend=MEND)
    entries = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(vocabulary.added_tokens())}
    return entries | KINDS[kind](vocabulary), vocabulary.config()


def end_ids(metadata: Mapping[str, Any]) -> list[int]:
    """The ids of the tokens that end a text, or a turn of a conversation."""
    given = [metadata.get(f"tokenizer.ggml.{role}_token_id") for role in ("eos", "eot", "eom")]
    tokens = metadata.get("tokenizer.ggml.tokens")
    given += [tokens.index(end) for end in ENDS if end in tokens] if isinstance(tokens, list) else []
    return list(dict.fromkeys(token for token in given if type(token) is int))


class _Vocabulary:
    """What a file says of its tokens, checked."""

    def __init__(self, metadata: Mapping[str, Any], name: str) -> None:
        self._metadata = metadata
        self.name = name
        self.tokens: list[str] = self.get("tokens")
        if not _is_list(self.tokens, str):
            raise TokenizerError(f"{name} has no tokenizer.ggml.tokens", mend=MEND)
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.types = self.list_of("token_type", int) or [NORMAL] * len(self.tokens)

    def get(self, key: str) -> Any:
        return self._metadata.get(f"tokenizer.ggml.{key}")

    def list_of(self, key: str, kind: type) -> list[Any]:
        """An entry with a value for each token; empty where there is none."""
        values = self.get(key)
        if values is None:
            return []
        if not _is_list(values, kind) or len(values) != len(self.tokens):
            raise TokenizerError(f"{self.name}: tokenizer.ggml.{key} has no {kind.__name__} for each token", mend=MEND)
        return values

    def token(self, role: str) -> str | None:
        """The token that the file gives a role, such as "bos"."""
        token_id = self.get(f"{role}_token_id")
        return self.tokens[token_id] if type(token_id) is int and 0 <= token_id < len(self.tokens) else None

    def added_tokens(self) -> Iterator[dict[str, Any]]:
        """Those that text matches as a whole, before anything else is done to it."""
        options = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for i, (token, kind) in enumerate(zip(self.tokens, self.types, strict=True)):
            if kind in (UNKNOWN, CONTROL, USER_DEFINED) and token and self.ids[token] == i:
                yield {"id": i, "content": token, "special": kind != USER_DEFINED, **options}

    def config(self) -> dict[str, Any]:
        """What `tokenizer_config.json` would say."""
        config: dict[str, Any] = {name: token for role, name in ROLES.items() if (token := self.token(role))}
        template = self._metadata.get(TEMPLATE)
        named = {
            key.removeprefix(f"{TEMPLATE}."): value for key, value in self._metadata.items() if f"{TEMPLATE}." in key
        }
        if named:
            named |= {} if template is None else {"default": template}
            template = [{"name": name, "template": source} for name, source in named.items()]
        return config if template is None else config | {"chat_template": template}

    def ends(self, bos: bool) -> dict[str, Any] | None:
        """The post-processor, that puts BOS before a text and EOS after it. `bos`: where the file does not say."""
        wanted = {"bos": self.get("add_bos_token"), "eos": self.get("add_eos_token")}
        wanted["bos"] = bos if wanted["bos"] is None else wanted["bos"]
        marks = {role: token for role in wanted if wanted[role] and (token := self.token(role)) is not None}
        if not marks:
            return None

        def around(place: str, segment: int) -> list[dict[str, Any]]:
            text = {"Sequence": {"id": place, "type_id": segment}}
            special = {role: {"SpecialToken": {"id": token, "type_id": segment}} for role, token in marks.items()}
            return [part for part in (special.get("bos"), text, special.get("eos")) if part is not None]

        special_tokens = {token: {"id": token, "ids": [self.ids[token]], "tokens": [token]} for token in marks.values()}
        single, second = around("A", 0), around("B", 1)
        parts = {"single": single, "pair": single + second, "special_tokens": special_tokens}
        return {"type": "TemplateProcessing", **parts}

    def model(self, merges: Sequence[Any], **options: Any) -> dict[str, Any]:
        model = {"type": "BPE", "dropout": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
        return model | options | {"vocab": self.ids, "merges": merges}


def _of_bytes(vocabulary: _Vocabulary) -> dict[str, Any]:
    """Pairs of bytes, each written as a character."""
    pre = vocabulary.get("pre")
    if not isinstance(pre, str | None) or pre not in WORDS:
        known = ", ".join(filter(None, WORDS))
        raise TokenizerError(f"{vocabulary.name}: text is cut in the manner {pre!r:.80}; {known} are read", mend=MEND)
    merges = vocabulary.get("merges")
    if not _is_list(merges, str):
        raise TokenizerError(f"{vocabulary.name} has no tokenizer.ggml.merges", mend=MEND)
    words = WORDS[pre]
    cut = {"type": "Split", "behavior": "Isolated", "invert": False}
    splits = [cut | {"pattern": {"Regex": pattern}} for pattern in words.patterns]
    to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    options = {"unk_token": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": words.whole}
    return {
        "normalizer": words.normalizer and {"type": words.normalizer},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, to_bytes]},
        "post_processor": vocabulary.ends(words.bos),
        "decoder": to_bytes,
        "model": vocabulary.model(merges, **options),
    }


def _of_pieces(vocabulary: _Vocabulary) -> dict[str, Any]:
    """SentencePiece's pairs of pieces; bytes stand for characters that are no piece."""
    scores = vocabulary.list_of("scores", float)
    if not scores:
        raise TokenizerError(f"{vocabulary.name} has no tokenizer.ggml.scores", mend=MEND)
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
        "post_processor": vocabulary.ends(True),
        "decoder": {"type": "Sequence", "decoders": to_text},
        "model": vocabulary.model(_merges(vocabulary, scores), **options),
    }


def _merges(vocabulary: _Vocabulary, scores: Sequence[float]) -> list[tuple[str, str]]:
    """The pairs of pieces that make a piece of text, those that make one of a higher score first.

    Raises:  TokenizerError where they take far more room than the pieces themselves, which no vocabulary of words does
    """
    pieces = [token for token, i in vocabulary.ids.items() if token]
    # A pair is a beginning that is a piece and an ending that is one, and nothing in between.
    beginnings = _within(pieces)
    endings = {token[::-1]: lengths for token, lengths in _within([token[::-1] for token in pieces]).items()}
    room = MAX_EXPANSION * (FREE_LETTERS + sum(map(len, pieces)))
    found = []
    for token in pieces:
        i = vocabulary.ids[token]
        if vocabulary.types[i] not in (NORMAL, USER_DEFINED):
            continue
        rights = {len(token) - length for length in endings[token]}
        cuts = [length for length in beginnings[token] if length in rights]
        room -= len(cuts) * len(token)
        if room < 0:
            raise TokenizerError(f"{vocabulary.name}: its pieces go together in too many ways", mend=MEND)
        found += [(-scores[i], -cut, (token[:cut], token[cut:])) for cut in cuts]
    return [pair for _, _, pair in sorted(found)]


def _within(tokens: list[str]) -> dict[str, list[int]]:
    """Of each token, the lengths of the shorter ones that it begins with.

    In order, what a token begins with comes before it, and each is a beginning of the next: one pass finds all of them,
    where trying each length would take the square of a token's.
    """
    found: dict[str, list[int]] = {}
    open_: list[str] = []
    for token in sorted(tokens):
        while open_ and not token.startswith(open_[-1]):
            open_.pop()
        found[token] = [len(beginning) for beginning in open_]
        open_.append(token)
    return found


KINDS = {"gpt2": _of_bytes, "llama": _of_pieces}


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(part, kind) for part in value)
