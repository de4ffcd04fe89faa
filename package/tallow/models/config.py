"""The base of model configs: read a `config.json`, and refuse settings that the model does not compute."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

from tallow.errors import ArgumentError, CheckpointError
from tallow.io.atomic import atomic_write
from tallow.io.json_object import parse_object

CONFIG = "config.json"
DTYPE_NAMES = ("dtype", "torch_dtype")  # its entry for the dtype in newer and older versions of transformers
Count: TypeAlias = int  # a field that may be 0
MAX_DEPTH = 8
MAX_LABELS = 100_000  # more than any classifier
MAX_SIZE = 2**31 - 1  # more than any size of a model

# Entries of any config.json that do not affect what a model computes: its origin, how to serve it, the names of its
# outputs, lengths for some tokenizer, and generation settings that old versions of transformers kept here.
# fmt: off
NEUTRAL = frozenset({
    "_name_or_path", "name_or_path", "_commit_hash", "architectures", "model_type", "transformers_version",
    "torch_dtype", "dtype", "auto_map", "finetuning_task", "task_specific_params", "language", "license_name",
    "gradient_checkpointing", "_attn_implementation", "_attn_implementation_autoset", "attn_implementation",
    "_flash_attn_2_enabled", "cache_implementation", "use_cache", "output_past", "output_attentions",
    "output_hidden_states", "return_dict", "torchscript", "use_bfloat16", "tf_legacy_loss",
    "chunk_size_feed_forward", "pruned_heads", "tokenizer_class", "prefix", "problem_type", "id2label", "label2id",
    "num_labels", "_num_labels", "max_sequence_length", "model_max_length", "is_llama_config",
    "transformers.js_config", "sentence_transformers", "unsloth_version", "unsloth_fixed",
    "initializer_range", "initializer_factor", "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id",
    "cls_token_id", "mask_token_id", "unk_token_id", "decoder_start_token_id", "forced_bos_token_id",
    "forced_eos_token_id", "begin_suppress_tokens", "suppress_tokens", "max_length", "min_length", "do_sample",
    "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p",
    "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
    "bad_words_ids", "num_return_sequences", "output_scores", "return_dict_in_generate", "remove_invalid_values",
    "exponential_decay_length_penalty", "epsilon_cutoff", "eta_cutoff", "encoder_repetition_penalty",
    "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold", "assistant_lookbehind",
    "target_lookbehind",
})
# fmt: on

# Entries of any config.json that would affect the output, with the values that all models support unless they say
# otherwise.
COMPUTED: Mapping[str, tuple[Any, ...]] = {
    "is_encoder_decoder": (False,),
    "tie_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "is_decoder": (False,),
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """The base of model configs: frozen dataclasses with the names of Hugging Face's `config.json`.

    Every field is checked: integers are positive, except token ids and fields of type Count; floats are finite and not
    negative.

    Attributes:
        model_types: the values of `model_type` that the config accepts.
        layer_counts: the fields with numbers of layers; a config has some of them.
        computed: entries that would affect the output, with the values that the model supports. They override
            `COMPUTED`.
        neutral: entries, in addition to `NEUTRAL`, that do not affect the output.
        unread: fields that are not read from `config.json`, where they have no effect.
    """

    model_types: ClassVar[tuple[str, ...]]
    layer_counts: ClassVar[tuple[str, ...]] = ("num_hidden_layers", "n_layer", "n_layers")
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    neutral: ClassVar[frozenset[str]] = frozenset()
    unread: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        for field in fields(self):
            kind, _, optional = str(field.type).partition(" | ")
            value = getattr(self, field.name)
            if kind not in KINDS or (optional and value is None):
                continue
            expected, holds = KINDS["token id" if field.name.endswith("_token_id") and kind == "int" else kind]
            self.require(field.name, expected, holds)

    def require(self, name: str, expected: str, holds: Callable[[Any], bool]) -> None:
        """Raise ArgumentError unless the field `name` is valid.

        Args:
            expected: a description of valid values, for the message.
            holds: whether a value is valid.
        """
        value = getattr(self, name)
        if not holds(value):
            raise ArgumentError(f"{type(self).__name__}: {name}={value!r}", hint=f"pass {expected}")

    def check_layers(self, tensors: int, source: str) -> None:
        """Check before a model is built that a checkpoint has at least one tensor for each layer.

        Raises:  CheckpointError
        """
        for name in self.layer_counts:
            if getattr(self, name, 0) > tensors:
                raise CheckpointError(
                    f"{source} does not fit: the config says {name}={getattr(self, name)}, "
                    f"and there are {tensors} tensors",
                    hint="use the config and the weights of the same model",
                )

    def separated(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the tensors of a checkpoint, in parts as the model has them if the checkpoint has them together."""
        return state

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        """Rename entries of older and newer versions of transformers to the names of the fields, in place."""

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Read a `config.json`.

        Raises:  CheckpointError when it is not JSON, belongs to another model, or lacks a size; and for entries that
                 affect the output and that the model does not support, all in one message
        """
        entries = {name: value for name, value in read_entries(path).items() if name not in cls.unread}
        return cls.from_entries(entries, str(path))

    @classmethod
    def from_entries(cls, entries: Mapping[str, Any], source: str) -> Self:
        """Make a config from the entries of a `config.json`; as `from_json`.  Args: source: its name, for errors"""
        entries = dict(entries)
        if entries.get("model_type", cls.model_types[0]) not in cls.model_types:
            raise CheckpointError(
                f"{source}: model_type is {entries['model_type']!r}; {cls.__name__} reads {', '.join(cls.model_types)}",
                hint="use the class of that model; tallow.models.AutoModel detects it",
            )
        cls.prepare(entries)
        known = {field.name for field in fields(cls)}
        ignored, computed = NEUTRAL | cls.neutral, {**COMPUTED, **cls.computed}
        unsupported = []
        for name, value in entries.items():
            if value is None or name in known:
                continue
            if name in computed:
                if value not in computed[name]:
                    supported = " or ".join(repr(v) for v in computed[name])
                    unsupported.append(f"  {name} is {value!r}; the model supports {supported}")
            elif name not in ignored:
                unsupported.append(f"  {name} is {value!r}; unknown entry")
        if unsupported:
            hint = f"if an entry does not affect the output, delete it from {CONFIG}"
            raise CheckpointError("\n".join([f"{source}: {cls.__name__} does not support", *unsupported]), hint)
        values = {name: value for name, value in entries.items() if name in known and value is not None}
        missing = [field.name for field in fields(cls) if field.default is MISSING and field.name not in values]
        if missing:
            raise CheckpointError(f"{source}: missing {', '.join(missing)}", hint=f"use the model's own {CONFIG}")
        try:
            return cls(**values)
        except ArgumentError as error:
            raise CheckpointError(f"{source}: {error}") from error


def read_entries(path: str | Path) -> dict[str, Any]:
    """Return the entries of a `config.json`.  Raises: CheckpointError when it is missing or not JSON"""
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist", hint="pass a model folder, with its config.json") from error
    return parse_object(text, str(path), max_depth=MAX_DEPTH)


def write_entries(entries: Mapping[str, Any], path: str | Path) -> None:
    """Write a `config.json`.  Raises: OSError"""
    with atomic_write(path) as file:
        file.write((json.dumps(entries, indent=2) + "\n").encode())


def token_ids(entry: Any) -> tuple[int, ...]:
    """Return the ids of an entry that holds one id, several ids or null."""
    return tuple(entry) if isinstance(entry, list) else () if entry is None else (entry,)


def rename(entries: dict[str, Any], names: Mapping[str, str]) -> None:
    """Rename entries in place. If a file has both names, the alias overrides the other, as in transformers.

    Args:    names: alias -> name of the field
    """
    for alias, name in names.items():
        if entries.get(alias) is not None:
            entries[name] = entries.pop(alias)


def end_ids(entries: dict[str, Any]) -> None:
    """Convert `eos_token_id` to a tuple, in place. A file without it means the model's default; null means no id."""
    if "eos_token_id" in entries:
        entries["eos_token_id"] = token_ids(entries["eos_token_id"])


def labels_of(entries: dict[str, Any]) -> None:
    """Set `labels` to the names of a classifier's labels, in the order of its logits, in place. An entry of that name
    is ignored."""
    entries.pop("labels", None)
    names, count = entries.get("id2label"), entries.get("num_labels")
    if not isinstance(names, dict):
        names = dict.fromkeys(range(count)) if type(count) is int and count < MAX_LABELS else {}
    if names:
        entries["labels"] = tuple(str(names.get(str(i), f"LABEL_{i}")) for i in range(len(names)))


def rope_entries(entries: dict[str, Any]) -> None:
    """Move rotary settings to `rope_theta`, `partial_rotary_factor` and `rope_scaling`, in place.

    transformers 5 stores all of them in `rope_parameters`. If a file has a setting twice, the inner one is used.
    """
    rope = entries.pop("rope_parameters", None)
    rope = entries.get("rope_scaling") or rope
    if isinstance(rope, dict):
        rope = {name: value for name, value in rope.items() if value is not None}
        for name in ("rope_theta", "partial_rotary_factor"):
            if name in rope:
                entries[name] = rope.pop(name)
    entries["rope_scaling"] = rope or None


def whole_heads(entries: dict[str, Any]) -> None:
    """Move or drop `partial_rotary_factor`, in place, for models that rotate whole heads.

    With `rope_scaling` of type "proportional" it is the share of pairs that rotate. With "default" the classes of
    transformers ignore it. With any other type it stays, and is refused.
    """
    rope = entries["rope_scaling"]
    if not isinstance(rope, dict | None):
        return
    kind = "default" if rope is None else rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        entries.pop("partial_rotary_factor", None)
    if kind == "proportional" and "partial_rotary_factor" in entries:
        entries["rope_scaling"] = {**(rope or {}), "partial_rotary_factor": entries.pop("partial_rotary_factor")}


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf


# By annotation: a description of valid values, and the check.
KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": (f"a positive integer, at most {MAX_SIZE}", lambda value: type(value) is int and 0 < value <= MAX_SIZE),
    "Count": (f"an integer from 0 to {MAX_SIZE}", lambda value: type(value) is int and 0 <= value <= MAX_SIZE),
    "token id": ("an integer", lambda value: type(value) is int),
    "float": ("a finite number, not negative", _is_finite),
    "bool": ("True or False", lambda value: type(value) is bool),
    "str": ("a string", lambda value: type(value) is str),
    "tuple[int, ...]": ("a tuple of integers", lambda value: all(type(i) is int for i in value)),
}
