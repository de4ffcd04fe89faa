"""Names of `torch.cuda` that tallow itself does not have."""

from collections.abc import Sequence
from typing import Any

from tallow.compat.absent import absent, refusal

StreamContext = absent("torch.cuda.StreamContext", "use torch.cuda.stream")


def set_rng_state_all(new_states: Sequence[Any]) -> None:
    """Set the state of no GPU. Raises: UnsupportedError for a state"""
    if new_states:
        raise refusal("torch.cuda.set_rng_state_all", hint="torch.set_rng_state sets the state of all devices")
