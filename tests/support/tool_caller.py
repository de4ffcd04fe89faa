"""A model that calls a tool once: its tokens follow each other by a table.

Its chat template ends the prompt with the token that starts a call if there are tools, or with the one that starts an
answer if there are none or the last message is a result.
"""

from __future__ import annotations

from pathlib import Path

from support.chats import save_tokenizer
from tallow.generation.tools import CLOSE, OPEN

TEMPLATE = """\
{%- if tools %}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{%- for call in message.tool_calls or [] %}
    {{- '<tool_call>' ~ call.function | tojson ~ '</tool_call>' }}
{%- endfor %}
{{- message.content }}<|im_end|>
{%- endfor %}
{{- '<|eot_id|>' if tools and messages[-1].role != 'tool' else '<|im_start|>' }}
"""
CALL = {
    "name": "calculator",
    "arguments": '{"expression": "7*6"}',
}  # what it writes as a call; the grammar adds the rest
ANSWER = "Ok."
CHAINS = (
    ["<|eot_id|>", OPEN, "{", '"', "7", "*", "6", '"'],
    [">", "</s>"],
    [CLOSE, "</s>"],
    ["<|im_start|>", *ANSWER, "</s>"],
)


def save_tool_caller(folder: Path) -> None:
    """Save the model and its tokenizer."""
    import torch
    import transformers

    save_tokenizer(folder, TEMPLATE)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([OPEN, CLOSE])  # as in Qwen's vocabulary: tokens, but not special ones
    tokenizer.save_pretrained(folder)
    width = len(tokenizer)
    config = transformers.LlamaConfig(
        vocab_size=width,
        hidden_size=width,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        head_dim=16,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.zero_()
        model.model.embed_tokens.weight.fill_diagonal_(1)
        for chain in CHAINS:
            ids = tokenizer.convert_tokens_to_ids(list(chain))
            model.lm_head.weight[ids[1:], ids[:-1]] = 1
    model.save_pretrained(folder)
