"""Derive the merges of a BPE vocabulary from the scores of its pieces, as SentencePiece models and GGUF files have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tallow.errors import TokenizerError

MAX_EXPANSION = 64  # maximum ratio of characters in merge pairs to characters in pieces
FREE_LETTERS = 1 << 16


def piece_merges(scores: Mapping[str, float], parts: Iterable[str], name: str) -> list[tuple[str, str]]:
    """Return the pairs of pieces whose concatenation is a piece, highest score first.

    Args:
        scores: scores of the pieces that merges may result in.
        parts: all pieces, of which pairs consist.
        name: name of the file, for error messages.

    Raises:  TokenizerError if the pairs take far more memory than the pieces, as in no real vocabulary
    """
    pieces = [piece for piece in parts if piece]
    # A pair is a prefix and a suffix that are pieces and together cover the piece.
    prefixes = _prefix_lengths(pieces)
    reversed_prefixes = _prefix_lengths([piece[::-1] for piece in pieces])
    budget = MAX_EXPANSION * (FREE_LETTERS + sum(map(len, pieces)))
    pairs = []
    for piece, score in scores.items():
        suffix_starts = {len(piece) - length for length in reversed_prefixes.get(piece[::-1], ())}
        splits = [length for length in prefixes.get(piece, ()) if length in suffix_starts]
        budget -= len(splits) * len(piece)
        if budget < 0:
            raise TokenizerError(
                f"{name}: its pieces can be merged in too many ways", hint="use the model's own tokenizer"
            )
        pairs += [(-score, -length, (piece[:length], piece[length:])) for length in splits]
    return [pair for _, _, pair in sorted(pairs)]


def _prefix_lengths(pieces: list[str]) -> dict[str, list[int]]:
    """Return for each piece the lengths of the shorter pieces that are prefixes of it.

    In sorted order, the prefixes of a piece come before it, and each is a prefix of the next. So one pass with a stack
    finds all of them; trying each length would take time quadratic in a piece's length.
    """
    lengths: dict[str, list[int]] = {}
    stack: list[str] = []
    for piece in sorted(pieces):
        while stack and not piece.startswith(stack[-1]):
            stack.pop()
        lengths[piece] = [len(prefix) for prefix in stack]
        stack.append(piece)
    return lengths
