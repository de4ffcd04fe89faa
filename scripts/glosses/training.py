"""The training loop: texts of a pair get near vectors, compared with the other pairs of the batch.

Letters: N texts, B pairs, T tokens, D width.

Source:  van den Oord et al. 2018, arXiv:1807.03748 (InfoNCE); in-batch negatives as in Henderson et al. 2017,
         arXiv:1705.00652
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import tallow as tl
from tallow import training
from tallow.io import safetensors
from tallow.io.whole_folder import atomic_folder
from tallow.models.encoders.static_embedding import WEIGHT, StaticEmbedding
from tallow.nn import functional as F
from tallow.text.tokenizer import FILE

from . import vocabulary
from .corpus import Corpus, Ids, Rows
from .settings import Settings

FORBIDDEN = -1e4  # a logit that no softmax sees
UNCLIPPED = 0.9999  # share of the weights within the range of int8
MODULES = (("StaticEmbedding", ""), ("Normalize", "1_Normalize"))


class Training(training.Training):
    """A training run. A row of `curve` holds the step, the training loss since the last row, the validation loss."""

    settings: Settings

    def __init__(self, settings: Settings, corpus: Corpus, checkpoint: Path, device: str = "cpu") -> None:
        self.device = device
        self._kinds = corpus.pairs.kinds
        self._rows = Rows(corpus.tokenizer, corpus.pairs.texts, settings.longest)
        tests = [corpus.synsets[key] for key in corpus.held_out[: settings.batch_size]]
        texts = [synset.examples[0] for synset in tests] + [synset.gloss for synset in tests]
        self._validation = Rows(corpus.tokenizer, texts, settings.longest)
        self._validation_pairs = np.arange(len(texts)).reshape(2, -1).T
        self._order = tl.Generator().manual_seed(settings.seed)
        tl.manual_seed(settings.seed)
        self.model = StaticEmbedding(corpus.tokenizer.get_vocab_size(), settings.width, device=device)
        with tl.no_grad():
            tl.nn.init.normal_(self.model.embedding.weight, std=settings.initial_deviation)
            self.model.embedding.weight[: len(vocabulary.SPECIAL)] = 0.0
        optimizer = tl.optim.AdamW(
            self.model.parameters(),
            lr=settings.learning_rate,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
        )
        super().__init__(settings, self.model, optimizer, checkpoint, self._order)

    def learn(self) -> tuple[float]:
        loss = self._loss(self._rows, self._draw(), self.settings.dropout)
        loss.backward()
        return (loss.item(),)

    def validate(self) -> float:
        """Return the loss of examples and glosses of the test set."""
        with tl.no_grad():
            return self._loss(self._validation, self._validation_pairs).item()

    def _draw(self) -> Ids:
        """Return the pairs (B, 2) of a batch, drawn with replacement."""
        counts = {kind: round(share * self.settings.batch_size) for kind, share in self.settings.shares.items()}
        drawn = []
        for kind, count in counts.items():
            pairs = self._kinds[kind]
            drawn.append(pairs[tl.randint(len(pairs), (count,), generator=self._order).numpy()])
        return np.concatenate(drawn)

    def _loss(self, rows: Rows, pairs_B2: Ids, dropout: float = 0.0) -> tl.Tensor:
        """Return the mean cross-entropy of finding one text of a pair by the other, both ways."""
        left_BD, right_BD = (self._vectors(rows, pairs_B2[:, side], dropout) for side in (0, 1))
        logits_BB = left_BD @ right_BD.mT / self.settings.temperature
        # Pairs that share a text with this one are no wrong answers.
        shared_BB = (pairs_B2[:, None, :] == pairs_B2[None, :, :]).any(-1)
        np.fill_diagonal(shared_BB, False)
        logits_BB = logits_BB.masked_fill(tl.from_numpy(shared_BB).to(self.device), FORBIDDEN)
        targets_B = tl.arange(len(pairs_B2), device=self.device)
        return (F.cross_entropy(logits_BB, targets_B) + F.cross_entropy(logits_BB.mT, targets_B)) / 2

    def _vectors(self, rows: Rows, texts_N: Ids, dropout: float) -> tl.Tensor:
        """Return the normalised sums (N, D) of the vectors of texts."""
        ids_NT, mask_NT = rows[texts_N]
        if dropout:
            kept_NT = tl.rand(*ids_NT.shape, generator=self._order).numpy() >= dropout
            kept_NT[:, 0] = True
            mask_NT *= kept_NT
        x_NTD = self.model(tl.from_numpy(ids_NT).to(self.device))
        weights_N1T = tl.from_numpy(mask_NT).to(self.device).unsqueeze(1)
        return F.normalize((weights_N1T @ x_NTD).squeeze(1), dim=-1)


def export(model: StaticEmbedding, corpus: Corpus, folder: Path) -> None:
    """Write the model as a sentence-transformers folder, with the table in int8. Its scale does not change cosines."""
    table = model.embedding.weight.detach().cpu().numpy()
    scale = 127 / np.quantile(np.abs(table), UNCLIPPED)
    rounded = np.clip(np.rint(table * scale), -127, 127).astype(np.int8)
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(MODULES)
    ]
    with atomic_folder(folder) as stage:
        safetensors.save({WEIGHT: tl.from_numpy(rounded)}, stage / "model.safetensors", {"format": "pt"})
        _write_json(stage / "modules.json", modules, indent=2)
        _write_json(stage / FILE, json.loads(corpus.tokenizer.to_str()), separators=(",", ":"))


def _write_json(path: Path, value: Any, **options: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, **options) + "\n", encoding="utf-8")
