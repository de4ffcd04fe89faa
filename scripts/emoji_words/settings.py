"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass

from muon_adamw import MuonSettings


@dataclass(frozen=True, kw_only=True)
class Settings(MuonSettings):
    """Settings of a run; equal settings give equal weights on one kind of machine. Defaults: the built-in model's.

    Attributes:
        held_out: share of the names, each of an emoji in a language, that are kept for the test.
        texts: number of texts in a step; `batch_size` is that of pictures.
        joined: probability that a text is two of the emoji's, one after the other.
        dropout: probability with which a group of characters is left out in training.
        sharpness: factor of the cosines in the losses.
        pull: weight of one minus the cosine of a picture's vector and that of its emoji, in the loss.
        deviation: standard deviation of the initial vectors.
    """

    held_out: float = 0.1
    texts: int = 1024
    joined: float = 0.5
    dropout: float = 0.2
    sharpness: float = 20.0
    pull: float = 10.0
    deviation: float = 0.1

    steps: int = 900
    batch_size: int = 96
    learning_rate: float = 1e-2
    final_learning_rate: float = 1e-4
    warmup_steps: int = 50
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.99)
    clip_norm: float = 5.0
    validate_every: int = 300
    checkpoint_every: int = 200
