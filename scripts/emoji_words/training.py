"""The training loop: pictures and texts of an emoji both come near a vector of its own, which is learned too.

Letters: B pictures, T texts, K emoji, E width of the vectors, G groups of characters.

Source:  Movshovitz-Attias et al. 2017, arXiv:1703.07464 (proxies)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
from batch_norms import folded_state, with_norms
from muon_adamw import muon_adamw
from PIL import Image

import tallow as tl
from tallow import training
from tallow.io import safetensors
from tallow.io.whole_folder import atomic_folder
from tallow.models.vision.picture_words import Groups, PictureWords, PictureWordsConfig, groups_of
from tallow.models.vision.scenes import Block, as_input, narrowed
from tallow.nn import functional as F

from . import evaluation
from .names import Names
from .pictures import plain, varied
from .settings import Settings

INDEX = "index.safetensors"
Glyphs = Sequence[Sequence[Image.Image]]


class Learner(tl.nn.Module):
    """The encoder, with a vector for each emoji."""

    def __init__(self, config: PictureWordsConfig, emoji: int) -> None:
        super().__init__()
        self.encoder = PictureWords(config)
        self.proxies = tl.nn.Embedding(emoji, config.embedding)


class Training(training.Training):
    """A training run. A row of `curve` holds the step, the losses since the last row, and recall at 5."""

    settings: Settings

    def __init__(self, settings: Settings, names: Names, glyphs: Glyphs, checkpoint: Path, device: str = "cpu") -> None:
        self.device = device
        self._names, self._glyphs = names, glyphs
        config = PictureWordsConfig()
        groups = groups_of([text for texts in names.texts for text in texts], config.buckets)
        self._groups = np.split(groups.buckets, groups.starts[1:])
        self._first = np.cumsum([0, *map(len, names.texts)])
        tl.manual_seed(settings.seed)
        learner = Learner(config, len(names.emoji))
        _initialise(learner, settings)
        self.model = with_norms(learner).to(device)
        last = [learner.encoder.groups.weight, learner.proxies.weight, learner.encoder.project.weight]
        super().__init__(settings, self.model, muon_adamw(self.model, last, settings), checkpoint)

    def learn(self) -> tuple[float, float]:
        rng = np.random.default_rng((self.settings.seed, self.step))
        settings, encoder = self.settings, self.model.encoder
        self.model.train()
        proxies_EK = settings.sharpness * F.normalize(self.model.proxies.weight, dim=-1).mT
        groups, named_T = self._texts(rng)
        shown_B = rng.permutation(len(self._glyphs))[: settings.batch_size]
        pixels = as_input(np.stack([self._picture(each, rng) for each in shown_B])).to(self.device)
        texts = F.cross_entropy(encoder.texts(groups) @ proxies_EK, tl.from_numpy(named_T).to(self.device))
        shown = tl.from_numpy(shown_B).to(self.device)
        pictures_BE = encoder.pictures(pixels)
        pictures = F.cross_entropy(pictures_BE @ proxies_EK, shown)
        # The softmax is content with a picture that is nearer to its own emoji than to others; a search needs it near.
        near_BE = F.normalize(self.model.proxies.weight.detach()[shown], dim=-1)
        pull = settings.pull * (1 - (pictures_BE * near_BE).sum(-1)).mean()
        (texts + pictures + pull).backward()
        return texts.item(), pictures.item()

    def _texts(self, rng: np.random.Generator) -> tuple[Groups, npt.NDArray[np.int64]]:
        """Return texts of random emoji, without some of their groups, and the numbers (T,) of the emoji."""
        settings = self.settings
        emoji_T = rng.integers(len(self._glyphs), size=settings.texts)
        first, count = self._first[emoji_T], np.diff(self._first)[emoji_T]
        one, other = (first + (rng.random(settings.texts) * count).astype(np.int64) for _ in range(2))
        is_joined = rng.random(settings.texts) < settings.joined
        rows = [
            np.concatenate([self._groups[a], self._groups[b]]) if both else self._groups[a]
            for a, b, both in zip(one, other, is_joined, strict=True)
        ]
        kept = [row[rng.random(len(row)) >= settings.dropout] for row in rows]
        rows = [some if len(some) else row for some, row in zip(kept, rows, strict=True)]
        starts = np.cumsum([0, *map(len, rows[:-1])])
        return Groups(np.concatenate(rows), starts), emoji_T

    def _picture(self, emoji: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
        styles = self._glyphs[emoji]
        # The first style, of the font, is as frequent as the others together.
        style = 0 if len(styles) == 1 or rng.random() < 0.5 else int(rng.integers(1, len(styles)))
        return varied(styles[style], self.model.encoder.config.side, rng)

    def validate(self) -> float:
        """Return recall at 5 of the names that are held out."""
        encoder = without_norms(self.model)
        return evaluation.recall(encoder, self._names.held_out, index_of(encoder, self._glyphs), 5)


def _initialise(learner: Learner, settings: Settings) -> None:
    for module in learner.modules():
        if isinstance(module, tl.nn.Conv2d):
            tl.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            tl.nn.init.zeros_(module.get_parameter("bias"))
    with tl.no_grad():
        for module in learner.modules():
            if isinstance(module, Block):
                module.narrow.weight.mul_(0.3)  # blocks begin close to the identity
        for table in (learner.encoder.groups, learner.proxies):
            tl.nn.init.normal_(table.weight, std=settings.deviation)


def without_norms(learner: Learner) -> PictureWords:
    """Return the encoder with the batch norms folded into the convolutions before them."""
    folded = PictureWords(learner.encoder.config).to(learner.proxies.weight.device)
    folded.load_state_dict(folded_state(learner.encoder))
    return folded.eval()


def index_of(encoder: PictureWords, glyphs: Glyphs) -> npt.NDArray[np.float32]:
    """Return the vectors (K, E) of the emoji's first pictures."""
    return encoder.encode([plain(styles[0], encoder.config.side) for styles in glyphs])


def export(training: Training, emoji: Sequence[str], folder: Path) -> None:
    """Write config.json, model.safetensors in int8 and without batch norms, and the learned vectors of the emoji."""
    encoder = without_norms(training.model)
    with atomic_folder(folder) as stage:
        safetensors.save(narrowed(encoder.state_dict()), stage / "model.safetensors", {"format": "pt"})
        (stage / "config.json").write_text(json.dumps(asdict(encoder.config)) + "\n", encoding="utf-8")
        vectors = F.normalize(training.model.proxies.weight.detach(), dim=-1)
        safetensors.save(narrowed({"vectors": vectors}), stage / INDEX, {"emoji": "".join(emoji)})
