"""Arguments of `generate` in pipelines: the caller's, the model's, and the pipeline's where neither says anything."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

# They have no effect without sampling, and `generate` says so.
FOR_SAMPLING = frozenset(
    {"temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff"}
)


def set_arguments(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the model's generation config sets, and the caller's config and arguments, which replace it."""
    chosen = given.get("generation_config")
    return {**model.generation_config.to_diff_dict(), **({} if chosen is None else chosen.to_diff_dict()), **given}


def generation_arguments(
    model: Any, tokenizer: Any, given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of `generate`: those of the caller, and defaults for what nothing else sets.

    Args:
        tokenizer: its padding token is a default, too.
        defaults: of the pipeline.
    """
    own = dict(defaults)
    if tokenizer is not None and tokenizer.pad_token_id is not None:
        own["pad_token_id"] = tokenizer.pad_token_id
    known = set_arguments(model, given)
    own = {name: value for name, value in own.items() if name not in known}
    if "max_length" in known:  # a limit of new tokens would replace it
        own.pop("max_new_tokens", None)
    if not known.get("do_sample", own.get("do_sample")):
        own = {name: value for name, value in own.items() if name not in FOR_SAMPLING}
    chosen = given.get("generation_config")
    if chosen is None:
        return {**given, **own}
    chosen = deepcopy(chosen)
    chosen.update(**own)
    return {**given, "generation_config": chosen}
