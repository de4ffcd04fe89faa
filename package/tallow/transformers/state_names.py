"""The names of weights in transformers' state dicts, where modules of `tallow.models` have others.

    tied weights       listed under each name
    no head            BartModel, MarianModel, WhisperModel: without the prefix "model."
    experts            one tensor for all: `experts.gate_up_proj` (E, 2F, D), `experts.down_proj` (E, D, F)
    ViT, DINOv2        `attention.q_proj` for `attention.attention.query`, and others
    DETR               `backbone.model` for `backbone.conv_encoder.model`, `self_attn.o_proj`, `mlp.fc1`
    SegFormer          `stages.0.blocks.1` for `encoder.block.0.1`, and others

Files have the names that transformers' files have: those of the modules, but for the models without a head.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from tallow.core.apply import apply
from tallow.ops.joining import cat
from tallow.transformers.model_names import WITHOUT_HEAD

INNER = "model."  # what holds the encoder and the decoder of a model with a head
_ATTENTION = {
    "attention.attention.query": "attention.q_proj",
    "attention.attention.key": "attention.k_proj",
    "attention.attention.value": "attention.v_proj",
    "attention.output.dense": "attention.o_proj",
}
# model_type -> patterns of parts of names here -> those of transformers
RENAMED = {
    "vit": {
        **_ATTENTION,
        r"encoder\.layer\.": "layers.",
        "intermediate.dense": "mlp.fc1",
        "output.dense": "mlp.fc2",
    },
    "jamba": {r"\.mlp\.": ".feed_forward."},
    "lfm2_moe": {r"\.mlp\.": ".feed_forward."},
    "whisper": {r"lm_head\.": "proj_out."},
    "detr": {
        r"backbone\.conv_encoder\.model\.": "backbone.model.",
        r"\.out_proj\.": ".o_proj.",
        r"\.fc1\.": ".mlp.fc1.",
        r"\.fc2\.": ".mlp.fc2.",
        r"bbox_attention\.([qk])_linear": r"bbox_attention.\1_proj",
        r"mask_head\.out_lay": "mask_head.output_conv",
        **{rf"mask_head\.adapter{n + 1}": f"mask_head.fpn_stages.{n}.fpn_adapter" for n in range(3)},
        **{
            rf"mask_head\.{part}{n}\.": f"mask_head.{f'conv{n}' if n < 3 else f'fpn_stages.{n - 3}.refine'}.{whole}."
            for part, whole in (("lay", "conv"), ("gn", "norm"))
            for n in range(1, 6)
        },
    },
    "dinov2": {**_ATTENTION, "mlp.weights_out": "mlp.down_proj"},
    "segformer": {
        r"encoder\.patch_embeddings\.(\d+)\.": r"stages.\1.patch_embeddings.",
        r"encoder\.block\.(\d+)\.": r"stages.\1.blocks.",
        r"encoder\.layer_norm\.(\d+)": r"stages.\1.layer_norm",
        r"attention\.self\.(sr|layer_norm)\b": r"attention.sequence_reduction.\1",
        r"sequence_reduction\.sr": "sequence_reduction.sequence_reduction",
        r"attention\.self\.query": "attention.q_proj",
        r"attention\.self\.key": "attention.k_proj",
        r"attention\.self\.value": "attention.v_proj",
        r"attention\.output\.dense": "attention.o_proj",
        r"mlp\.dense(\d)": r"mlp.fc\1",
        "layer_norm_1": "layernorm_before",
        "layer_norm_2": "layernorm_after",
        r"decode_head\.linear_c": "decode_head.linear_projections",
    },
}
RENAMED["depth_anything"] = RENAMED["dinov2"]
HALVES = ("mlp.weights_in.", ("mlp.gate_proj.", "mlp.up_proj."))  # of DINOv2: two tensors in transformers


def theirs(model: Any, name: str) -> str:
    """Return transformers' name of a weight."""
    for own, other in RENAMED.get(model.config.model_type, {}).items():
        name = re.sub(own, other, name)
    return name.removeprefix(INNER) if type(model).__name__ in WITHOUT_HEAD else name


def saved(model: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights for a file: without those of a head that the class does not have."""
    if type(model).__name__ == "WhisperForCausalLM":
        return {theirs(model, name): value for name, value in state.items()}
    if type(model).__name__ not in WITHOUT_HEAD:
        return dict(state)
    return {name.removeprefix(INNER): value for name, value in state.items() if not _is_of_head(model, name)}


def exported(model: Any, state: Mapping[str, Any]) -> OrderedDict[str, Any]:
    """Return a state dict of the modules of a model under transformers' names."""
    ties = {tied: state[name] for tied, name in model.tied_weights.items() if name in state and tied not in state}
    whole = vars(model.config)["_own"].joined({**state, **ties})
    found: OrderedDict[str, Any] = OrderedDict()
    for name, value in whole.items():
        if type(model).__name__ in WITHOUT_HEAD and _is_of_head(model, name):
            continue
        one, two = HALVES
        if one in name:
            found |= {name.replace(one, part): half for part, half in zip(two, value.chunk(2), strict=True)}
        else:
            found[theirs(model, name)] = value
    return found


def imported(model: Any, given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state dict under the names of the modules, from one with those or with transformers'.

    Args:    own: the state dict of the modules
    """
    config, ties = vars(model.config)["_own"], model.tied_weights
    given = _with_whole(dict(given), own)
    names = {theirs(model, name): name for name in (*own, *ties)}
    found: dict[str, Any] = {}
    for name, value in config.separated(given).items():
        name = name if name in own else names.get(name, name)
        tied = ties.get(name) if name not in own else None
        if tied in own:
            found.setdefault(str(tied), value)
        elif name in own or (not model.is_superfluous(name) and name in model.adapt({name: value})):
            found[name] = value
    if type(model).__name__ in WITHOUT_HEAD:
        found = {name: value for name, value in own.items() if _is_of_head(model, name)} | found
    return found


def _is_of_head(model: Any, name: str) -> bool:
    """Return whether a weight is of the head that a class leaves out."""
    return name == "final_logits_bias" or name.startswith(f"{model.head_name}.")


def _with_whole(state: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return weights with halves joined where a model has them as one, as DINOv2."""
    whole, (one, two) = HALVES
    for name in [name for name in state if one in name]:
        other = name.replace(one, two)
        if other in state and name.replace(one, whole) in own:
            state[name.replace(one, whole)] = apply(cat, [state.pop(name), state.pop(other)])
    return state
