"""The tokenizer of llama2.c: SentencePiece's byte-pair encoding, read from `tokenizer.bin`.

    int32       the length of the longest piece, which this reader does not need
    per piece   float32 score, int32 length, that many bytes

Ids 0, 1, 2 are <unk>, <s>, </s>; ids 3 to 258 are the 256 bytes, spelled "<0x00>" to "<0xFF>".

Source:  https://github.com/karpathy/llama2.c, `tokenizer.py` (export) and `run.c` (build_tokenizer, encode, decode)
"""

from __future__ import annotations

import heapq
import re
import struct
from typing import Any

from tallow.errors import TokenizerError
from tallow.io.source import Source, open_source
from tallow.text import gguf_tokenizer

BOS, EOS = 1, 2
FIRST_BYTE = 3
MARKS = ["<unk>", "<s>", "</s>"]  # ids 0 to 2, as Hugging Face spells them
LOWEST_SCORE = -1e10  # run.c merges nothing that scores less
GONE = -1  # in place of an id that was merged into its left neighbour
_BYTE_PIECE = re.compile(rb"<0x([0-9A-Fa-f]{2})>")


class Llama2cTokenizer:
    """Encodes and decodes exactly as `run.c` does.

    Args:
        pieces: the bytes of each id.
        scores: the merge priority of each id; a higher one merges first.
    """

    bos_token_id = BOS
    eos_token_id = EOS

    def __init__(self, pieces: list[bytes], scores: list[float]) -> None:
        self._pieces = pieces
        self._scores = scores
        self._ids = {piece: i for i, piece in reversed(list(enumerate(pieces)))}  # of equal pieces, the first
        self._raw = [bytes.fromhex(m[1].decode()) if (m := _BYTE_PIECE.fullmatch(p)) else p for p in pieces]

    @classmethod
    def load(cls, source: Source, vocab_size: int | None = None, *, name: str | None = None) -> Llama2cTokenizer:
        """Read `tokenizer.bin` from a path or a buffer.

        Args:
            vocab_size: the model's; the file does not state its own, so without this a wrong file goes unnoticed.
            name: what errors call the source, in place of its path.

        Raises:  TokenizerError when the file is truncated or malformed, or has another number of pieces
        """
        data, path = open_source(source)
        name = name or path
        pieces, scores = _read_pieces(data.tobytes(), name)
        if vocab_size is not None and len(pieces) != vocab_size:
            raise TokenizerError(
                f"{name} has {len(pieces)} pieces, but the model has vocab_size={vocab_size}",
                mend="load the tokenizer that the model was trained with",
            )
        return cls(pieces, scores)

    @property
    def vocab_size(self) -> int:
        return len(self._pieces)

    def encode(self, text: str, bos: bool = True, eos: bool = False) -> list[int]:
        """Ids of `text`: its characters after one added space, unknown ones as bytes, then the best merges first.

        Empty text gets no space, so that it encodes to nothing but the marks asked for.

        Raises:  TokenizerError when the text has a lone surrogate, or a character this vocabulary cannot spell
        """
        ids = [BOS] if bos else []
        if text:
            for character in " " + text:
                ids += self._character(character)
        return self._merge(ids) + ([EOS] if eos else [])

    def decode(self, previous: int | None, token: int) -> bytes:
        """The bytes that `token` adds after `previous`, or at the start of all where that is None.

        A piece that follows BOS loses its leading space, which encoding added. Bytes, because a character may be
        spread over several tokens: see `generation.decode_stream`.
        """
        if not 0 <= token < len(self._raw):
            raise TokenizerError(f"token {token} is not in the vocabulary of {len(self._raw)} pieces")
        piece = self._raw[token]
        return piece[1:] if previous == BOS and piece[:1] == b" " else piece

    def hugging_face_form(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The entries of a `tokenizer.json` and a `tokenizer_config.json` that give the same ids.

        Raises:  TokenizerError for pieces that `tokenizer.json` cannot hold: those that are no UTF-8, and two of one
            spelling
        """
        first_text = min(FIRST_BYTE + 256, self.vocab_size)
        types = [gguf_tokenizer.UNKNOWN, gguf_tokenizer.CONTROL, gguf_tokenizer.CONTROL]
        types += [gguf_tokenizer.BYTE] * (first_text - len(types))
        try:
            tokens = MARKS + [piece.decode().replace(" ", gguf_tokenizer.SPACE) for piece in self._pieces[len(MARKS) :]]
        except UnicodeDecodeError as error:
            raise TokenizerError(f"the tokenizer has the piece {error.object!r:.80}, which is not UTF-8") from error
        if len(set(tokens)) < len(tokens):
            twice = next(token for token in tokens if tokens.count(token) > 1)
            raise TokenizerError(f"the tokenizer has the piece {twice!r:.80} twice; tokenizer.json holds each once")
        metadata = {
            "model": "llama",
            "tokens": tokens,
            "scores": self._scores,
            "token_type": types + [gguf_tokenizer.NORMAL] * (len(tokens) - len(types)),
            "unknown_token_id": 0,
            "bos_token_id": BOS,
            "eos_token_id": EOS,
        }
        entries = {f"tokenizer.ggml.{key}": value for key, value in metadata.items()}
        return gguf_tokenizer.tokenizer_entries(entries, "the tokenizer")

    def _character(self, character: str) -> list[int]:
        try:
            spelled = character.encode("utf-8")
        except UnicodeEncodeError as error:
            raise TokenizerError(
                f"the text holds {character!r}, which is no character", mend="pass valid Unicode"
            ) from error
        if spelled in self._ids:
            return [self._ids[spelled]]
        ids = [byte + FIRST_BYTE for byte in spelled]
        if max(ids) >= len(self._pieces):
            raise TokenizerError(
                f"the vocabulary of {len(self._pieces)} pieces has neither {character!r} nor the bytes to spell it"
            )
        return ids

    def _merge(self, ids: list[int]) -> list[int]:
        """Merge the neighbours whose union scores highest, the leftmost of equals, until none is in the vocabulary.

        run.c looks through all pairs again after each merge; a heap of candidates over a linked list takes O(n log n)
        and makes the same choices, because merging keeps the order of the positions.
        """
        after = [*range(1, len(ids)), -1]
        before = list(range(-1, len(ids) - 1))
        candidates: list[tuple[float, int, int, int, int]] = []

        def consider(left: int, right: int) -> None:
            merged = self._ids.get(self._pieces[ids[left]] + self._pieces[ids[right]])
            if merged is not None and self._scores[merged] > LOWEST_SCORE:
                heapq.heappush(candidates, (-self._scores[merged], left, ids[left], ids[right], merged))

        for left in range(len(ids) - 1):
            consider(left, left + 1)
        while candidates:
            _, left, left_id, right_id, merged = heapq.heappop(candidates)
            right = after[left]
            if ids[left] != left_id or right < 0 or ids[right] != right_id:
                continue  # a neighbour has merged since
            ids[left], ids[right] = merged, GONE
            after[left] = after[right]
            if after[left] >= 0:
                before[after[left]] = left
                consider(left, after[left])
            if before[left] >= 0:
                consider(before[left], left)
        return [i for i in ids if i != GONE]


def _read_pieces(data: bytes, name: str) -> tuple[list[bytes], list[float]]:
    if len(data) < 4:
        raise TokenizerError(f"{name}: {len(data)} bytes are too few for a tokenizer", mend="fetch it again")
    pieces: list[bytes] = []
    scores: list[float] = []
    at = 4
    while at < len(data):
        if at + 8 > len(data):
            raise TokenizerError(f"{name}: truncated in the header of piece {len(pieces)}", mend="fetch it again")
        score, length = struct.unpack_from("<fi", data, at)
        at += 8
        if not 0 <= length <= len(data) - at:
            raise TokenizerError(
                f"{name}: piece {len(pieces)} claims {length} bytes where {len(data) - at} are left",
                mend="the file is truncated, or it is no llama2.c tokenizer",
            )
        pieces.append(data[at : at + length])
        scores.append(score)
        at += length
    return pieces, scores
