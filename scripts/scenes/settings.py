"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass

from muon_adamw import MuonSettings

from tallow.models.vision.scenes import SceneConfig

from .kinds import KINDS


@dataclass(frozen=True, kw_only=True)
class Settings(MuonSettings):
    """Settings of a run; equal settings give equal weights on one kind of machine. Defaults: the built-in model's.

    Attributes:
        kinds: number of kinds of things, the first ones of `kinds.KINDS`.
        width: channels of the detector at half of the resolution.
        side: of a scene, in pixels.
        smallest, largest: longest side of a thing before it is turned, in pixels.
        things: fewest and most things that are drawn in a scene.
        things_to_learn: the same, in scenes of training: more things in a scene teach more for the same work.
        most_others: emoji of no kind in a scene.
        least_visible: share of a thing that must be seen for it to count.
        mask_samples: masks per batch that the loss compares.
        box_weight, mask_weight: of the losses of boxes and masks; that of kinds has weight 1.
        validation_scenes: number of scenes in a validation.
    """

    kinds: int = 40
    width: int = 16
    side: int = 128
    smallest: float = 18
    largest: float = 112
    things: tuple[int, int] = (1, 6)
    things_to_learn: tuple[int, int] = (3, 8)
    most_others: int = 2
    least_visible: float = 0.35
    mask_samples: int = 64

    steps: int = 2800
    batch_size: int = 16
    learning_rate: float = 4e-3
    final_learning_rate: float = 2e-5
    warmup_steps: int = 100
    weight_decay: float = 0.02
    betas: tuple[float, float] = (0.9, 0.99)
    clip_norm: float = 5.0
    box_weight: float = 2.0
    mask_weight: float = 1.0
    validate_every: int = 600
    validation_scenes: int = 64
    checkpoint_every: int = 100

    def config(self) -> SceneConfig:
        """Return the sizes and the labels of the detector."""
        kinds = list(KINDS.items())[: self.kinds]
        return SceneConfig(
            labels=tuple(kind for kind, _ in kinds),
            emoji=tuple(emoji for _, emoji in kinds),
            width=self.width,
            side=self.side,
        )
