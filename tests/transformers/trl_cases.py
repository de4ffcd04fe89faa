"""Runs of trl's trainers on a small model, the same for trl and for tallow.

`python -m tests.transformers.trl_cases` writes what trl 1.16 logs to `trl_logs.json`. It needs trl, accelerate and
datasets.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LOGS = Path(__file__).with_name("trl_logs.json")
WORDS = ["the cat sat on the mat hello world one two three four five dogs bark loud"] * 3
CHAT = (
    "{% for m in messages %}{{ '<|start|>' + m['role'] + '\n' }}{% if m['role'] == 'assistant' %}{% generation %}"
    "{{ m['content'] + '<|end|>' }}{% endgeneration %}{{ '\n' }}{% else %}{{ m['content'] + '<|end|>\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\n' }}{% endif %}"
)
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"num_key_value_heads": 1, "max_position_embeddings": 128, "bos_token_id": 0, "eos_token_id": 1}
ARGUMENTS: dict[str, Any] = {"use_cpu": True, "bf16": False, "learning_rate": 1e-3, "per_device_train_batch_size": 2}
ARGUMENTS |= {"max_steps": 2, "logging_steps": 1, "report_to": "none", "save_strategy": "no", "disable_tqdm": True}

TEXTS = [{"text": text} for text in ("the cat sat", "hello world one two three four five", "two", "dogs bark loud")]
PAIRS = [("the cat", " sat on the mat", " fell"), ("one two", " three", " four five"), ("hello", " world", " dog")]
PAIRS += [("dogs", " bark loud", " meow")]
ANSWERS = [{"prompt": prompt, "completion": good} for prompt, good, _ in PAIRS]
PREFERRED = [{"prompt": prompt, "chosen": good, "rejected": bad} for prompt, good, bad in PAIRS]
WHOLE = [{"chosen": prompt + good, "rejected": prompt + bad} for prompt, good, bad in PAIRS]
PROMPTS = [{"prompt": prompt, "place": i} for i, (prompt, _, _) in enumerate(PAIRS)]


def said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


CHATS = [
    {"messages": [said("user", prompt), said("assistant", good), said("user", bad), said("assistant", prompt)]}
    for prompt, good, bad in PAIRS
]
FROM_VALUE = [
    {"conversations": [{"from": each["role"], "value": each["content"]} for each in chat["messages"]]} for chat in CHATS
]
CHAT_ANSWERS = [
    {"prompt": [said("user", prompt)], "completion": [said("assistant", good)]} for prompt, good, _ in PAIRS
]
CHAT_PREFERRED = [
    {"prompt": [said("user", p)], "chosen": [said("assistant", c)], "rejected": [said("assistant", r)]}
    for p, c, r in PAIRS
]
CHAT_PROMPTS = [{"prompt": [said("user", each["prompt"])], "place": each["place"]} for each in PROMPTS]


def by_place(completion_ids: list[list[int]], place: list[int], **columns: Any) -> list[float]:
    return [
        (i * 7) % 5 - 0.3 * p + 0.01 * len(ids) for i, (p, ids) in enumerate(zip(place, completion_ids, strict=True))
    ]


def sometimes(completions: list[Any], **columns: Any) -> list[float | None]:
    return [None if i % 3 == 0 else float(i % 4) for i in range(len(completions))]


class Case(NamedTuple):
    """A run: the beginning of the trainer's name, samples, and arguments of its config and of the trainer."""

    kind: str
    samples: list[Any]
    arguments: dict[str, Any]
    extra: dict[str, Any]


def sft(samples: list[Any], **arguments: Any) -> Case:
    return Case("SFT", samples, arguments, {})


def dpo(samples: list[Any] = PREFERRED, **arguments: Any) -> Case:
    return Case("DPO", samples, arguments, {})


def grpo(samples: list[Any] = PROMPTS, rewards: Any = by_place, **arguments: Any) -> Case:
    sizes = {"num_generations": 4, "per_device_train_batch_size": 4, "max_completion_length": 6}
    return Case("GRPO", samples, {**sizes, **arguments}, {"reward_funcs": rewards})


SMOOTH = {"label_smoothing": 0.1}
CASES: dict[str, Case] = {
    "texts": sft(TEXTS),
    "completions": sft(ANSWERS),
    "prompts too": sft(ANSWERS, completion_only_loss=False),
    "chats": sft(CHATS),
    "answers in chats": sft(CHATS, assistant_only_loss=True),
    "completions of chats": sft(CHAT_ANSWERS),
    "from and value": sft(FROM_VALUE),
    "short rows": sft(TEXTS, max_length=6),
    "accumulated": sft(ANSWERS, gradient_accumulation_steps=2),
    "dft": sft(ANSWERS, loss_type="dft"),
    "packed": sft(ANSWERS, packing=True, max_length=24),
    "packed and split": sft(TEXTS, packing=True, max_length=7, packing_strategy="bfd_split"),
    "wrapped": sft(TEXTS, packing=True, max_length=7, packing_strategy="wrapped"),
    "without padding": sft(ANSWERS, padding_free=True, max_length=None),
    "evaluated without padding": sft(
        TEXTS, padding_free=True, max_length=None, eval_strategy="steps", eval_steps=1, per_device_eval_batch_size=2
    ),
    "evaluated": sft(ANSWERS, eval_strategy="steps", eval_steps=1),
    **{f"dpo {name}": dpo(loss_type=name) for name in ("sigmoid", "hinge", "ipo", "nca_pair", "bco_pair", "sppo_hard")},
    **{f"dpo {name}": dpo(loss_type=name) for name in ("apo_zero", "apo_down", "discopop", "sft", "sigmoid_norm")},
    **{f"dpo {name}": dpo(loss_type=name, **SMOOTH) for name in ("exo_pair", "robust", "aot", "aot_unpaired")},
    **{f"dpo {name}": dpo(f_divergence_type=name) for name in ("forward_kl", "js_divergence", "alpha_divergence")},
    "dpo of chats": dpo(CHAT_PREFERRED),
    "dpo without prompts": dpo(WHOLE),
    "dpo computed before": dpo(precompute_ref_log_probs=True),
    "dpo by lengths": dpo(ld_alpha=0.3),
    "dpo weighed": dpo(use_weighting=True),
    "dpo of two losses": dpo(loss_type=["sigmoid", "sft"], loss_weights=[0.7, 1.3]),
    "dpo that moves": dpo(sync_ref_model=True, ref_model_sync_steps=1),
    "dpo of short rows": dpo(max_length=7),
    "rewards": Case("Reward", PREFERRED, {}, {}),
    "rewards with margins": Case("Reward", [{**each, "margin": 0.5} for each in WHOLE], {}, {}),
    "rewards at 0": Case("Reward", CHAT_PREFERRED, {"center_rewards_coefficient": 0.1}, {}),
    "orpo": Case("ORPO", PREFERRED, {}, {}),
    "orpo of chats": Case("ORPO", CHAT_PREFERRED, {}, {}),
    **{f"grpo {name}": grpo(loss_type=name) for name in ("dapo", "grpo", "bnpo", "dr_grpo", "cispo", "sapo")},
    "grpo luspo": grpo(loss_type="luspo", importance_sampling_level="sequence"),
    "grpo of chats": grpo(CHAT_PROMPTS),
    "grpo with reference": grpo(beta=0.1),
    "grpo of two rewards": grpo(rewards=[by_place, sometimes], reward_weights=[0.5, 2.0]),
    "grpo twice": grpo(num_iterations=2, importance_sampling_level="sequence", epsilon=1e-4, epsilon_high=2e-4),
    "grpo twice with a limit": grpo(num_iterations=2, delta=1.0001),
    "grpo by batch": grpo(scale_rewards="batch"),
    "grpo of whole answers": grpo(mask_truncated_completions=True, scale_rewards=False),
    "grpo hot": grpo(temperature=0.7, top_entropy_quantile=0.4, entropy_coef=0.1),
    "grpo evaluated": grpo(eval_strategy="steps", eval_steps=1, per_device_eval_batch_size=4),
}


def tokenizer(tf: Any) -> Any:
    """Return a tokenizer of bytes and some pairs, with a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<pad>", "<|start|>", "<|end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        WORDS, trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    )
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    found = tf.PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=128, **names)
    found.chat_template = CHAT
    return found


def model(tf: Any, kind: str, as_tensor: Callable[[Any], Any], size: int, folder: str) -> Any:
    """Return a Llama from a folder, with the same weights for each library, those of NumPy's generator."""
    extra = {"num_labels": 1, "pad_token_id": 2} if kind == "Reward" else {"pad_token_id": 2}
    config = tf.LlamaConfig(vocab_size=size, **SIZES, **extra)
    kept = tf.LlamaForSequenceClassification if kind == "Reward" else tf.LlamaForCausalLM
    made = kept(config)
    numbers = np.random.default_rng(0)
    weights = {name: tuple(value.shape) for name, value in made.state_dict().items()}
    made.load_state_dict(
        {
            name: as_tensor((numbers.normal(0, 0.2, shape) + ("norm" in name)).astype(np.float32))
            for name, shape in sorted(weights.items())
        }
    )
    made.save_pretrained(folder)
    return kept.from_pretrained(folder)


def writer(as_tensor: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a `generate` whose answers are those of NumPy's generator, some without an end."""
    numbers = np.random.default_rng(5)

    def generate(*args: Any, input_ids: Any, **options: Any) -> Any:
        rows = []
        for prompt in input_ids.tolist():
            length = int(numbers.integers(1, 7))
            ids = numbers.integers(5, 250, length).tolist() + ([1] if length < 6 else [])
            rows.append(prompt + (ids + [2] * 6)[:6])
        return as_tensor(np.asarray(rows))

    return generate


def run(case: Case, trl: Any, tf: Any, as_tensor: Callable[[Any], Any], as_dataset: Any, out: str) -> list[Any]:
    """Return what a trainer logs, without what depends on the clock."""
    tokens = tokenizer(tf)
    given = model(tf, case.kind, as_tensor, len(tokens), f"{out}/model")
    if case.kind == "GRPO":
        given.generate = writer(as_tensor)
    config = getattr(trl, f"{case.kind}Config")(out, **{**ARGUMENTS, **case.arguments})
    extra = dict(case.extra)
    if "eval_strategy" in case.arguments:
        extra["eval_dataset"] = as_dataset([dict(each) for each in case.samples[:3]])
    samples = as_dataset([dict(each) for each in case.samples])
    trainer = getattr(trl, f"{case.kind}Trainer")(
        model=given, args=config, train_dataset=samples, processing_class=tokens, **extra
    )
    trainer.train()
    return [
        {name: value for name, value in each.items() if not any(part in name for part in ("time", "second", "flos"))}
        for each in trainer.state.log_history
    ]


def main() -> None:
    """Write the logs of trl."""
    import torch
    import transformers
    import trl
    from datasets import Dataset
    from trl.experimental import orpo

    trl.ORPOConfig, trl.ORPOTrainer = orpo.ORPOConfig, orpo.ORPOTrainer
    logs = {}
    for name, case in CASES.items():
        found = run(case, trl, transformers, torch.tensor, Dataset.from_list, "/tmp/trl")
        logs[name] = [{key: float(f"{value:.5g}") for key, value in each.items()} for each in found]
    LOGS.write_text(
        "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in logs.items()) + "\n}\n"
    )


if __name__ == "__main__":
    main()
