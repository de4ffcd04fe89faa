"""The tokenizer of llama2.c: SentencePiece's byte-pair encoding, read from `tokenizer.bin`.

    int32       length of the longest token, which this reader ignores
    per token   float32 score, int32 length, that many bytes

Ids 0, 1, 2 are <unk>, <s>, </s>; ids 3 to 258 are the 256 bytes, written "<0x00>" to "<0xFF>".

Source:  https://github.com/karpathy/llama2.c, `tokenizer.py` (export) and `run.c` (build_tokenizer, encode, decode)
"""

from __future__ import annotations

import heapq
import re
import struct
from collections.abc import Sequence
from typing import Any

from tallow.errors import TokenizerError
from tallow.io.source import Source, open_source
from tallow.text import gguf_tokenizer, sentencepiece
from tallow.text.stream_decoder import ByteDecoder, TextDecoder
from tallow.text.text_tokenizer import TextTokenizer

BOS, EOS = 1, 2
FIRST_BYTE = 3
MARKS = ["<unk>", "<s>", "</s>"]  # ids 0 to 2, as Hugging Face writes them
LOWEST_SCORE = -1e10  # run.c ignores merges with lower scores
MERGED = -1  # replaces an id that was merged into its left neighbour
_BYTE_PIECE = re.compile(rb"<0x([0-9A-Fa-f]{2})>")


class Llama2cTokenizer(TextTokenizer):
    """Tokenizer that encodes and decodes exactly like `run.c`.

    Args:
        pieces: the bytes of each id.
        scores: the merge priority of each id; higher scores merge first.
    """

    bos_token_id = BOS
    eos_token_id = EOS
    stop_ids = frozenset([BOS, EOS])  # run.c ends a story at BOS, an answer at EOS

    def __init__(self, pieces: list[bytes], scores: list[float]) -> None:
        self._pieces = pieces
        self._scores = scores
        self._ids = {piece: i for i, piece in reversed(list(enumerate(pieces)))}  # the first of equal pieces
        self._raw = [bytes.fromhex(m[1].decode()) if (m := _BYTE_PIECE.fullmatch(p)) else p for p in pieces]

    @classmethod
    def load(cls, source: Source, vocab_size: int | None = None, *, name: str | None = None) -> Llama2cTokenizer:
        """Read `tokenizer.bin` from a path or a buffer.

        Args:
            vocab_size: the model's vocabulary size; without it, a wrong file is not detected.
            name: name of the source in errors, instead of its path.

        Raises:  TokenizerError if the file is truncated or malformed, or has another number of tokens
        """
        data, path = open_source(source)
        name = name or path
        pieces, scores = _read_pieces(data.tobytes(), name)
        if vocab_size is not None and len(pieces) != vocab_size:
            raise TokenizerError(
                f"{name} has {len(pieces)} tokens, but the model has vocab_size={vocab_size}",
                hint="load the tokenizer that the model was trained with",
            )
        return cls(pieces, scores)

    def __repr__(self) -> str:
        return f"Llama2cTokenizer({self.vocab_size} tokens)"

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return len(self._pieces)

    def encode(self, text: str, bos: bool = True, eos: bool = False) -> list[int]:
        """Return the ids of `text`: a space and its characters, unknown ones as bytes, merged by score.

        Empty text gets no space, so it encodes to BOS and EOS only.

        Raises:  TokenizerError if the text has a lone surrogate, or a character that the vocabulary cannot encode
        """
        ids = [BOS] if bos else []
        if text:
            for character in " " + text:
                ids += self._character(character)
        return self._merge(ids) + ([EOS] if eos else [])

    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return self.encode(text, bos=add_special_tokens or not text)

    def decode(self, previous: int | None, token: int) -> bytes:
        """Return the bytes that `token` adds after the token `previous`, or at the start if that is None.

        A token after BOS loses its leading space, which encoding added. The result is bytes because a character may
        span several tokens; see `decode_stream`.
        """
        if not 0 <= token < len(self._raw):
            raise TokenizerError(f"token {token} is not in the vocabulary of {len(self._raw)} tokens")
        piece = self._raw[token]
        return piece[1:] if previous == BOS and piece[:1] == b" " else piece

    def stream_decoder(self, *, previous: Sequence[int] = (), skip_special_tokens: bool = True) -> TextDecoder:
        hidden = range(FIRST_BYTE) if skip_special_tokens else ()
        return ByteDecoder(self.decode, previous[-1] if previous else None, hidden)

    def token_bytes(self) -> list[bytes | None]:
        return [*[None] * FIRST_BYTE, *self._raw[FIRST_BYTE:]]

    def hugging_face_form(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the entries of a `tokenizer.json` and a `tokenizer_config.json` that give the same ids.

        Raises:  TokenizerError for tokens that `tokenizer.json` cannot store: those that are not UTF-8, and duplicates
        """
        metadata = self.gguf_form()
        tokens = metadata["tokenizer.ggml.tokens"]
        if len(set(tokens)) < len(tokens):
            duplicate = next(token for token in tokens if tokens.count(token) > 1)
            raise TokenizerError(
                f"the tokenizer has the token {duplicate!r:.80} twice, which tokenizer.json does not allow"
            )
        return gguf_tokenizer.tokenizer_entries(metadata, "the tokenizer")

    def gguf_form(self) -> dict[str, Any]:
        """Return the tokenizer as the metadata of a GGUF file.

        Raises:  TokenizerError for tokens that are not UTF-8
        """
        first_text = min(FIRST_BYTE + 256, self.vocab_size)
        types = [sentencepiece.UNKNOWN, sentencepiece.CONTROL, sentencepiece.CONTROL]
        types += [sentencepiece.BYTE] * (first_text - len(types))
        try:
            tokens = MARKS + [piece.decode().replace(" ", sentencepiece.SPACE) for piece in self._pieces[len(MARKS) :]]
        except UnicodeDecodeError as error:
            raise TokenizerError(f"the tokenizer has the token {error.object!r:.80}, which is not UTF-8") from error
        metadata = {
            "model": "llama",
            "pre": "default",
            "tokens": tokens,
            "scores": self._scores,
            "token_type": types + [sentencepiece.NORMAL] * (len(tokens) - len(types)),
            "unknown_token_id": 0,
            "bos_token_id": BOS,
            "eos_token_id": EOS,
        }
        return {f"tokenizer.ggml.{key}": value for key, value in metadata.items()}

    def _character(self, character: str) -> list[int]:
        try:
            encoded = character.encode("utf-8")
        except UnicodeEncodeError as error:
            raise TokenizerError(
                f"the text contains {character!r}, which is not a character", hint="pass valid Unicode"
            ) from error
        if encoded in self._ids:
            return [self._ids[encoded]]
        ids = [byte + FIRST_BYTE for byte in encoded]
        if max(ids) >= len(self._pieces):
            raise TokenizerError(
                f"the vocabulary of {len(self._pieces)} tokens has neither {character!r} nor its bytes"
            )
        return ids

    def _merge(self, ids: list[int]) -> list[int]:
        """Repeatedly merge the neighbours whose union has the highest score, leftmost first, while one exists.

        run.c scans all pairs again after each merge; a heap of candidates over a linked list takes O(n log n) and makes
        the same choices, because merging keeps the order of positions.
        """
        following = [*range(1, len(ids)), -1]
        preceding = list(range(-1, len(ids) - 1))
        candidates: list[tuple[float, int, int, int, int]] = []

        def consider(left: int, right: int) -> None:
            merged = self._ids.get(self._pieces[ids[left]] + self._pieces[ids[right]])
            if merged is not None and self._scores[merged] > LOWEST_SCORE:
                heapq.heappush(candidates, (-self._scores[merged], left, ids[left], ids[right], merged))

        for left in range(len(ids) - 1):
            consider(left, left + 1)
        while candidates:
            _, left, left_id, right_id, merged = heapq.heappop(candidates)
            right = following[left]
            if ids[left] != left_id or right < 0 or ids[right] != right_id:
                continue  # one of the two has been merged since
            ids[left], ids[right] = merged, MERGED
            following[left] = following[right]
            if following[left] >= 0:
                preceding[following[left]] = left
                consider(left, following[left])
            if preceding[left] >= 0:
                consider(preceding[left], left)
        return [i for i in ids if i != MERGED]


def _read_pieces(data: bytes, name: str) -> tuple[list[bytes], list[float]]:
    if len(data) < 4:
        raise TokenizerError(f"{name}: {len(data)} bytes are too few for a tokenizer", hint="download it again")
    pieces: list[bytes] = []
    scores: list[float] = []
    position = 4
    while position < len(data):
        if position + 8 > len(data):
            raise TokenizerError(f"{name}: truncated in the header of token {len(pieces)}", hint="download it again")
        score, length = struct.unpack_from("<fi", data, position)
        position += 8
        if not 0 <= length <= len(data) - position:
            raise TokenizerError(
                f"{name}: token {len(pieces)} claims {length} bytes, but {len(data) - position} are left",
                hint="the file is truncated, or it is not a llama2.c tokenizer",
            )
        pieces.append(data[position : position + length])
        scores.append(score)
        position += length
    return pieces, scores
