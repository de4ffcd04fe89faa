"""Small tokenizers of every kind, trained here, with the ids that the package `tokenizers` gives for texts."""

from __future__ import annotations

import json
import random
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gguf import GGUFWriter
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from support import gguf_files

CORPUS = [
    "The quick brown fox jumps over the lazy dog; it isn't the dog's fault, is it?",
    "A cat sleeps on the sofa. A kitten naps in the sun, and we've seen 1,234 of them in 2024!",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Ça coûte 12,50 € à l'été.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    "日本語のテキストを短く切る。我们在公园里散步。한국어 문장을 나눕니다. ทดสอบภาษาไทย",
    "def f(x):\n    return x ** 2  # a comment\n\tdone = f(3)\n",
    "هذا نص عربي قصير. זה טקסט קצר. नमस्ते दुनिया",
    "🙂 🙂🙂 👩‍👩‍👧 naïve café Ünïcödé ﬁnally ½ ² Ⅷ",
]

# Made by SentencePiece 0.2 from the rules "\ufb01" -> "fi", "\uff21" -> "A", "\u00c4" -> "Ae", "\u3000" -> " ".
CHARSMAP = (
    "c-j@yWzd#I7zWU1USQw{9Yc4+(A_CWmvnbXNJ+y-NU3x;NGRQ*bazN2ozmTT-kmvf-Mjm9_X;8hK@crcuqRn47#1Z6Y$GBfhk}S0L3l+hFBl"
    "32JCAA(G2a}%icTzI5{KBtBQ6PuPeQi73I&N}B9fAX<Rl{{DM-z&NueOEOhbCok&z5!CKFl7LN=Zz3I#c2c5;!EJme-Hc_~1C3Q>?E6s8zOD"
    "M4{cQIay0<~zz#o^n*+dn!?pDpaN#RjEOBYEhHg{6JmmP@j4<qydd-"
    "L{pm3oMyD71+8gCTiVc`cKk>OI?<6Xbfzmm(VcGeqzAqDnLhNUAAK1>e+Ds-!QqEyC`0&#VT@onqZrArjOKTKV=QAB&p0MBfyqo_DpQ!wG-f"
    "h`+00@tbC}OO{$K%%SjZ9<^A~@zjHRq#IjdO78dkH8wQOKLo7l(}HuDdEvn~8D*}-"
    ";pv6DUQW*>Vwz<v&KkRu%C7)Lq5aZYiP)BMX>&TyV{T;u}(afvHj<{DSI!S!$lxXB%EbC0{+=YJmZfX6%vcYr56=NT_~!E0XemN&fT9Uu9?X"
    "Fl<jFQn3dQmunF?SpTX-;0s"
)


def _train(tokenizer: Tokenizer, trainer: Any) -> Tokenizer:
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    return tokenizer


def _template(tokenizer: Tokenizer, first: str, last: str, between: str | None = None) -> None:
    ids = [(token, tokenizer.token_to_id(token)) for token in dict.fromkeys([first, last])]
    between = last if between is None else f"{last} {between}"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", pair=f"{first} $A {between} $B:1 {last}:1", special_tokens=ids
    )


def _bytes_gpt2() -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return _train(
        tokenizer, trainers.BpeTrainer(vocab_size=600, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    ).to_str()


def _bytes_roberta() -> str:
    tokenizer = Tokenizer.from_str(_bytes_gpt2())
    tokenizer.add_special_tokens(["<s>", "</s>"])
    ends = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ends, trim_offsets=True, add_prefix_space=False)
    return tokenizer.to_str()


def _bytes_llama3() -> str:
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    rest = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(f"{words}|{rest}"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|begin|>", "<|end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    _train(tokenizer, trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet))
    begin = ("<|begin|>", tokenizer.token_to_id("<|begin|>"))
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing("<|begin|> $A", "<|begin|> $A <|begin|>:1 $B:1", [begin]),
        ]
    )
    return tokenizer.to_str()


def _with_byte_pieces(text: str) -> str:
    """Add a piece for each byte, as SentencePiece does; no text matches them."""
    entries = json.loads(text)
    vocab = entries["model"]["vocab"]
    for byte in range(256):
        vocab.setdefault(f"<0x{byte:02X}>", len(vocab))
    entries["model"] |= {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}
    return json.dumps(entries)


def _pieces_llama2() -> str:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    _train(tokenizer, trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>", "<s>", "</s>"]))
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(parts)
    begin = ("<s>", tokenizer.token_to_id("<s>"))
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [begin])
    return _with_byte_pieces(tokenizer.to_str())


def _pieces_metaspace() -> str:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    _train(tokenizer, trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>", "<s>", "</s>"]))
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(parts)
    _template(tokenizer, "<s>", "</s>")
    return _with_byte_pieces(tokenizer.to_str())


def _words(*, lowercase: bool) -> str:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    _train(tokenizer, trainers.WordPieceTrainer(vocab_size=600, special_tokens=special))
    _template(tokenizer, "[CLS]", "[SEP]")
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])  # as in BERT
    return tokenizer.to_str()


def _unigram() -> str:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    _train(tokenizer, trainers.UnigramTrainer(vocab_size=500, special_tokens=special, unk_token="<unk>"))
    _template(tokenizer, "<s>", "</s>", "</s>")
    entries = json.loads(tokenizer.to_str())
    # Sums of these scores are exact, so that rounding does not decide between "II", "I" and "I", "II", which are
    # equally likely.
    entries["model"]["vocab"] = [[piece, round(64 * score) / 64] for piece, score in entries["model"]["vocab"]]
    return json.dumps(entries)


KINDS: dict[str, Callable[[], str]] = {
    "bytes-gpt2": _bytes_gpt2,
    "bytes-roberta": _bytes_roberta,
    "bytes-llama3": _bytes_llama3,
    "pieces-llama2": _pieces_llama2,
    "pieces-metaspace": _pieces_metaspace,
    "words-uncased": lambda: _words(lowercase=True),
    "words-cased": lambda: _words(lowercase=False),
    "unigram": _unigram,
}


def _uncased_with(**parts: Any) -> str:
    """Return a WordPiece tokenizer with other components."""
    tokenizer = Tokenizer.from_str(_words(lowercase=True))
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return tokenizer.to_str()


def _single_word() -> str:
    entries = json.loads(_words(lowercase=True))
    for token in entries["added_tokens"]:
        token["single_word"] = True
    return json.dumps(entries)


# The smallest text for each case where the JavaScript library gives other ids.
DIFFERENCES: dict[str, tuple[Callable[[], str], str]] = {
    "final sigma": (KINDS["words-uncased"], "ΑΣ"),
    "rare ideographs": (KINDS["words-uncased"], "\U00020000\U00020001"),
    "next line": (lambda: _uncased_with(normalizer=normalizers.NFC()), "a\x85b"),
    "byte order mark": (lambda: _uncased_with(normalizer=normalizers.NFC()), "a\ufeffb"),
    "new character": (KINDS["words-uncased"], "a\u089c"),  # a mark added in Unicode 14
    "letters beyond ASCII": (lambda: _uncased_with(pre_tokenizer=pre_tokenizers.Whitespace()), "aж"),
    "punctuation": (lambda: _uncased_with(pre_tokenizer=pre_tokenizers.Punctuation()), "!!"),
    "digits": (lambda: _uncased_with(pre_tokenizer=pre_tokenizers.Digits(individual_digits=True)), "٣٤"),
    "removed": (lambda: _uncased_with(pre_tokenizer=pre_tokenizers.Split("-", "removed")), "a-b"),
    "merged": (lambda: _uncased_with(pre_tokenizer=pre_tokenizers.Split("-", "merged_with_next")), "a-b"),
    "single word": (_single_word, "a[MASK]"),
}
# Components that the JavaScript library does not have.
ABSENT: dict[str, Callable[[], str]] = {
    "Nmt": lambda: _uncased_with(normalizer=normalizers.Nmt()),
    "ByteLevel": lambda: _uncased_with(normalizer=normalizers.ByteLevel()),
    "UnicodeScripts": lambda: _uncased_with(pre_tokenizer=pre_tokenizers.UnicodeScripts()),
    "CharDelimiterSplit": lambda: _uncased_with(pre_tokenizer=pre_tokenizers.CharDelimiterSplit("-")),
}

SPECIAL = ["<|endoftext|>", "<s>", "</s>", "<unk>", "[MASK]", "[SEP]", "<|begin|>", "<0x0A>"]
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\N{NO-BREAK SPACE}", "\N{IDEOGRAPHIC SPACE}", "\N{EM SPACE}"]
PLANES = [
    *((0x20, 0x7F), (0xA0, 0x250), (0x250, 0x2000), (0x2000, 0x3100), (0x3100, 0xD800), (0xE000, 0xFEFF)),
    *((0xFF00, 0x20000), (0x1F300, 0x1F600)),
]


def texts(count: int, seed: int) -> Iterator[str]:
    """Yield random texts: corpus words, spaces, special tokens, characters of all planes; none of `DIFFERENCES`."""
    rng = random.Random(seed)
    words = " ".join(CORPUS).split(" ")

    def part() -> str:
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(words)
        if kind < 0.65:
            return rng.choice(SPACES)
        if kind < 0.7:
            return rng.choice(SPECIAL)
        if kind < 0.75:
            return str(rng.randrange(10 ** rng.randrange(1, 8)))
        first, last = rng.choice(PLANES)
        return "".join(filter(_is_old, map(chr, (rng.randrange(first, last) for _ in range(rng.randrange(1, 9))))))

    yield ""
    for _ in range(count - 1):
        yield "".join(part() for _ in range(rng.randrange(1, 14))).replace("Σ", "")


def _is_old(character: str) -> bool:
    """Return whether the Unicode versions of both libraries have the character: Unicode 3.2, or emoji of 6."""
    return unicodedata.ucd_3_2_0.category(character) != "Cn" or "\U0001f300" <= character < "\U0001f600"


def write_cases(folder: Path, count: int = 300) -> None:
    """Write each tokenizer as a folder with `tokenizer.json` and `expected.json`, the package's results for texts."""
    several = list(texts(count, seed=0))
    pairs = [[text, pair] for text, pair in zip(several, [several[-1], *several], strict=False) if pair]
    for kind, make in KINDS.items():
        tokenizer = _write(folder / "kinds" / kind, make())
        rows = []
        for text in several:
            ids = tokenizer.encode(text).ids
            plain_ids = tokenizer.encode(text, add_special_tokens=False).ids
            decoded = [tokenizer.decode(ids), tokenizer.decode(ids, skip_special_tokens=False)]
            rows.append({"text": text, "ids": ids, "plain": plain_ids, "decoded": decoded})
        encodings = [tokenizer.encode(*pair) for pair in pairs]
        pair_rows = [
            {"pair": pair, "ids": e.ids, "segments": e.type_ids} for pair, e in zip(pairs, encodings, strict=True)
        ]
        (folder / "kinds" / kind / "expected.json").write_text(json.dumps({"texts": rows, "pairs": pair_rows}))
    for kind in ("bytes-llama3", "pieces-llama2"):
        _write_gguf(folder / "kinds" / kind, folder / "gguf" / kind)
    for name, (make, text) in DIFFERENCES.items():
        ids = _write(folder / "differences" / name, make()).encode(text).ids
        (folder / "differences" / name / "expected.json").write_text(json.dumps({"text": text, "ids": ids}))
    for name, make in ABSENT.items():
        _write(folder / "absent" / name, make())


def _write_gguf(source: Path, folder: Path) -> None:
    """Write a tokenizer as a GGUF file, which must give the same results."""
    folder.mkdir(parents=True)
    writer = GGUFWriter(folder / "model.gguf", "llama")
    text = (source / "tokenizer.json").read_text(encoding="utf-8")
    if source.name.startswith("bytes"):
        gguf_files.add_bytes(writer, text, "llama-bpe")
        writer.add_bos_token_id(0)
    else:
        gguf_files.add_pieces(writer, text)
        writer.add_bos_token_id(1)
    gguf_files.finish(writer)
    shutil.copyfile(source / "expected.json", folder / "expected.json")


def _write(folder: Path, text: str) -> Tokenizer:
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    return Tokenizer.from_str(text)
