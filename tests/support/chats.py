"""Chat templates in common formats, and a tokenizer that reads their output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CHATML = """\
{%- if messages[0]['role'] != 'system' -%}
{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif -%}
{%- for message in messages -%}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>' + '\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\\n' }}
{%- endif -%}
"""

INSTRUCTIONS = """\
{% if messages[0].role == 'system' %}
    {% set system, turns = messages[0].content, messages[1:] %}
{% else %}
    {% set turns = messages %}
{% endif %}
{{- bos_token }}
{%- for turn in turns %}
    {%- if (turn.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('user and assistant take turns, and the user begins') }}
    {%- endif %}
    {%- if turn.role == 'user' %}
        {%- if loop.first and system is defined %}
            {{- '[INST] <<SYS>>\\n' ~ system ~ '\\n<</SYS>>\\n\\n' ~ turn.content.strip() ~ ' [/INST]' }}
        {%- else %}
            {{- '[INST] ' ~ turn.content.strip() ~ ' [/INST]' }}
        {%- endif %}
    {%- else %}
        {{- ' ' ~ turn.content.strip() ~ ' ' ~ eos_token }}
    {%- endif %}
{%- endfor %}
"""

HEADERS = """\
{{- bos_token }}
{%- if date_string is not defined %}
    {%- set date_string = strftime_now('%d %b %Y') %}
{%- endif %}
{%- macro header(role) %}<|start_header_id|>{{ role }}<|end_header_id|>

{% endmacro %}
{%- set state = namespace(seen=0) %}
{{- header('system') ~ 'Today is ' ~ date_string }}
{%- if tools is not none %}
    {{- '\\nTools:\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson(indent=4) }}
        {{- '\\n\\n' }}
    {%- endfor %}
{%- endif %}
{{- '<|eot_id|>' }}
{%- for message in messages if message.content %}
    {%- set state.seen = state.seen + 1 %}
    {%- if state.seen > 20 %}{% break %}{% endif %}
    {{- header(message['role']) ~ message.content | trim ~ '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- header('assistant') }}
{%- endif %}
"""

TURNS = """\
{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('there is no system role') }}{% endif %}
{% for message in messages %}
{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}
{{ '<start_of_turn>' + role + '\\n' }}
{% generation %}{{ message['content'] | trim + '<end_of_turn>\\n' }}{% endgeneration %}
{% endfor %}
{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}
"""

TEMPLATES = {"chatml": CHATML, "instructions": INSTRUCTIONS, "headers": HEADERS, "turns": TURNS}

SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
SPECIAL += ["<start_of_turn>", "<end_of_turn>"]


def save_tokenizer(folder: Path, chat_template: Any = CHATML, vocab_size: int = 300, **tokens: str) -> None:
    """Train a byte-level tokenizer and save it as transformers does; `tokens` are more, as pad_token."""
    import tokenizers
    import transformers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIAL,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["once upon a time there was a cat, and the cat sat on the mat"] * 3, trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", **tokens)
    fast.chat_template = chat_template
    fast.save_pretrained(folder)
