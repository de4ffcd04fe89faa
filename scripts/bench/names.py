"""transformers' names over tallow: what they add to the work, and the tokenizer's call beside transformers.

Claims, natively, with one thread: `generate` of a model within 3% of tallow's own, a step of the Trainer within 5% of a
loop by hand, and a tokenizer's call for 1,000 texts at 0.9 times transformers' speed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench import turns
from bench.report import Row

NAME = "names"
TOKENS, STEPS, BATCH, TEXTS = 64, 10, 16, 1000
# Row -> what is measured, and what it is compared with: the library to import, and the function in this file.
PAIRS = {
    "generate": (("tallow", "generated"), ("tallow", "generated_by_tallow")),
    "a step of the Trainer": (("tallow", "trained"), ("tallow", "trained_by_hand")),
    "a tokenizer's call": (("tallow", "encoded"), ("transformers", "encoded_by_transformers")),
}
SIZES = {"hidden_size": 288, "intermediate_size": 768, "num_hidden_layers": 6, "num_attention_heads": 6}
SIZES |= {"num_key_value_heads": 6, "vocab_size": 32000, "max_position_embeddings": 256}


def measure(options: dict[str, Any]) -> dict[str, Any]:
    rows: list[Row] = []
    for name, pair in PAIRS.items():
        with ExitStack() as stack:
            ours, other = turns.in_turn(_workers(stack, pair), 1, options["repeats"])
        row: Row = {"work": name, "ms": ours.best_s * 1e3, "compared with, ms": other.best_s * 1e3}
        rows.append(row | {"speed": other.best_s / ours.best_s})
    work = f"{TOKENS} tokens of stories15M's shape; {STEPS} steps of a BERT of four layers; {TEXTS} texts of 40 words"
    notes = [f"milliseconds of processor time, one thread; the best turn. {work}", turns.load_note()]
    return {"rows": rows, "notes": notes}


def _workers(stack: ExitStack, pair: Sequence[tuple[str, str]]) -> list[turns.Worker]:
    """Return a worker of each kind; of one library both work in one process, on the same memory."""
    (library, one), (other, two) = pair
    if library != other:
        return [stack.enter_context(turns.worker(each, 1, f"bench.names.{name}")) for each, name in pair]
    take = stack.enter_context(turns.worker(library, 1, "bench.names.both", one, two))
    return [lambda times, name=name: take(times, name) for name in (one, two)]  # type: ignore[misc]


# ------------------------------------------------------------------------------------------------------ in the workers


def both(*names: str) -> Callable[[str], Any]:
    """Return the work of several functions, which a case names."""
    works = {name: globals()[name]() for name in names}
    return lambda name: works[name]()


@cache
def _llama() -> Any:
    import tallow as tl
    from tallow.transformers import LlamaConfig, LlamaForCausalLM

    tl.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES, bos_token_id=1, eos_token_id=None, pad_token_id=0)).eval()


def generated() -> Callable[[], Any]:
    import tallow as tl

    model = _llama()
    return lambda: model.generate(tl.tensor([[1]]), max_new_tokens=TOKENS, do_sample=False)


def generated_by_tallow() -> Callable[[], Any]:
    from tallow.generation import generate as generate_tokens
    from tallow.generation import greedy

    model = _llama()
    return lambda: [*generate_tokens(model, [1], max_tokens=TOKENS, sample=greedy, stop_ids=set())]


def _classifier() -> Any:
    import tallow as tl
    from tallow.transformers import BertConfig, BertForSequenceClassification

    tl.manual_seed(0)
    sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    return BertForSequenceClassification(BertConfig(vocab_size=2000, **sizes))


@cache
def _samples() -> list[dict[str, Any]]:
    rows = np.random.default_rng(0).integers(5, 2000, (STEPS * BATCH, 32))
    return [{"input_ids": row.tolist(), "labels": int(row[0] % 2)} for row in rows]


def trained() -> Callable[[], Any]:
    from tallow.transformers import PrinterCallback, Trainer, TrainingArguments

    model, folder = _classifier(), tempfile.mkdtemp()
    given: dict[str, Any] = {"save_strategy": "no", "report_to": "none", "logging_strategy": "no", "disable_tqdm": True}
    arguments = TrainingArguments(folder, per_device_train_batch_size=BATCH, max_steps=STEPS, **given)

    def work() -> None:
        trainer = Trainer(model, arguments, train_dataset=_samples())
        trainer.remove_callback(PrinterCallback)  # standard output is the worker's
        trainer.train()

    return work


def trained_by_hand() -> Callable[[], Any]:
    import tallow as tl
    from tallow.data import DataLoader
    from tallow.transformers import default_data_collator

    model = _classifier()

    def work() -> None:
        optimizer = tl.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.0)
        schedule = tl.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / STEPS)
        model.train()
        for batch in DataLoader(_samples(), batch_size=BATCH, shuffle=True, collate_fn=default_data_collator):
            model(**batch).loss.backward()
            tl.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()

    return work


@cache
def _tokenizer_folder() -> str:
    """Write a WordPiece tokenizer of random words."""
    words = _words()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(code) for code in range(97, 123)]
    vocabulary = [*names, *letters, *(f"##{letter}" for letter in letters), *words]
    folder = Path(tempfile.mkdtemp())
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}), encoding="utf-8")
    return str(folder)


@cache
def _words() -> list[str]:
    rng = np.random.default_rng(0)
    return sorted({"".join(chr(97 + c) for c in rng.integers(0, 26, rng.integers(2, 8))) for _ in range(5000)})


@cache
def _texts() -> list[str]:
    rng, words = np.random.default_rng(1), _words()
    return [" ".join(words[i] for i in rng.integers(0, len(words), 40)) for _ in range(TEXTS)]


def encoded() -> Callable[[], Any]:
    from tallow.transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(_tokenizer_folder())
    return lambda: tokenizer(_texts(), padding=True, truncation=True, max_length=64)


def encoded_by_transformers() -> Callable[[], Any]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(_tokenizer_folder())
    return lambda: tokenizer(_texts(), padding=True, truncation=True, max_length=64)
