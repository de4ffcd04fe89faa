"""`GenerationConfig`: how `generate` chooses tokens, and when it ends a text."""

from __future__ import annotations

import json
from copy import deepcopy
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tallow.errors import ArgumentError, CheckpointError, TallowWarning, warn
from tallow.models.config import read_entries
from tallow.transformers.downloads import find_folder
from tallow.transformers.generation.watermarking import watermarking_config

FILE = "generation_config.json"

# The entries of transformers, which all begin as None: what neither the caller nor the model's file sets takes its
# value from DEFAULTS when `generate` runs.
ENTRIES = (
    "max_length",
    "max_new_tokens",
    "min_length",
    "min_new_tokens",
    "early_stopping",
    "max_time",
    "stop_strings",
    "do_sample",
    "num_beams",
    "use_mtp",
    "use_cache",
    "cache_implementation",
    "cache_config",
    "max_cache_len",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "top_h",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "repetition_penalty",
    "encoder_repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "bad_words_ids",
    "renormalize_logits",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "remove_invalid_values",
    "exponential_decay_length_penalty",
    "suppress_tokens",
    "begin_suppress_tokens",
    "sequence_bias",
    "token_healing",
    "guidance_scale",
    "watermarking_config",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "output_logits",
    "return_dict_in_generate",
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "encoder_no_repeat_ngram_size",
    "decoder_start_token_id",
    "is_assistant",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "assistant_confidence_threshold",
    "prompt_lookup_num_tokens",
    "max_matching_ngram_size",
    "assistant_early_exit",
    "assistant_lookbehind",
    "target_lookbehind",
    "assistant_ensemble_weight",
    "speculation_type",
    "compile_config",
    "continuous_batching_config",
    "disable_compile",
    "low_memory",
    "penalty_alpha",
    "dola_layers",
    "diversity_penalty",
    "num_beam_groups",
    "constraints",
    "force_words_ids",
    "prefill_chunk_size",
)

DEFAULTS: dict[str, Any] = {
    "max_length": 20,
    "min_length": 0,
    "do_sample": False,
    "use_cache": True,
    "early_stopping": False,
    "num_beams": 1,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "typical_p": 1.0,
    "repetition_penalty": 1.0,
    "length_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "num_return_sequences": 1,
    "output_scores": False,
    "return_dict_in_generate": False,
    "remove_invalid_values": False,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "encoder_repetition_penalty": 1.0,
    "num_assistant_tokens": 20,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.4,
    "assistant_lookbehind": 10,
    "target_lookbehind": 10,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
}

STATIC_CACHES = ("static", "offloaded_static", "sliding_window", "hybrid", "hybrid_chunked")
CACHES = (*STATIC_CACHES, "offloaded_hybrid", "offloaded_hybrid_chunked", "dynamic", "offloaded", "quantized", "paged")

# Entries that count only with do_sample, and only with several beams, and the values that change nothing.
OF_DRAWS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("temperature", "top_p", "typical_p"), (None, 1.0)),
    **dict.fromkeys(("min_p", "top_h"), (None,)),
    **dict.fromkeys(("epsilon_cutoff", "eta_cutoff"), (None, 0.0)),
    "top_k": (None, 50),
}
OF_BEAMS: dict[str, tuple[Any, ...]] = {"early_stopping": (None, False), "length_penalty": (None, 1.0)}
OUTPUTS = ("output_attentions", "output_hidden_states", "output_scores", "output_logits")

# Entries that are numbers, and the least that each may be.
NUMBERS = {
    **dict.fromkeys(("num_beams", "num_return_sequences"), 1),
    **dict.fromkeys(("max_length", "min_length", "max_new_tokens", "min_new_tokens", "max_time"), 0),
    "length_penalty": float("-inf"),
}

# Arguments of `generate` that are no entries.
ARGUMENTS = (
    "logits_processor",
    "stopping_criteria",
    "prefix_allowed_tokens_fn",
    "synced_gpus",
    "assistant_model",
    "streamer",
    "negative_prompt_ids",
    "negative_prompt_attention_mask",
)


class GenerationMode(StrEnum):
    """The ways in which `generate` searches for a text."""

    CONTRASTIVE_SEARCH = "contrastive_search"
    GREEDY_SEARCH = "greedy_search"
    SAMPLE = "sample"
    ASSISTED_GENERATION = "assisted_generation"
    DOLA_GENERATION = "dola_generation"
    BEAM_SEARCH = "beam_search"
    BEAM_SAMPLE = "beam_sample"
    CONSTRAINED_BEAM_SEARCH = "constrained_beam_search"
    GROUP_BEAM_SEARCH = "group_beam_search"


class GenerationConfig:
    """The way in which `generate` chooses tokens, with the entries, defaults and checks of transformers.

    Every entry of ENTRIES is an attribute; what is not passed is None. Further arguments become attributes, too.

    Raises:  ArgumentError for entries that are invalid or exclude each other
    Warns:   TallowWarning for entries without effect, such as a temperature without do_sample
    """

    extra_output_flags: ClassVar[tuple[str, ...]] = OUTPUTS

    def __init__(self, **kwargs: Any) -> None:
        entries = dict(kwargs)
        from_model = entries.pop("_from_model_config", None)
        entries.pop("_commit_hash", None)
        if isinstance(mark := entries.get("watermarking_config"), dict):
            entries["watermarking_config"] = watermarking_config(mark)
        for name in (*ENTRIES, "transformers_version"):
            setattr(self, name, entries.pop(name, None))
        if from_model and entries.get("force_bos_token_to_be_generated"):
            self.forced_bos_token_id = self.bos_token_id
        if not from_model:
            vars(self).update(entries)
        self.validate(user_set_attributes=set() if from_model else set(kwargs))

    if TYPE_CHECKING:
        # The entries, which the constructor sets.
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"GenerationConfig has no entry {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GenerationConfig) and self._entries() == other._entries()

    def __hash__(self) -> int:
        return hash(self.to_json_string(ignore_metadata=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.to_json_string(ignore_metadata=True)}"

    def _entries(self) -> dict[str, Any]:
        return {name: value for name, value in self.to_dict().items() if name != "transformers_version"}

    # --------------------------------------------------------------------------------------------------------- checks

    def get_generation_mode(self, assistant_model: Any = None) -> GenerationMode:
        """Return how `generate` searches with these entries."""
        if self.constraints is not None or self.force_words_ids is not None:
            return GenerationMode.CONSTRAINED_BEAM_SEARCH
        if (self.num_beams or 1) > 1:
            if (self.num_beam_groups or 1) > 1:
                return GenerationMode.GROUP_BEAM_SEARCH
            return GenerationMode.BEAM_SAMPLE if self.do_sample is True else GenerationMode.BEAM_SEARCH
        drafts = (assistant_model, self.use_mtp or None, self.prompt_lookup_num_tokens, self.assistant_early_exit)
        if self.dola_layers is not None:
            return GenerationMode.DOLA_GENERATION
        if any(draft is not None for draft in drafts):
            return GenerationMode.ASSISTED_GENERATION
        if self.do_sample is True:
            return GenerationMode.SAMPLE
        contrasts = (self.top_k or 0) > 1 and (self.penalty_alpha or 0) > 0
        return GenerationMode.CONTRASTIVE_SEARCH if contrasts else GenerationMode.GREEDY_SEARCH

    def validate(self, strict: bool = False, user_set_attributes: set[str] | None = None) -> None:
        """Check the entries.

        Args:
            strict: entries without effect are an error, not a warning.
            user_set_attributes: warn of these only; None means of all.

        Raises:  ArgumentError for entries that are invalid or exclude each other
        Warns:   TallowWarning for entries without effect
        """
        self._check_values()
        self._check_returned()
        self._check_forced()
        for name in ARGUMENTS:
            if name in vars(self):
                raise ArgumentError(f"GenerationConfig: {name} is no entry", hint="pass it to generate()")
        useless = self._without_effect(user_set_attributes)
        if useless and strict:
            raise ArgumentError(f"GenerationConfig: {'; '.join(useless)}", hint="remove them, or set what they need")
        if useless:
            warn(f"GenerationConfig: {'; '.join(useless)}", TallowWarning)

    def _check_values(self) -> None:
        for name, least in NUMBERS.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float) or value < least):
                raise ArgumentError(f"{name}={value!r:.80}", hint=f"pass a number from {least} up")
        if self.early_stopping not in (None, True, False, "never"):
            raise ArgumentError(f"early_stopping={self.early_stopping!r}", hint='pass True, False or "never"')
        if self.max_new_tokens is not None and self.max_new_tokens <= 0:
            raise ArgumentError(f"max_new_tokens={self.max_new_tokens}", hint="pass 1 or more")
        if (weight := self.assistant_ensemble_weight) is not None and not 0 < weight < 1:
            raise ArgumentError(f"assistant_ensemble_weight={weight}", hint="pass a number between 0 and 1, or None")
        if self.cache_implementation is not None and self.cache_implementation not in CACHES:
            hint = f"use one of {', '.join(CACHES)}"
            raise ArgumentError(f"cache_implementation={self.cache_implementation!r}", hint=hint)
        if self.watermarking_config is not None:
            self.watermarking_config.validate()

    def _check_returned(self) -> None:
        count, beams = self.num_return_sequences or 1, self.num_beams or 1
        if count > 1 and beams == 1 and not self.do_sample:
            raise ArgumentError(
                f"num_return_sequences={count} without beams or sampling: there is one likeliest text",
                hint="pass do_sample=True, or num_beams",
            )
        if count > beams > 1:
            raise ArgumentError(f"num_return_sequences={count} with num_beams={beams}", hint="pass at most num_beams")

    def _check_forced(self) -> None:
        suppressed = set() if self.suppress_tokens is None else set(self.suppress_tokens)
        for name in ("forced_bos_token_id", "forced_eos_token_id"):
            forced = getattr(self, name)
            if forced is None or not suppressed:
                continue
            if ({forced} if isinstance(forced, int) else set(forced)) <= suppressed:
                raise ArgumentError(f"{name}={forced} is also in suppress_tokens", hint="remove it from one of them")

    def _without_effect(self, named: set[str] | None) -> list[str]:
        """Return what to say about the entries that count only with others that are not set."""

        def is_said(*names: str) -> bool:
            return named is None or set(names) <= named

        useless = []
        if self.do_sample is not True:
            useless += [
                f"{name}={getattr(self, name)!r} has no effect without do_sample=True"
                for name, neutral in OF_DRAWS.items()
                if getattr(self, name) not in neutral and is_said("do_sample", name)
            ]
        if (self.num_beams or 1) == 1:
            useless += [
                f"{name}={getattr(self, name)!r} has no effect without num_beams"
                for name, neutral in OF_BEAMS.items()
                if getattr(self, name) not in neutral and is_said("num_beams", name)
            ]
        if self.use_cache is False:
            useless += [
                f"{name} has no effect with use_cache=False"
                for name in ("cache_implementation", "cache_config")
                if getattr(self, name) is not None and is_said(name)
            ]
        if self.return_dict_in_generate is not True:
            useless += [
                f"{name} has no effect without return_dict_in_generate=True"
                for name in OUTPUTS
                if getattr(self, name) is True and is_said(name)
            ]
        if self.pad_token_id is not None and self.pad_token_id < 0:
            useless.append(f"pad_token_id={self.pad_token_id} is no token")
        return useless

    def update(self, defaults_only: bool = False, allow_custom_entries: bool = False, **kwargs: Any) -> dict[str, Any]:
        """Set entries; return the arguments that are none.

        Args:
            defaults_only: leave entries alone that are not None.
            allow_custom_entries: set arguments that are no entries as well.

        Raises:  ArgumentError as `validate`
        """
        taken = set()
        for name, value in kwargs.items():
            if name not in vars(self):
                if not allow_custom_entries:
                    continue
            elif defaults_only and getattr(self, name) is not None:
                continue
            if name == "watermarking_config" and isinstance(value, dict):
                value = watermarking_config(value)
            setattr(self, name, value)
            taken.add(name)
        self.validate(user_set_attributes=taken)
        return {name: value for name, value in kwargs.items() if name not in taken}

    @staticmethod
    def _get_default_generation_params() -> dict[str, Any]:
        return dict(DEFAULTS)

    # ---------------------------------------------------------------------------------------------------------- files

    def to_dict(self) -> dict[str, Any]:
        """Return all entries."""
        entries = {name: deepcopy(value) for name, value in vars(self).items() if not name.startswith("_")}
        if hasattr(entries.get("watermarking_config"), "to_dict"):
            entries["watermarking_config"] = entries["watermarking_config"].to_dict()
        return entries

    def to_diff_dict(self) -> dict[str, Any]:
        """Return the entries that are set."""
        return {name: value for name, value in self.to_dict().items() if value is not None}

    def to_json_string(
        self, use_diff: bool = True, ignore_metadata: bool = False, keys_to_pop: list[str] | None = None
    ) -> str:
        """Return the entries as JSON, only those that are set if `use_diff`.

        Args:
            ignore_metadata: leave the version of transformers out.
            keys_to_pop: entries to leave out.
        """
        entries = self.to_diff_dict() if use_diff else self.to_dict()
        without = {*(keys_to_pop or ()), *(("transformers_version",) if ignore_metadata else ())}
        kept = {str(name): value for name, value in entries.items() if name not in without}
        return json.dumps(_jsonable(kept), indent=2, sort_keys=True) + "\n"

    def to_json_file(
        self, json_file_path: str | PathLike[str], use_diff: bool = True, keys_to_pop: list[str] | None = None
    ) -> None:
        """Write `to_json_string` to a file."""
        Path(json_file_path).write_text(self.to_json_string(use_diff, keys_to_pop=keys_to_pop), encoding="utf-8")

    def save_pretrained(
        self,
        save_directory: str | PathLike[str],
        config_file_name: str | PathLike[str] | None = None,
    ) -> None:
        """Write the entries to `generation_config.json`, or another file, of a folder, which is made if needed.

        Raises:  ArgumentError as `validate(strict=True)`
        """
        self.validate(strict=True)
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        self.to_json_file(folder / (config_file_name or FILE), keys_to_pop=["compile_config"])

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name: str | Path,
        config_file_name: str | PathLike[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Read the entries of a folder or a repository on the Hub.

        Args:
            config_file_name: `generation_config.json` if None.
            kwargs: `revision`, `token`, `cache_dir`, `subfolder`, ... of the download; others are entries, which
                override those of the file. With `return_unused_kwargs=True` the result is a pair with what is neither.

        Raises:  CheckpointError for a file that does not exist, or is not JSON
        """
        folder, kwargs = find_folder(pretrained_model_name, kwargs)
        path = folder / (config_file_name or FILE)
        if not path.is_file():
            raise CheckpointError(f"{path} does not exist", hint="check the name of the folder and of the file")
        return cls.from_dict(read_entries(path), **kwargs)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """Return a config with entries of a dictionary, and further ones.

        Args:    kwargs: `return_unused_kwargs=True` returns a pair with what is no entry
        """
        returns_unused = kwargs.pop("return_unused_kwargs", False)
        for name in ("_from_auto", "_from_pipeline"):
            kwargs.pop(name, None)
        config = cls(**{**config_dict, **kwargs})
        kwargs.pop("_from_model_config", None)
        unused = config.update(**kwargs)
        return (config, unused) if returns_unused else config

    @classmethod
    def from_model_config(cls, model_config: Any) -> Self:
        """Return the entries that a model's `config.json` holds, where old versions of transformers stored them."""
        entries = dict(model_config) if isinstance(model_config, dict) else model_config.to_dict()
        config: Self = cls.from_dict(
            {name: value for name, value in entries.items() if value is not None}, _from_model_config=True
        )
        parts = [entries.get(name) for name in ("decoder", "generator", "text_config")]
        inner = next((part for part in parts if isinstance(part, dict) and part), {})
        for name in ENTRIES:
            if getattr(config, name) is None and inner.get(name) is not None:
                setattr(config, name, inner[name])
        if any(getattr(config, name) for name in OUTPUTS):
            config.return_dict_in_generate = True
        return config


def _jsonable(value: Any) -> Any:
    """Return a value with strings for keys and for what JSON has no form of."""
    if isinstance(value, dict):
        return {str(name): _jsonable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(each) for each in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    raise CheckpointError(f"{FILE}: {type(value).__name__} has no form in JSON", hint="set the entry to None")
