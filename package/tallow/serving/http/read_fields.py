"""The fields that each endpoint reads, and what they do: for the OpenAPI document and docs/serving.md.

Nothing is decided by these lists: what has an effect is what a reader asks for. A test compares both.
"""

from __future__ import annotations

MODEL = {"model": "the name of the model; by default the first of its kind"}

_SAMPLING = {
    "temperature": "0 takes the likeliest token; 0 to 2",
    "top_p": "keep the likeliest tokens up to this probability",
    "top_k": "keep so many of the likeliest tokens; 0 and -1 keep all",
    "min_p": "keep tokens at least so likely, relative to the likeliest",
    "typical_p": "keep the tokens of typical information up to this probability",
    "epsilon_cutoff": "keep tokens at least so likely",
    "eta_cutoff": "the same, less strict where the entropy is high",
    "top_n_sigma": "keep the tokens whose logits are at most so many deviations below the largest; 0 and -1 keep all",
    "xtc_probability": "leave out the likeliest tokens with this probability",
    "xtc_threshold": "of the tokens of at least this probability all but the least likely; 0.1 by default",
    "mirostat": "2 keeps the surprise of tokens near `mirostat_tau`; 0 is off",
    "mirostat_tau": "in bits; 5 by default",
    "mirostat_eta": "how fast it gets there; 0.1 by default",
    "dry_multiplier": "a penalty for tokens that continue a repetition; 0 is off",
    "dry_base": "it grows by this factor with each token of the repetition; 1.75 by default",
    "dry_allowed_length": "the length of repetitions from which on it counts; 2 by default",
    "dry_penalty_last_n": "look for repetitions in so many tokens; -1 for all, by default",
    "dry_sequence_breakers": "strings that no repetition reaches over; by default line breaks, :, quotes and *",
    "presence_penalty": "subtracted from the logits of tokens that were generated",
    "frequency_penalty": "the same, for each time",
    "repetition_penalty": "divides the logits of tokens that occurred, also in the prompt",
    "repeat_penalty": "the same, for the last `repeat_last_n` tokens",
    "repeat_last_n": "64 by default; -1 for all, 0 for none",
    "no_repeat_ngram_size": "no sequence of so many tokens occurs twice",
    "logit_bias": "added to the logits of tokens: {id: bias} or [[id, bias or false], ...]",
    "allowed_token_ids": "the only tokens that may come",
    "bad_words": "words that do not come",
    "seed": "the same text for the same request, but for -1; the second of `n` choices has seed + 1",
}
_ENDS = {
    "stop": "strings that end the text",
    "stop_token_ids": "tokens that end the text",
    "include_stop_str_in_output": "the string or token that ends the text is part of it",
    "no_stop_trim": "the same",
    "min_tokens": "no end before so many tokens",
    "min_new_tokens": "the same",
    "ignore_eos": "the model's own end does not come",
    "ignore_eos_token": "the same",
    "skip_special_tokens": "false shows special tokens in the text",
}
_GRAMMARS = {
    "response_format": "`text`, `json_object` or `json_schema`; with a `value` also `json` and `regex`",
    "structured_outputs": "an object with `json`, `regex`, `choice`, `grammar` or `json_object`",
    "guided_json": "a JSON schema",
    "guided_regex": "a regular expression",
    "guided_choice": "texts, of which the answer is one",
    "guided_grammar": "a grammar in the form of llama.cpp (GBNF)",
    "guided_json_object": "true for any JSON object",
    "json_schema": "a JSON schema",
    "regex": "a regular expression",
    "ebnf": "a grammar in the form of llama.cpp",
    "grammar": "a grammar in the form of llama.cpp",
}
_PROMPTS = {
    "truncate_prompt_tokens": "read the last tokens of the prompt only; -1 for as many as fit",
    "truncation_side": '"left", or "right" to read the first ones',
    "add_special_tokens": "what the tokenizer adds to the prompt; true by default, false in chats",
}
_SALTS = {
    "cache_salt": "only prompts with the same one share keys and values; at most 1024 characters",
    "extra_key": "the same",
}
_STREAMS = {
    "stream": "send the text as it comes",
    "stream_options": "`include_usage` at the end, `continuous_usage_stats` with each part",
    "priority": "waiting requests with a smaller number begin first; 0 unless the server has `--priority`",
}
_TEXTS = {
    **MODEL,
    **_SAMPLING,
    **_ENDS,
    **_GRAMMARS,
    **_PROMPTS,
    **_SALTS,
    **_STREAMS,
    "n_predict": "as `max_tokens`; -1 for no limit",
}
_CHOICES = {
    "n": "texts for each prompt",
    "max_tokens": "the most tokens of a text; 0 generates none",
    "max_completion_tokens": "the same",
    "prompt_logprobs": "log-probabilities of the prompt's tokens and so many of the likeliest, in vLLM's form",
}
_TEMPLATES = {
    "chat_template_kwargs": "variables of the chat template, such as `enable_thinking`",
    "reasoning_effort": "a variable of the chat template; sets `enable_thinking` and `thinking` too",
    "documents": "texts that the chat template may quote",
    "add_generation_prompt": "false: the prompt does not end with the beginning of an answer",
    "continue_final_message": "the answer continues the last message",
}

COMPLETIONS = {
    "prompt": "a text, ids of tokens, or a list of either",
    **_TEXTS,
    **_CHOICES,
    "logprobs": "log-probabilities, with so many of the likeliest tokens",
    "echo": "the text begins with the prompt; with `logprobs` also the lists",
}
CHAT = {
    "messages": "the conversation",
    **_TEXTS,
    **_CHOICES,
    **_TEMPLATES,
    "logprobs": "true for log-probabilities",
    "top_logprobs": "with so many of the likeliest tokens",
    "tools": "functions that the model may call",
    "tool_choice": "`none`, `auto`, `required`, or a function",
    "parallel_tool_calls": "false: one call at most",
}
RESPONSES = {
    "input": "a text, or messages",
    "instructions": "a system message before them",
    "max_output_tokens": "the most tokens of the text",
    "reasoning": "`effort`, a variable of the chat template",
    "text": "`format`: `text`, `json_object` or `json_schema`",
    "metadata": "repeated in the answer",
    **_TEXTS,
    **_TEMPLATES,
}
PARAMETERS = {
    **_SAMPLING,
    **_ENDS,
    **_SALTS,
    "max_new_tokens": "the most tokens of the text",
    "do_sample": "draw tokens at random; so do temperature, top_k, top_p and typical_p",
    "truncate": "read so many of the last tokens of the prompt",
    "return_full_text": "the text begins with the prompt",
    "details": "tokens, and why the text ended",
    "top_n_tokens": "with so many of the likeliest tokens",
    "decoder_input_details": "the prompt's tokens in the details",
    "grammar": '{"type": "json", "json_schema" or "regex", "value": ...}',
}
GENERATE = {
    "inputs": "the prompt",
    **MODEL,
    "parameters": "an object",
    **{f"parameters.{name}": text for name, text in PARAMETERS.items()},
}
EMBEDDINGS = {
    "input": "a text, ids of the model's tokenizer, or a list of either",
    **MODEL,
    "encoding_format": "`float` or `base64`",
    "dimensions": "shortens and normalizes the vectors",
}
_ENCODING = {
    "truncate": "longer texts; an error otherwise",
    "truncation_direction": '"Right"',
    "prompt_name": "which of the model's prompts to write before each text",
}
EMBED = {
    "inputs": "a text, ids of the model's tokenizer, or a list of either",
    **MODEL,
    "normalize": "false keeps the length of vectors",
    "dimensions": "shortens the vectors",
    **_ENCODING,
}
EMBED_ALL = {name: text for name, text in EMBED.items() if name not in ("normalize", "dimensions")}
SIMILARITY = {
    "inputs": "`source_sentence` and `sentences`",
    **MODEL,
    "parameters": "an object",
    **{f"parameters.{name}": text for name, text in _ENCODING.items()},
}
RERANK = {
    "query": "a text",
    "texts": "the texts to order",
    **MODEL,
    "raw_scores": "logits, not probabilities",
    "return_text": "the texts in the answer",
    **_ENCODING,
}
PREDICT = {"inputs": "a text, a pair, or a list", **MODEL, "raw_scores": RERANK["raw_scores"], **_ENCODING}
TOKENIZE = {"inputs": "a text or a list", **MODEL, "add_special_tokens": "true by default"}
DECODE = {"ids": "ids of tokens, or lists of them", **MODEL, "skip_special_tokens": "true by default"}
SPOKEN = {
    "input": "the text, of at most 4096 letters",
    **MODEL,
    "voice": "`default`, or the number of the voice of a model with several",
    "response_format": "`wav`, `pcm` (16-bit samples at the model's rate) or `flac`",
    "speed": "0.25 to 4; 1 by default",
}
SPEECH = {
    "file": "the sound",
    **MODEL,
    "language": "of the speech",
    "prompt": "what was said before",
    "response_format": "`json`, `text`, `verbose_json`, `srt` or `vtt`",
    "temperature": "0 to 1",
    "timestamp_granularities[]": "`word` for the time of each word",
    "stream": "send the text as it is heard",
}
