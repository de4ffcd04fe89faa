"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field

from tallow import training


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """Settings of a run; equal settings give equal weights on one kind of machine. Defaults: the built-in model's.

    Attributes:
        held_out: number of synsets in the test set.
        width: length of a vector.
        initial_deviation: standard deviation of the initial weights.
        longest: length to which texts are truncated in training, in tokens.
        temperature: divisor of the cosines in the loss.
        dropout: probability with which a token of a text is left out in training.
        shares: fractions of the kinds of pairs in a batch; see `pairs.pairs_of`.
    """

    held_out: int = 2_000

    vocab_size: int = 9_216
    width: int = 128
    initial_deviation: float = 0.1

    steps: int = 6000
    batch_size: int = 512
    longest: int = 24
    temperature: float = 0.05
    dropout: float = 0.1
    shares: dict[str, float] = field(
        default_factory=lambda: {"names": 0.35, "examples": 0.25, "broader": 0.2, "related": 0.1, "halves": 0.1}
    )
    learning_rate: float = 2e-2
    final_learning_rate: float = 2e-4
    weight_decay: float = 0.0
    validate_every: int = 100
    checkpoint_every: int = 100
