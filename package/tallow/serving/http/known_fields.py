"""The meaning of the fields of requests, also of those that clients of other servers send and this one does not read.

A field has an effect if the reader of an endpoint asks for it. Each endpoint has a table of the others. A field that
would change the answer is refused, unless its value is one that has no effect. A field that does not change the answer
is harmless. Any other name is unknown: the answer lists it in a header, the log has it once, and a strict server
refuses it.

Fields of objects within the request have the names of those objects before them: `stream_options.include_obfuscation`.

Sources: the documents and protocol definitions of OpenAI's API, vLLM, SGLang, llama.cpp's server, Ollama,
text-generation-inference and text-embeddings-inference.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from tallow.serving.http import read_fields
from tallow.serving.http.errors import ApiError
from tallow.serving.http.fields import Fields

HEADER = "X-Tallow-Ignored"
MAX_NAMED, MAX_NAME, MAX_LOGGED = 16, 64, 1000
log = logging.getLogger("tallow.serving")


class Refused(NamedTuple):
    """A field that would change the answer.

    Args:
        without_effect: the values that change nothing; null is always one.
        hint: what to do instead.
    """

    without_effect: tuple[Any, ...] = ()
    hint: str = ""


Refusals: TypeAlias = Mapping[str, Refused]


class Table(NamedTuple):
    """The fields of an endpoint.

    Args:
        refused: those that would change the answer, and are not read.
        harmless: those that do not change it.
        read: those that are read, and what they do. Only documents need this list.
    """

    refused: Refusals
    harmless: frozenset[str]
    read: Mapping[str, str]

    def unknown(self, fields: Fields) -> list[str]:
        """Return the names of fields that nobody read and that the table does not have.

        Raises:  ApiError for a field that would change the answer
        """
        names = []
        for name, value in fields.unread():
            key = re.sub(r"\[\d+\]", "", name)
            refused = self.refused.get(key)
            if refused is not None and value not in refused.without_effect:
                hint = f"; {refused.hint}" if refused.hint else ""
                raise ApiError(f"{name} is not supported{hint}", name, code="unsupported_parameter")
            if refused is None and key not in self.harmless:
                names.append(name)
        return names


class UnknownFields:
    """The manner of a server with unknown fields.

    Args:  strict: refuse them
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._logged: set[tuple[str, str]] = set()

    def headers(self, path: str, names: Collection[str]) -> dict[str, str]:
        """Return the headers that name the unknown fields of a request for a path.

        Raises:  ApiError if the server is strict
        """
        if not names:
            return {}
        shown = [quote(name[:MAX_NAME], safe="[]") for name in list(names)[:MAX_NAMED]]
        listed = ", ".join(shown + ["..."] * (len(names) > MAX_NAMED))
        if self._strict:
            raise ApiError(f"unknown fields: {listed}", next(iter(names)), code="unknown_parameter")
        for name in shown:
            if (path, name) not in self._logged and len(self._logged) < MAX_LOGGED:
                self._logged.add((path, name))
                log.warning("%s: the field %s is unknown and has no effect", path, name)
        return {HEADER: listed}


def refused(*names: str, values: tuple[Any, ...] = (), hint: str = "") -> dict[str, Refused]:
    """Return entries of several fields that have no effect with the same values."""
    return dict.fromkeys(names, Refused(values, hint))


def within(name: str, refusals: Refusals) -> dict[str, Refused]:
    """Return the entries of fields of an object within the request."""
    return {f"{name}.{field}": entry for field, entry in refusals.items()}


EMPTY: tuple[Any, ...] = ("", [], {})
RESPONSE_FORMAT = "use response_format"

# Of each request for texts: how tokens are chosen, and what the answer consists of.
_CHOICES: dict[str, Refused] = {
    **refused("use_beam_search", "early_stopping", "watermark", "watermarking", values=(False,)),
    **refused("best_of", "num_beams", "length_penalty", values=(1,)),
    **refused("diversity_penalty", values=(0,)),
    **refused("clean_up_tokenization_spaces", values=(False,)),
    **refused("dynatemp_range", values=(0, -1)),
    **refused("min_keep", "n_indent", "t_max_predict_ms", "top_a", values=(0,)),
    **refused("tfs_z", "tfs", "smoothing_factor", values=(0, 1)),
    **refused("samplers", "repetition_detection", "logits_processors", "custom_params", values=EMPTY),
    **refused("custom_logit_processor", "generation_config", "lora", "lora_path", "adapter_id", values=EMPTY),
    **refused("prompt_embeds", "images_config", "image_data", "session_params", "vllm_xargs", values=EMPTY),
    **refused("stop_regex", "structural_tag", "guided_whitespace_pattern", values=EMPTY),
    **refused("kv_transfer_params", "ec_transfer_params", "bootstrap_host", values=EMPTY),
    **refused("bootstrap_port", "bootstrap_room"),
    **refused("thinking_token_budget", "thinking_budget_tokens", values=(-1,)),
    **refused("options", "num_ctx", values=EMPTY, hint="send the options as fields of the request"),
    **refused("format", values=EMPTY, hint=RESPONSE_FORMAT),
    **refused("return_hidden_states", "return_routed_experts", "return_meta_info", values=(False,)),
    **refused("return_cached_tokens_details", "return_prompt_text", "return_prompt_token_ids", values=(False,)),
    **refused("return_token_ids", "return_tokens_as_token_ids", "return_tokens", values=(False,)),
    **refused("post_sampling_probs", values=(False,)),
    **refused("response_fields", "logprob_token_ids", values=EMPTY),
    **refused("n_probs", values=(0,), hint="use logprobs"),
    **refused("n_cmpl", values=(1,), hint="use n"),
    **refused("structured_outputs.structural_tag", "structured_outputs.whitespace_pattern", values=EMPTY),
    **refused("structured_outputs.disable_any_whitespace", values=(False,)),
    **refused("structured_outputs.disable_additional_properties", values=(False,)),
    **refused("enable_thinking", "think", hint="use chat_template_kwargs"),
}
# Who asks, and other circumstances.
_ASKING = {
    "user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "prompt_cache_options", "request_id", "session_id", "rid", "custom_labels", "keep_alive",
    "mm_processor_kwargs", "media_io_kwargs",
}  # fmt: skip
# How the work on a text is divided and reported, and settings of what is refused.
_SCHEDULING = {
    *_ASKING,
    "cache_prompt", "id_slot", "n_cache_reuse", "n_keep", "n_discard", "stream_interval", "sse_ping_interval",
    "timings_per_token", "return_progress", "data_parallel_rank", "routed_dp_rank", "disagg_prefill_dp_rank",
    "routed_experts_prompt_start", "routed_experts_start_len", "ngram_corpus_id", "prediction",
    "guided_decoding_backend", "grammar_lazy", "spaces_between_special_tokens", "return_mm_kwargs",
    "return_token_offsets", "max_dynamic_patch", "min_dynamic_patch", "use_audio_in_video",
    "stream_options.include_obfuscation", "dynatemp_exponent", "use_cache",
    "response_format.json_schema.name", "response_format.json_schema.description",
    "response_format.json_schema.strict", "response_format.strict", "response_format.name",
}  # fmt: skip

COMPLETIONS = Table(
    {
        **_CHOICES,
        **refused("suffix", "input_prefix", "input_suffix", "input_extra", values=EMPTY),
    },
    frozenset(_SCHEDULING),
    read_fields.COMPLETIONS,
)

_MESSAGE = {
    **refused("audio", "function_call", "tools", "tool_plan", values=EMPTY),
    **refused("prefix", "partial", values=(False,), hint="use continue_final_message"),
}
CHAT = Table(
    {
        **_CHOICES,
        **refused("functions", values=EMPTY, hint="use tools"),
        **refused("function_call", values=(*EMPTY, "none", "auto"), hint="use tool_choice"),
        **refused("audio", "web_search_options", "plugins", "transforms", "task", "input_ids", values=EMPTY),
        **refused("modalities", values=([], ["text"])),
        **refused("tool_prompt", "guideline", "moderation", values=EMPTY),
        **refused("verbosity", values=("medium",)),
        **refused("include_reasoning", values=(True,)),
        **refused("separate_reasoning", "reasoning_control", "echo", values=(False,)),
        **refused("reasoning_format", values=("none", "auto")),
        **refused("chat_template", values=EMPTY, hint="use the model's own, or render the prompt for /v1/completions"),
        **within("messages", _MESSAGE),
    },
    frozenset(_SCHEDULING | {"stream_reasoning"})
    | {f"messages.{name}" for name in ("refusal", "annotations", "id", "weight", "status", "type", "stop_reason")}
    | {f"messages.content.{name}" for name in ("type", "cache_control", "annotations", "logprobs")}
    | {f"messages.tool_calls.{name}" for name in ("type", "index", "function.parsed_arguments")},
    read_fields.CHAT,
)

RESPONSES = Table(
    {
        **_CHOICES,
        **refused("tools", "previous_response_id", "conversation", "prompt", "context_management", values=EMPTY),
        **refused("background", values=(False,)),
        **refused("text.verbosity", values=("medium",)),
        **refused("tool_choice", values=("none", "auto")),
        **refused("truncation", values=("disabled",)),
        **refused("top_logprobs", values=(0,)),
        **refused("image", "background_options", "access_programs", values=EMPTY),
        **refused("n", "max_tokens", "max_completion_tokens", hint="the field is max_output_tokens; n is always 1"),
        **refused("include", values=([], ["reasoning.encrypted_content"])),
        **refused("moderation", values=EMPTY),
        **within("input", _MESSAGE),
    },
    frozenset(
        _SCHEDULING | {"parallel_tool_calls", "max_tool_calls", "reasoning.summary", "reasoning.generate_summary"}
    )
    - {"metadata"}
    | {f"input.{name}" for name in ("refusal", "id", "status", "type", "phase")}
    | {f"input.content.{name}" for name in ("type", "annotations", "logprobs")}
    | {f"text.format.{name}" for name in ("name", "strict", "description")},
    read_fields.RESPONSES,
)

GENERATE = Table(
    {
        **refused("add_special_tokens", values=(True,)),
        **within("parameters", _CHOICES),
        **within("parameters", refused("stop_sequences", values=EMPTY, hint="use stop")),
        **within("parameters", refused("max_length", "max_time")),
        **within("parameters", refused("num_return_sequences", values=(1,), hint="send a request for each")),
    },
    frozenset({"stream", "options", "options.use_cache", "options.wait_for_model"})
    | {f"parameters.{name}" for name in _SCHEDULING},
    read_fields.GENERATE,
)

EMBEDDINGS = Table(
    {
        **refused(
            "prompt", "instruction", "instruct", "input_type", "messages", "chat_template", "images", values=EMPTY
        ),
        **refused("pooling", "task", "embed_overrides", "lora_path", "late_chunking", "embd_normalize", values=EMPTY),
        **refused("embed_override_token_id", "use_activation"),
        **refused("add_special_tokens", "normalize", values=(True,)),
        **refused("truncation_side", values=("right",)),
        **refused("truncate_prompt_tokens", values=(-1,)),
        **refused("embed_dtype", "output_dtype", values=("float32", "float")),
        **refused("endianness", values=("native", "little")),
        **refused("chat_template_kwargs", "additional_data", values=EMPTY),
    },
    frozenset(_ASKING | {"priority", "cache_salt", "extra_key"}),  # nothing of a text is kept for others
    read_fields.EMBEDDINGS,
)

_OF_ENCODERS = refused("prompt", "instruction", "pooling", values=EMPTY)
_HARMLESS = frozenset({"user", "options"})
EMBED = Table(_OF_ENCODERS, _HARMLESS | {"parameters"}, read_fields.EMBED)
EMBED_ALL = Table(_OF_ENCODERS, _HARMLESS | {"parameters"}, read_fields.EMBED_ALL)
SIMILARITY = Table(_OF_ENCODERS, _HARMLESS, read_fields.SIMILARITY)
RERANK = Table(_OF_ENCODERS, _HARMLESS, read_fields.RERANK)
PREDICT = Table(_OF_ENCODERS, _HARMLESS | {"parameters"}, read_fields.PREDICT)
TOKENIZE = Table(
    refused("prompt_name", values=EMPTY)
    | refused("prompt", "messages", "content", values=EMPTY, hint="the field of the texts is inputs"),
    frozenset({"user"}),
    read_fields.TOKENIZE,
)
DECODE = Table(refused("tokens", values=EMPTY, hint="the field is ids"), frozenset({"user"}), read_fields.DECODE)
SPOKEN = Table(
    refused("stream_format", values=("audio",))
    | refused("instructions", "ref_audio", "ref_text", "task_type", "language", values=EMPTY)
    | refused("stream", values=(True, False))
    | refused("seed", "max_new_tokens", "temperature"),
    frozenset({"user"}),
    read_fields.SPOKEN,
)
SPEECH = Table(
    {
        **refused("chunking_strategy", values=("auto", "")),
        **refused(
            "include[]", "include", "known_speaker_names[]", "known_speaker_references[]", "hotwords", values=EMPTY
        ),
        **refused("keywords", "keywords[]", "languages", "languages[]", values=EMPTY),
        **refused("diarize", values=("false", "")),
        **refused("seed", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty"),
    },
    frozenset({"user", "stream_include_usage", "stream_continuous_usage_stats"}),
    read_fields.SPEECH,
)
