"""The training loop: losses of presence, kinds, boxes and masks.

Letters: B scenes, C cells of a batch, M cells that answer for a thing, N things whose masks are compared, P prototypes.

Source:  Li et al. 2020, arXiv:2006.04388 (focal loss of quality);
         Rezatofighi et al. 2019, arXiv:1902.09630 (loss of boxes)
"""

from __future__ import annotations

import json
import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from batch_norms import folded_state, with_norms
from muon_adamw import muon_adamw

import tallow as tl
from tallow import training
from tallow.io import safetensors
from tallow.io.whole_folder import atomic_folder
from tallow.models.vision.scenes import Block, Heads, SceneDetector, as_input, cell_centres, narrowed
from tallow.nn import functional as F

from . import evaluation
from .batches import TRAIN, VALIDATION, Batch, batch_of, scene
from .composing import Glyphs, mirrored
from .settings import Settings

PRIOR = 0.03  # presence in a cell before training
AGAIN = 50  # steps after which scenes come back mirrored


class Training(training.Training):
    """A training run. A row of `curve` holds the step, the losses since the last row, and mAP50."""

    settings: Settings
    model: SceneDetector

    def __init__(self, settings: Settings, glyphs: Glyphs, checkpoint: Path, device: str = "cpu") -> None:
        self.device = device
        tl.manual_seed(settings.seed)
        self.model = with_norms(_initialised(settings)).to(device)
        self._centres = tl.from_numpy(cell_centres(settings.side, settings.side)).to(device)
        self._scenes = [scene(glyphs, settings, VALIDATION, i) for i in range(settings.validation_scenes)]
        # A scene costs about as much to draw as to learn from: each is learned from twice, the second time mirrored.
        self._scene = lru_cache((AGAIN + 2) * settings.batch_size)(partial(scene, glyphs, settings, TRAIN))
        self._ahead = ThreadPoolExecutor(1)
        self._next: Future[Batch] | None = None
        last = [head.weight for head in _heads(self.model)]
        super().__init__(settings, self.model, muon_adamw(self.model, last, settings), checkpoint)

    def learn(self) -> tuple[float, float, float]:
        batch = self._next.result() if self._next else self._batch(self.step)
        # Pillow and the kernels release the GIL while they compute.
        self._next = self._ahead.submit(self._batch, self.step + 1) if self.step + 1 < self.settings.steps else None
        self.model.train()
        kinds, boxes, masks = self.losses(batch)
        (kinds + self.settings.box_weight * boxes + self.settings.mask_weight * masks).backward()
        return kinds.item(), boxes.item(), masks.item()

    def losses(self, batch: Batch) -> tuple[tl.Tensor, tl.Tensor, tl.Tensor]:
        """Return the losses of presence and kinds, of boxes and of masks."""
        heads = self.model(as_input(batch.pixels).to(self.device))
        cells_M = self._tensor(batch.cells)
        overlap_M, boxes = self._boxes(heads, cells_M, self._tensor(batch.boxes))
        presence_C = heads.presence.flatten()
        targets_C = tl.zeros_like(presence_C)
        targets_C[cells_M] = overlap_M.clamp(0.1, 1.0)
        distance_C = (targets_C - presence_C.detach().sigmoid()).abs()
        losses_C = F.binary_cross_entropy_with_logits(presence_C, targets_C, reduction="none") * distance_C**2
        presence = losses_C.sum() / max(1, len(batch.cells))
        kinds = F.cross_entropy(heads.kinds.flatten(0, 1)[cells_M], self._tensor(batch.kinds))
        return presence + kinds, boxes, self._masks(heads, batch)

    def _boxes(self, heads: Heads, cells_M: tl.Tensor, boxes_M4: tl.Tensor) -> tuple[tl.Tensor, tl.Tensor]:
        """Return the overlaps (M,) of boxes with those of the things, without gradients, and 1 - GIoU."""
        count = self._centres.shape[0]
        centres_M2 = self._centres[cells_M % count]
        found_M4 = heads.distances.flatten(0, 1)[cells_M]
        true_M4 = tl.cat([centres_M2 - boxes_M4[:, :2], boxes_M4[:, 2:] - centres_M2], 1)
        inner_M4, outer_M4 = tl.minimum(found_M4, true_M4), tl.maximum(found_M4, true_M4)
        both_M, hull_M, found_M, true_M = (_area(it) for it in (inner_M4, outer_M4, found_M4, true_M4))
        union_M = found_M + true_M - both_M
        overlap_M = both_M / union_M
        return overlap_M.detach(), (2 - overlap_M - union_M / hull_M).mean()

    def _masks(self, heads: Heads, batch: Batch) -> tl.Tensor:
        coefficients_NP = heads.coefficients.flatten(0, 1)[self._tensor(batch.mask_cells)]
        prototypes_NPC = heads.prototypes.flatten(2)[self._tensor(batch.mask_scenes)]
        logits_NC = (coefficients_NP.unsqueeze(1) @ prototypes_NPC).squeeze(1)
        losses_NC = F.binary_cross_entropy_with_logits(logits_NC, self._tensor(batch.masks), reduction="none")
        return (losses_NC * self._tensor(batch.windows)).sum() / max(1, len(batch.mask_cells))

    def validate(self) -> float:
        """Return mAP50 of the validation scenes."""
        return evaluation.evaluate(without_norms(self.model, self.settings), self._scenes).boxes

    def _batch(self, step: int) -> Batch:
        settings = self.settings
        fresh = settings.batch_size // 2
        scenes = [self._scene(step * fresh + i) for i in range(fresh)]
        again = [(step - AGAIN) * fresh + i for i in range(settings.batch_size - fresh)]
        scenes += [mirrored(self._scene(number % (settings.steps * fresh))) for number in again]
        return batch_of(scenes, settings, np.random.default_rng((settings.seed, step)))

    def _tensor(self, array: Any) -> tl.Tensor:
        return tl.from_numpy(array).to(self.device)


def _area(distances_M4: tl.Tensor) -> tl.Tensor:
    """Return the areas of boxes by distances from a point to their edges."""
    return (distances_M4[:, 0] + distances_M4[:, 2]) * (distances_M4[:, 1] + distances_M4[:, 3])


def _initialised(settings: Settings) -> SceneDetector:
    model = SceneDetector(settings.config())
    for module in model.modules():
        if isinstance(module, tl.nn.Conv2d):
            tl.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                tl.nn.init.zeros_(module.bias)
    with tl.no_grad():
        for module in model.modules():
            if isinstance(module, Block):
                module.narrow.weight.mul_(0.3)  # blocks begin close to the identity
        for head in _heads(model):
            head.weight.mul_(0.1)
        for head, start in ((model.presence, math.log(PRIOR / (1 - PRIOR))), (model.distances, 1.0)):
            tl.nn.init.constant_(head.get_parameter("bias"), start)
    return model


def _heads(model: SceneDetector) -> tuple[tl.nn.Conv2d, ...]:
    """Return the last layers."""
    return model.kinds, model.presence, model.distances, model.coefficients, model.prototypes


def without_norms(model: SceneDetector, settings: Settings) -> SceneDetector:
    """Return a detector with the batch norms folded into the convolutions before them."""
    folded = SceneDetector(settings.config()).to(next(model.parameters()).device)
    folded.load_state_dict(folded_state(model))
    return folded.eval()


def export(training: Training, folder: Path) -> None:
    """Write config.json and model.safetensors, in int8 and without batch norms."""
    model = without_norms(training.model, training.settings)
    with atomic_folder(folder) as stage:
        safetensors.save(narrowed(model.state_dict()), stage / "model.safetensors", {"format": "pt"})
        text = json.dumps(asdict(model.config), ensure_ascii=False)
        (stage / "config.json").write_text(text + "\n", encoding="utf-8")
