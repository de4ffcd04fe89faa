"""The fields that other servers and clients define: each is read, refused, or known to change nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from openai.types import completion_create_params, embedding_create_params
from openai.types.audio import transcription_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import response_create_params

from tallow.serving.http import known_fields
from tallow.serving.http.known_fields import Table


def words(text: str) -> list[str]:
    return text.split()


# Of requests for texts, in vLLM's protocol.py of completions and chats (2026), with the older names of 0.4 to 0.11.
VLLM = words("""
    add_generation_prompt add_special_tokens allowed_token_ids bad_words cache_salt chat_template chat_template_kwargs
    continue_final_message documents echo ec_transfer_params frequency_penalty guided_choice guided_decoding_backend
    guided_grammar guided_json guided_regex guided_whitespace_pattern ignore_eos include_reasoning
    include_stop_str_in_output kv_transfer_params length_penalty logit_bias logits_processors logprob_token_ids logprobs
    max_completion_tokens max_tokens media_io_kwargs messages min_p min_tokens mm_processor_kwargs model n
    parallel_tool_calls presence_penalty priority prompt_embeds prompt_logprobs reasoning_effort repetition_detection
    repetition_penalty request_id response_format return_mm_kwargs return_prompt_text return_token_ids
    return_token_offsets return_tokens_as_token_ids routed_experts_prompt_start seed session_id skip_special_tokens
    spaces_between_special_tokens stop stop_token_ids stream stream_interval stream_options structural_tag
    structured_outputs temperature thinking_token_budget tool_choice tools top_k top_logprobs top_p
    truncate_prompt_tokens truncation_side use_beam_search user vllm_xargs watermarking best_of
""")
SGLANG = words("""
    bootstrap_host bootstrap_port bootstrap_room custom_labels custom_logit_processor custom_params data_parallel_rank
    disagg_prefill_dp_rank ebnf extra_key ignore_eos images_config input_ids json_schema lora_path max_dynamic_patch
    min_dynamic_patch min_tokens ngram_corpus_id no_stop_trim priority regex return_cached_tokens_details
    return_hidden_states return_meta_info return_prompt_token_ids return_routed_experts rid routed_dp_rank
    routed_experts_start_len separate_reasoning session_id session_params skip_special_tokens stop_regex stop_token_ids
    stream_reasoning task use_audio_in_video
""")
# Of /completion and /v1/chat/completions, in tools/server/README.md.
LLAMA_CPP = words("""
    cache_prompt chat_template_kwargs dry_allowed_length dry_base dry_multiplier dry_penalty_last_n
    dry_sequence_breakers dynatemp_exponent dynatemp_range frequency_penalty grammar id_slot ignore_eos json_schema
    logit_bias lora min_keep min_p mirostat mirostat_eta mirostat_tau n_cache_reuse n_cmpl n_indent n_keep n_predict
    n_probs parallel_tool_calls post_sampling_probs presence_penalty reasoning_control reasoning_effort
    reasoning_format repeat_last_n repeat_penalty response_fields return_progress return_tokens samplers seed
    sse_ping_interval stop stream t_max_predict_ms temperature timings_per_token top_k top_p typical_p xtc_probability
    xtc_threshold
""")
OLLAMA = words("keep_alive format options think")
TGI = words("""
    best_of temperature repetition_penalty frequency_penalty top_k top_p typical_p do_sample max_new_tokens
    return_full_text stop truncate watermark details decoder_input_details seed top_n_tokens grammar adapter_id
""")
TGI_CHAT = words("""
    model messages frequency_penalty logit_bias logprobs top_logprobs max_tokens n presence_penalty stop stream seed
    temperature top_p tools tool_prompt tool_choice response_format guideline stream_options
""")
# Of `generate` in transformers, which clients of Hugging Face's API send as parameters.
TRANSFORMERS = words("""
    do_sample temperature top_k top_p typical_p epsilon_cutoff eta_cutoff repetition_penalty no_repeat_ngram_size
    num_beams early_stopping length_penalty diversity_penalty max_new_tokens min_new_tokens num_return_sequences
    max_length max_time use_cache bad_words ignore_eos_token presence_penalty return_full_text
    clean_up_tokenization_spaces
""")
ONLY_CHATS = words("""
    add_generation_prompt chat_template chat_template_kwargs continue_final_message documents include_reasoning messages
    parallel_tool_calls reasoning_effort return_meta_info separate_reasoning stream_reasoning task tool_choice tools
    top_logprobs input_ids reasoning_control reasoning_format
""")
ONLY_COMPLETIONS = ["best_of"]
ENCODERS = {
    "/embed": (known_fields.EMBED, "inputs truncate truncation_direction prompt_name normalize dimensions"),
    "/embed_all": (known_fields.EMBED_ALL, "inputs truncate truncation_direction prompt_name"),
    "/rerank": (known_fields.RERANK, "query texts truncate truncation_direction raw_scores return_text"),
    "/predict": (known_fields.PREDICT, "inputs truncate truncation_direction raw_scores"),
    "/tokenize": (known_fields.TOKENIZE, "inputs add_special_tokens prompt_name"),
    "/decode": (known_fields.DECODE, "ids skip_special_tokens"),
    "vLLM's embeddings": (
        known_fields.EMBEDDINGS,
        """model input encoding_format dimensions user add_special_tokens priority request_id mm_processor_kwargs
        cache_salt embed_dtype endianness truncation_side additional_data messages chat_template chat_template_kwargs
        media_io_kwargs use_activation truncate_prompt_tokens""",
    ),
    "SGLang's embeddings": (
        known_fields.EMBEDDINGS,
        "input model encoding_format dimensions user rid priority lora_path embed_override_token_id embed_overrides",
    ),
}


def unknown(table: Table, names: Collection[str], prefix: str = "") -> list[str]:
    known = {*table.read, *table.refused, *table.harmless}
    return [name for name in names if prefix + name not in known]


def test_fields_of_openai() -> None:
    tables: dict[Any, Table] = {
        completion_create_params.CompletionCreateParamsStreaming: known_fields.COMPLETIONS,
        chat_create_params.CompletionCreateParamsStreaming: known_fields.CHAT,
        response_create_params.ResponseCreateParamsStreaming: known_fields.RESPONSES,
        embedding_create_params.EmbeddingCreateParams: known_fields.EMBEDDINGS,
        transcription_create_params.TranscriptionCreateParamsStreaming: known_fields.SPEECH,
    }
    for kind, table in tables.items():
        names = {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}
        names |= set(kind.__required_keys__ | kind.__optional_keys__)
        assert len(names) > 4
        missing = unknown(table, names)
        assert [name for name in missing if f"{name}[]" not in {*table.read, *table.refused}] == [], kind.__name__


@pytest.mark.parametrize(
    ("name", "fields"), {"vLLM": VLLM, "SGLang": SGLANG, "llama.cpp": LLAMA_CPP, "Ollama": OLLAMA}.items()
)
def test_fields_of_other_servers(name: str, fields: list[str]) -> None:
    assert unknown(known_fields.CHAT, set(fields) - set(ONLY_COMPLETIONS)) == []
    assert unknown(known_fields.COMPLETIONS, set(fields) - set(ONLY_CHATS)) == []


def test_fields_of_hugging_face() -> None:
    assert unknown(known_fields.GENERATE, [*TGI, *TRANSFORMERS], "parameters.") == []
    assert unknown(known_fields.CHAT, TGI_CHAT) == []
    assert unknown(known_fields.GENERATE, ["inputs", "parameters", "stream", "options", "model"]) == []


@pytest.mark.parametrize("name", ENCODERS)
def test_fields_of_encoders(name: str) -> None:
    table, names = ENCODERS[name]
    assert unknown(table, names.split()) == []


@pytest.mark.parametrize("name", [name for name, value in vars(known_fields).items() if isinstance(value, Table)])
def test_no_field_is_in_two_lists(name: str) -> None:
    table: Table = getattr(known_fields, name)
    assert not set(table.read) & set(table.refused)
    assert not set(table.read) & table.harmless
    assert not set(table.refused) & table.harmless
