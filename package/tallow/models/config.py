"""The base of model configs: read a `config.json`, refuse settings that the model does not compute, warn of others."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

from tallow.errors import ArgumentError, CheckpointError, TallowWarning, warn
from tallow.io.atomic import atomic_write
from tallow.io.json_object import parse_object
from tallow.io.regular import read_regular
from tallow.nn.rope_scaling import unread_entries

CONFIG = "config.json"
ADAPTER_CONFIG = "adapter_config.json"  # of a folder of peft
DTYPE_NAMES = ("dtype", "torch_dtype")  # its entry for the dtype in newer and older versions of transformers
Count: TypeAlias = int  # a field that may be 0
Side: TypeAlias = int | tuple[int, int]  # a field with the side of a square, or the height and the width of a rectangle
MAX_DEPTH = 8
MOST_SHOWN = 20  # unknown entries in a warning
MAX_LABELS = 100_000  # more than any classifier
MAX_SIZE = 2**31 - 1  # more than any size of a model

# Entries of any config.json that do not affect what a model computes, and are too common for a warning: what
# transformers' base class knows, the file's origin, how to serve and train the model, lengths for some tokenizer, and
# generation settings, which old versions of transformers kept here.
# fmt: off
NEUTRAL = frozenset({
    "architectures", "model_type", "transformers_version", "torch_dtype", "dtype", "output_attentions",
    "output_hidden_states", "return_dict", "chunk_size_feed_forward", "pruned_heads", "torchscript", "use_bfloat16",
    "tf_legacy_loss", "problem_type", "id2label", "label2id", "num_labels", "tokenizer_class", "prefix",
    "task_specific_params", "finetuning_task", "attn_implementation", "use_cache", "cache_implementation",
    "name_or_path", "auto_map", "language", "license_name", "is_llama_config", "output_past", "transformers.js_config",
    "sentence_transformers", "sbert_ce_default_activation_function", "unsloth_version", "unsloth_fixed",
    "gradient_checkpointing", "initializer_range",
    "initializer_factor", "max_sequence_length", "model_max_length", "begin_suppress_tokens", "suppress_tokens",
    "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty",
    "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
    "return_dict_in_generate", "remove_invalid_values", "exponential_decay_length_penalty", "epsilon_cutoff",
    "eta_cutoff", "encoder_repetition_penalty", "num_assistant_tokens", "num_assistant_tokens_schedule",
    "assistant_confidence_threshold", "assistant_lookbehind", "target_lookbehind",
})
# fmt: on
_NEUTRAL_FORM = re.compile(r"_.*|.*_token_ids?")  # what transformers keeps for itself, and special tokens

# Parts of the names of mechanisms that change the output of some model and leave the names and shapes of its weights
# as they are, so that a checkpoint does not show them: where a model does not know such an entry, it must be off.
# Initial values are weights by now.
_MECHANISM = re.compile(
    r"(?!.*init)(?:.*_)?(?:alibi|attention_window|bidirectional|clip_qkv|experts?|layer_types|local_attention|moe|mrope|"
    r"multipliers?|mup|parallel_(?:attn|residual)|position_embedding_type|quantization|rope|rotary|scal(?:ar|e|ing)|"
    r"sliding_window|(?:logit_|soft_?)cap(?:ping)?)(?:_.*)?"
)

# Entries of any config.json that would affect the output, with the values that all models support unless they say
# otherwise.
COMPUTED: Mapping[str, tuple[Any, ...]] = {
    "is_encoder_decoder": (False,),
    "tie_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "is_decoder": (False,),
}

_reported: set[str] = set()  # the unknown entries that this process has warned of


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
        neutral: entries, in addition to those of all models, that do not affect the output.
        unread: fields that are not read from `config.json`, where they have no effect.
        file_names: fields -> their entries, where these have another name.
        in_float32: the ends of the names of buffers that stay in float32 when a model is loaded or saved in another
            dtype.
    """

    model_types: ClassVar[tuple[str, ...]]
    layer_counts: ClassVar[tuple[str, ...]] = ("num_hidden_layers", "n_layer", "n_layers")
    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    neutral: ClassVar[frozenset[str]] = frozenset()
    unread: ClassVar[frozenset[str]] = frozenset()
    file_names: ClassVar[Mapping[str, str]] = {}
    in_float32: ClassVar[tuple[str, ...]] = ()

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

    def check_heads(self, width: str, *heads: str, hint: str | None = None) -> None:
        """Raise ArgumentError unless the fields `heads`, numbers of heads, divide the field `width`."""
        for count in (getattr(self, name) for name in heads):
            if getattr(self, width) % count:
                what = f"{count} heads do not divide {width}={getattr(self, width)}"
                raise ArgumentError(f"{type(self).__name__}: {what}", hint=hint)

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

    def joined(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the tensors of a model as transformers 5 holds them in memory, the reverse of `separated`."""
        return state

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        """Rename entries of older and newer versions of transformers to the names of the fields, in place."""

    @classmethod
    def from_json(cls, path: str | Path, *, strict: bool = False) -> Self:
        """Read a `config.json`.

        An entry that neither the model nor `NEUTRAL` knows has no effect, and is reported in a TallowWarning, once in
        a process. It is refused if its name is that of a mechanism of other models and its value is not off.

        Args:    strict: refuse every unknown entry
        Raises:  CheckpointError when it is not JSON, belongs to another model, or lacks a size; and for entries that
                 affect the output and that the model does not support, all in one message
        """
        entries = {name: value for name, value in read_entries(path).items() if name not in cls.unread}
        return cls.from_entries(entries, str(path), strict=strict)

    @classmethod
    def from_entries(cls, entries: Mapping[str, Any], source: str, *, strict: bool = False) -> Self:
        """Make a config from the entries of a `config.json`; as `from_json`.  Args: source: its name, for errors"""
        entries = dict(entries)
        if entries.get("model_type", cls.model_types[0]) not in cls.model_types:
            raise CheckpointError(
                f"{source}: model_type is {entries['model_type']!r:.80}; {cls.__name__} reads "
                f"{', '.join(cls.model_types)}",
                hint="use the class of that model; tallow.models.AutoModel detects it",
            )
        cls.prepare(entries)
        known = {field.name for field in fields(cls)}
        others = {name: value for name, value in entries.items() if name not in known and value is not None}
        for name in known & entries.keys():
            if isinstance(scaling := entries[name], dict):  # of rotary angles
                unread = unread_entries(scaling)
                others |= {f"{name}.{key}": scaling[key] for key in unread if scaling[key] is not None}
                entries[name] = {key: value for key, value in scaling.items() if key not in unread}
        report_unknown(cls._unknown(others, source, strict), f"{source}: {cls.__name__}")
        values = {name: value for name, value in entries.items() if name in known and value is not None}
        missing = [field.name for field in fields(cls) if field.default is MISSING and field.name not in values]
        if missing:
            raise CheckpointError(f"{source}: missing {', '.join(missing)}", hint=f"use the model's own {CONFIG}")
        try:
            return cls(**values)
        except ArgumentError as error:
            raise CheckpointError(f"{source}: {error}") from error

    @classmethod
    def is_neutral(cls, name: str) -> bool:
        """Return whether an entry of this name, which is no field, does not affect the output."""
        return name in NEUTRAL or name in cls.neutral or _NEUTRAL_FORM.fullmatch(name) is not None

    @classmethod
    def _unknown(cls, entries: Mapping[str, Any], source: str, strict: bool) -> dict[str, Any]:
        """Return the entries to warn of, among those that are no fields.

        Raises:  CheckpointError for entries that the model does not support
        """
        computed = {**COMPUTED, **cls.computed}
        unsupported, unknown = [], {}
        for name, value in entries.items():
            reason = None
            if name in computed:
                if value not in computed[name]:
                    reason = f"the model supports {' or '.join(repr(v) for v in computed[name])}"
            elif name not in cls.neutral and is_mechanism(name.rpartition(".")[2], value):
                reason = "the model does not compute it"
            elif not cls.is_neutral(name):
                if strict:
                    reason = "unknown entry"
                else:
                    unknown[name] = value
            if reason is not None:
                unsupported.append(f"  {name} is {value!r:.200}; {reason}")
        if unsupported:
            hint = f"if an entry does not affect the output, delete it from {CONFIG}"
            if any("quantization" in name for name in unsupported):
                hint = "use the model before it was quantised, or its GGUF file"
            raise CheckpointError("\n".join([f"{source}: {cls.__name__} does not support", *unsupported]), hint)
        return unknown


def report_unknown(entries: Mapping[str, Any], reader: str) -> None:
    """Name entries that have no effect in a TallowWarning, each name once in a process.  Args: reader: who says so"""
    unknown = [name for name in entries if name not in _reported]
    if unknown:
        text = ", ".join(f"{name!r:.80} ({entries[name]!r:.40})" for name in unknown[:MOST_SHOWN])
        text += f" and {len(unknown) - MOST_SHOWN} more" if len(unknown) > MOST_SHOWN else ""
        warn(f"{reader} does not know these entries, and ignores them: {text}", TallowWarning)
        _reported.update(unknown)


def read_entries(path: str | Path) -> dict[str, Any]:
    """Return the entries of a `config.json`, which may hold Python's Infinity and NaN.

    Raises:  CheckpointError when it is missing or not JSON
    """
    try:
        text = read_regular(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist", hint=_instead_of(Path(path))) from error
    return parse_object(text, str(path), max_depth=MAX_DEPTH, parse_constant=float)


def _instead_of(path: Path) -> str:
    """Return what to do about a folder that lacks a file."""
    if path.name != CONFIG:
        return "pass a folder that has it"
    if (path.parent / ADAPTER_CONFIG).exists():
        return "the folder is an adapter: load its base model, then the adapter (--adapter, or tallow.peft.PeftModel)"
    return f"pass a model folder, with its {CONFIG}"


def write_entries(entries: Mapping[str, Any], path: str | Path) -> None:
    """Write a `config.json`.  Raises: OSError"""
    with atomic_write(path) as file:
        file.write((json.dumps(entries, indent=2) + "\n").encode())


def token_ids(entry: Any) -> tuple[int, ...]:
    """Return the ids of an entry that holds one id, several ids or null."""
    return tuple(entry) if isinstance(entry, list) else () if entry is None else (entry,)


def tupled(entries: dict[str, Any], *names: str) -> None:
    """Convert entries that are lists, and lists inside of them, to tuples, in place."""
    for name in names:
        if isinstance(value := entries.get(name), list):
            entries[name] = tuple(tuple(each) if isinstance(each, list) else each for each in value)


def rename(entries: dict[str, Any], names: Mapping[str, str]) -> None:
    """Rename entries in place. If a file has both names, the alias overrides the other, as in transformers.

    Args:    names: alias -> name of the field
    """
    for alias, name in names.items():
        if entries.get(alias) is not None:
            entries[name] = entries.pop(alias)


def texts_part(entries: dict[str, Any], *others: str) -> None:
    """Replace the sizes of a model of several kinds of data by those of its part for texts, in place.

    Entries outside of the parts stay where `text_config` does not have them. Of an entry that both have, the model's
    type and whether the head is tied are the outer ones.

    Args:    others: the parts that are left out
    """
    if not isinstance(texts := entries.get("text_config"), dict):
        return
    for name in ("text_config", *others):
        entries.pop(name, None)
    outer: dict[str, Any] = {name: entries[name] for name in ("model_type", "tie_word_embeddings") if name in entries}
    entries |= {**texts, **outer}


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


def is_mechanism(name: str, value: Any) -> bool:
    """Return whether an entry turns on a mechanism that changes the output of some model but not its tensors. It is
    off with nothing, a factor of 1, and the usual kind of positions or of all layers."""
    is_on = bool(value) and (value != 1 or value is True) and value != "absolute"
    is_usual = isinstance(value, list) and all(kind == "full_attention" for kind in value)
    return is_on and not is_usual and _MECHANISM.fullmatch(name) is not None


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= sys.float_info.max  # an integer may exceed all floats


def _is_tuple(value: Any, kind: type) -> bool:
    return isinstance(value, tuple | list) and all(type(item) is kind for item in value)


def _is_side(value: Any) -> bool:
    sides = value if isinstance(value, tuple) and len(value) == 2 else (value,)
    return all(type(side) is int and 0 < side <= MAX_SIZE for side in sides)


# By annotation: a description of valid values, and the check.
KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": (f"a positive integer, at most {MAX_SIZE}", lambda value: type(value) is int and 0 < value <= MAX_SIZE),
    "Count": (f"an integer from 0 to {MAX_SIZE}", lambda value: type(value) is int and 0 <= value <= MAX_SIZE),
    "token id": ("an integer", lambda value: type(value) is int),
    "float": ("a finite number, not negative", _is_finite),
    "bool": ("True or False", lambda value: type(value) is bool),
    "str": ("a string", lambda value: type(value) is str),
    "Side": ("a positive integer, or two: the height and the width", lambda value: _is_side(value)),
    "tuple[int, ...]": ("a tuple of integers", lambda value: _is_tuple(value, int)),
    "tuple[str, ...]": ("a tuple of strings", lambda value: _is_tuple(value, str)),
}
