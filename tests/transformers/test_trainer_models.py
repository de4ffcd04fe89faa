"""Trainer with models of tallow.transformers: a loop over PyTorch and transformers, and adapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.folders import Folders

import tallow as tl
import tallow.transformers as mine
from tallow.peft import LoraConfig, get_peft_model
from tallow.utils.torch_numbers import TorchNumbers

ROWS = [
    {"input_ids": ids.tolist(), "attention_mask": [1] * 8} for ids in np.random.default_rng(0).integers(5, 60, (12, 8))
]
ARGUMENTS: dict[str, Any] = {"use_cpu": True, "disable_tqdm": True, "learning_rate": 1e-3, "logging_steps": 1}
ARGUMENTS |= {"per_device_train_batch_size": 2, "num_train_epochs": 1, "save_strategy": "no"}


def trainer(folder: str, out: Path, model: Any, **options: Any) -> mine.Trainer:
    tokenizer = mine.AutoTokenizer.from_pretrained(folder)
    return mine.Trainer(
        model,
        mine.TrainingArguments(str(out), **(ARGUMENTS | options)),
        data_collator=mine.DataCollatorForLanguageModeling(tokenizer, mlm=False),
        train_dataset=ROWS,
    )


def test_language_models_equal_a_loop_over_pytorch(folders: Folders, tmp_path: Path) -> None:
    """With accumulation, the loss of a step is the mean over the labels of all its batches."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folder = folders("LlamaForCausalLM")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    schedule = transformers.get_scheduler("linear", optimizer, 0, 3)
    order, losses = TorchNumbers(42).randperm(12), []
    for start in range(0, 12, 4):
        ids = torch.tensor([ROWS[i]["input_ids"] for i in order[start : start + 4]])
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    run = trainer(folder, tmp_path, mine.AutoModelForCausalLM.from_pretrained(folder), gradient_accumulation_steps=2)
    run.train()
    np.testing.assert_allclose([each["loss"] for each in run.state.log_history if "loss" in each], losses, atol=1e-4)
    ours, theirs = run.model.state_dict(), model.state_dict()
    for name, each in ours.items():
        np.testing.assert_allclose(each.numpy(), theirs[name].numpy(), atol=2e-4, err_msg=name)
    run.save_model()
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    saved = again.state_dict()
    assert all((saved[name].numpy() == each.numpy()).all() for name, each in ours.items())


def test_adapters_train_and_resume(folders: Folders, tmp_path: Path) -> None:
    folder = folders("LlamaForCausalLM")

    def adapted() -> Any:
        tl.manual_seed(0)
        model = mine.AutoModelForCausalLM.from_pretrained(folder)
        return get_peft_model(model, LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"]))

    options = {"save_strategy": "steps", "save_steps": 3}
    whole = trainer(folder, tmp_path / "whole", adapted(), **options)
    before = {name: each.clone() for name, each in whole.model.state_dict().items()}
    whole.train()
    changed = {name for name, each in whole.model.state_dict().items() if (each != before[name]).any()}
    assert changed
    assert all("lora_" in name for name in changed)
    assert (tmp_path / "whole" / "checkpoint-3" / "adapter_model.safetensors").is_file()
    resumed = trainer(folder, tmp_path / "resumed", adapted(), **options)
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-3"))
    assert resumed.state.global_step == 6
    for name, each in whole.model.state_dict().items():
        np.testing.assert_allclose(resumed.model.state_dict()[name].numpy(), each.numpy(), atol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", ["BertForSequenceClassification", "GPT2LMHeadModel", "T5ForConditionalGeneration"])
def test_adapters_on_the_classes_of_models(name: str, folders: Folders) -> None:
    targets = {"B": ["query", "value"], "G": ["c_attn"], "T": ["q", "v"]}[name[0]]
    model = get_peft_model(getattr(mine, name).from_pretrained(folders(name)), LoraConfig(r=2, target_modules=targets))
    ids = tl.tensor([ROWS[0]["input_ids"]])
    labels = tl.tensor([1]) if name.startswith("Bert") else ids
    model(input_ids=ids, labels=labels).loss.backward()
    trained = [each for each in model.parameters() if each.requires_grad]
    assert trained
    assert all(each.grad is not None for each in trained)
