"""A small encoder of pictures and words: a picture's vector is near those of the words that name it.

Words in any script are looked up by their characters, so that a word which training never saw is near those that it
resembles. `scripts/train_emoji.py` trains the weights that come with the package.

Letters: N pictures or texts, G groups of characters of all texts, C channels, Y and X pixels, E width of the vectors.

Source:  Bojanowski et al. 2017, arXiv:1607.04606 (words as sums of groups of characters); Radford et al. 2021,
         arXiv:2103.00020 (pictures and texts in one space)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self
from zlib import crc32

import numpy as np
import numpy.typing as npt

from tallow.core.creation import from_numpy
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, NumericError, ShapeError
from tallow.io.source import Source
from tallow.models.vision.scenes import Stage, as_input, from_files
from tallow.nn import functional as F
from tallow.nn.convolution import Conv2d
from tallow.nn.embedding import EmbeddingBag
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.tape.modes import no_grad

Vectors = npt.NDArray[np.float32]
Pixels = npt.NDArray[np.uint8]
LETTERS = (3, 4)  # lengths of the groups of letters
IDEOGRAPHS = (1, 2)  # lengths of the groups of characters that are words or syllables themselves
FIRST_IDEOGRAPH = "\u2e80"
LONGEST = 400  # characters of a text that count


@dataclass(frozen=True, kw_only=True)
class PictureWordsConfig:
    """The sizes of an encoder.

    Attributes:
        buckets: number of vectors that all groups of characters share.
        embedding: E.
        width: channels of the pictures at half of the resolution; they double with each halving.
        blocks: of the scales with strides 4, 8 and 16.
        side: of a picture, in pixels.
    """

    buckets: int = 16384
    embedding: int = 40
    width: int = 12
    blocks: tuple[int, int, int] = (1, 1, 2)
    side: int = 48


class Groups(NamedTuple):
    """The groups of characters of texts.

    Shapes:  buckets (G,), of all texts one after the other; starts (N,), of the texts
    """

    buckets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]


class PictureWords(Module):
    """The encoder."""

    def __init__(self, config: PictureWordsConfig) -> None:
        super().__init__()
        self.config = config
        width, (fine, middle, coarse) = config.width, config.blocks
        self.groups = EmbeddingBag(config.buckets, config.embedding, mode="sum")
        self.stem = Conv2d(3, width, 3, 2, padding=1)
        self.fine = Stage(width, 2 * width, fine)
        self.middle = Stage(2 * width, 4 * width, middle)
        self.coarse = Stage(4 * width, 8 * width, coarse)
        self.project = Linear(8 * width, config.embedding)

    @classmethod
    def from_files(cls, config: Source, weights: Source) -> Self:
        """Return the encoder of config.json and model.safetensors, in float32.

        Raises:  CheckpointError for other files; OSError
        """
        return from_files(lambda sizes: cls(PictureWordsConfig(**sizes)), config, weights)

    def texts(self, groups: Groups) -> Tensor:
        """Return the vectors of texts, of length 1; zeros for a text without groups.  Shapes: (N, E)"""
        device = self.groups.weight.device
        buckets, starts = (from_numpy(it).to(device) for it in groups)
        return F.normalize(self.groups(buckets, starts), dim=-1)

    def pictures(self, pixels_N3YX: Tensor) -> Tensor:
        """Return the vectors of pictures from -1 to 1, of length 1.  Shapes: (N, 3, Y, X) -> (N, E)"""
        x_NCYX = self.fine(F.relu(self.stem(pixels_N3YX)))
        x_NCYX = self.coarse(self.middle(x_NCYX))
        return F.normalize(self.project(x_NCYX.flatten(2).mean(-1)), dim=-1)

    def encode_texts(self, texts: str | Sequence[str]) -> Vectors:
        """Return the vectors of texts, of length 1; zeros for a text without letters.

        Shapes:  (N, E) for N texts, (E,) for a single string
        """
        with no_grad():
            vectors = self.texts(groups_of([texts] if isinstance(texts, str) else texts, self.config.buckets))
        return _finite(vectors)[0] if isinstance(texts, str) else _finite(vectors)

    def encode(self, pictures: Sequence[Pixels], *, batch_size: int = 64) -> Vectors:
        """Return the vectors of pictures, of length 1.

        Shapes:  pictures (Y, X, 3), uint8, each of `config.side` pixels -> (N, E)
        Raises:  ShapeError for pictures of other shapes; ArgumentError for a batch_size below 1
        """
        side = self.config.side
        if batch_size < 1:
            raise ArgumentError(f"batch_size={batch_size}", hint="pass 1 or more")
        for picture in pictures:
            if picture.shape != (side, side, 3) or picture.dtype != np.uint8:
                raise ShapeError(f"a picture of {picture.dtype} {picture.shape}; expected uint8 ({side}, {side}, 3)")
        device = self.groups.weight.device
        vectors = [np.zeros((0, self.config.embedding), np.float32)]
        for start in range(0, len(pictures), batch_size):
            with no_grad():
                pixels = as_input(np.stack(pictures[start : start + batch_size])).to(device)
                vectors.append(_finite(self.pictures(pixels)))
        return np.concatenate(vectors)


def groups_of(texts: Sequence[str], buckets: int) -> Groups:
    """Return the groups of characters of texts, each given by its bucket.  Raises: ArgumentError for no texts"""
    if not texts:
        raise ArgumentError("no texts", hint="pass one or more")
    found = [[crc32(group.encode()) % buckets for group in _groups(text)] for text in texts]
    lengths = np.array([len(each) for each in found])
    return Groups(
        np.array([bucket for each in found for bucket in each], np.int64),
        np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
    )


def _groups(text: str) -> Iterator[str]:
    for word in words_of(text):
        lengths = IDEOGRAPHS if word[0] >= FIRST_IDEOGRAPH else LETTERS
        framed = word if lengths is IDEOGRAPHS else f"<{word}>"
        if lengths is LETTERS:
            yield framed
        for length in lengths:
            for start in range(len(framed) - length + 1):
                yield framed[start : start + length]


def words_of(text: str) -> Iterator[str]:
    """Split a text between words, and where ideographs begin or end; in lower case, without accents."""
    # Accents are parts of letters to some writers and left out by others.
    plain = unicodedata.normalize("NFKD", text[:LONGEST].casefold())
    word = ""
    for character in (it for it in plain if not unicodedata.combining(it)):
        is_word = character.isalnum()
        if word and (not is_word or (character >= FIRST_IDEOGRAPH) != (word[-1] >= FIRST_IDEOGRAPH)):
            yield word
            word = ""
        if is_word:
            word += character
    if word:
        yield word


def _finite(vectors: Tensor) -> Vectors:
    values = vectors.detach().cpu().numpy()
    if not np.isfinite(values).all():
        raise NumericError("a vector holds NaN or infinities", hint="check the weights: tallow inspect --check")
    return values
