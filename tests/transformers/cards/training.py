"""Cards that train, save and load again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.transformers.cards.card import card

WITHOUT_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
TEXTS = [f"A {mood} {animal} sleeps" for mood in ("lazy", "quick") for animal in ("dog", "cat", "fox", "sun", "dog's")]
QUIET = {"report_to": "none", "save_strategy": "no", "use_cpu": True, "disable_tqdm": True}


@card("DistilBertForSequenceClassification", num_labels=2)
def distilbert_saved_and_loaded_again(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForSequenceClassification.from_pretrained(name)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)
        names = sorted(path.name for path in Path(folder).iterdir() if path.suffix in (".json", ".safetensors"))
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        model = tf.AutoModelForSequenceClassification.from_pretrained(folder)
    return [names, model(**tokenizer(TEXTS[0], return_tensors="pt")).logits, model.num_parameters()]


@card("BertForSequenceClassification", num_labels=2, **WITHOUT_DROPOUT)
def bert_trained_by_hand(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForSequenceClassification.from_pretrained(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")
    batch["labels"] = torch.tensor([0] * 5 + [1] * 5)
    model.train()
    losses = []
    for _ in range(3):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@card("LlamaForCausalLM")
def llama_trained_with_a_schedule(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForCausalLM.from_pretrained(name)
    collator = tf.DataCollatorForLanguageModeling(tokenizer, mlm=False)
    loader = torch.utils.data.DataLoader([tokenizer(text) for text in TEXTS], batch_size=5, collate_fn=collator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lr_scheduler = tf.get_scheduler("linear", optimizer=optimizer, num_warmup_steps=1, num_training_steps=4)
    losses = []
    for _ in range(2):
        for batch in loader:
            outputs = model(**{key: value.to(model.device) for key, value in batch.items()})
            outputs.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            losses.append(outputs.loss.item())
    return [losses, lr_scheduler.get_last_lr()]


@card("BertForSequenceClassification", prints=False, num_labels=2, **WITHOUT_DROPOUT)
def bert_trained_by_trainer(tf: Any, torch: Any, name: str) -> Any:
    pytest.importorskip("accelerate", reason="transformers' Trainer needs it")
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForSequenceClassification.from_pretrained(name, num_labels=2)
    rows = [{**tokenizer(text, truncation=True), "labels": i % 2} for i, text in enumerate(TEXTS)]
    with tempfile.TemporaryDirectory() as folder:
        args = tf.TrainingArguments(
            output_dir=folder, num_train_epochs=2, per_device_train_batch_size=4, logging_steps=1, **QUIET
        )
        trainer = tf.Trainer(
            model=model,
            args=args,
            train_dataset=rows,
            eval_dataset=rows[:4],
            data_collator=tf.DataCollatorWithPadding(tokenizer),
            compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
        )
        trainer.train()
        evaluated = trainer.evaluate()
        predicted = trainer.predict(rows)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return [losses, evaluated["eval_loss"], evaluated["eval_accuracy"], predicted.predictions]
