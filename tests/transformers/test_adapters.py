"""Adapters in the layers of a model by transformers' methods, and in files as peft writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.transformers.folders import Folders

import tallow
from tallow import transformers as tf
from tallow.errors import ArgumentError, CheckpointError, TallowWarning
from tallow.io import load
from tallow.peft import (
    AutoPeftModelForCausalLM,
    LoraConfig,
    PeftConfig,
    PeftModel,
    PeftType,
    get_peft_model,
    prepare_model_for_kbit_training,
)

IDS = np.arange(5, 17).reshape(2, 6)


def logits(model: tallow.nn.Module) -> np.ndarray:
    with tallow.no_grad():
        return model.eval()(tallow.tensor(IDS)).logits.numpy()


def changed(model: tallow.nn.Module) -> None:
    """Give the second matrices of adapters, which begin as zeros, other values."""
    for name, parameter in model.named_parameters():
        if "lora_B" in name and parameter.requires_grad:
            parameter.data = tallow.full_like(parameter, 0.1)


def test_an_adapter_computes_as_with_a_model_around(folders: Folders, tmp_path: Path) -> None:
    folder = folders("LlamaForCausalLM")
    model = tf.AutoModelForCausalLM.from_pretrained(folder)
    plain = logits(model)
    with pytest.raises(ArgumentError, match="no adapters"):
        model.set_adapter("default")
    assert not hasattr(model, "peft_config")
    model.add_adapter(LoraConfig(r=2, target_modules=["q_proj"]), adapter_name="one")
    changed(model)
    around = get_peft_model(tf.AutoModelForCausalLM.from_pretrained(folder), LoraConfig(r=2, target_modules=["q_proj"]))
    state = {f"base_model.model.{name}": each for name, each in model.get_adapter_state_dict().items()}
    tallow.peft.set_peft_model_state_dict(around, state)
    with_one = logits(model)
    np.testing.assert_allclose(with_one, logits(around), atol=1e-6)
    assert abs(with_one - plain).max() > 1e-3
    assert [name for name, each in model.named_parameters() if each.requires_grad] == [
        f"model.layers.{i}.self_attn.q_proj.lora_{part}.one.weight" for i in range(3) for part in "AB"
    ]

    model.save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]
    assert all(
        name.startswith("base_model.model.model.layers.") for name in load(tmp_path / "adapter_model.safetensors")
    )
    np.testing.assert_allclose(logits(tf.AutoModelForCausalLM.from_pretrained(tmp_path)), with_one, atol=1e-6)
    np.testing.assert_allclose(logits(tf.LlamaForCausalLM.from_pretrained(tmp_path)), with_one, atol=1e-6)
    again = PeftModel.from_pretrained(tf.AutoModelForCausalLM.from_pretrained(folder), tmp_path)
    np.testing.assert_allclose(logits(again), with_one, atol=1e-6)
    config = PeftConfig.from_pretrained(tmp_path)
    assert (config.r, config.peft_type, config.base_model_name_or_path) == (2, PeftType.LORA, folder)
    np.testing.assert_allclose(logits(AutoPeftModelForCausalLM.from_pretrained(tmp_path)), with_one, atol=1e-6)


def test_adapters_are_chosen_and_removed(folders: Folders, tmp_path: Path) -> None:
    model = tf.AutoModelForCausalLM.from_pretrained(folders("LlamaForCausalLM"))
    plain = logits(model)
    for name, module in (("one", "q_proj"), ("two", "v_proj")):
        model.add_adapter(LoraConfig(r=2, target_modules=[module]), name)
        changed(model)
    two = logits(model)
    model.set_adapter("one")
    one = logits(model)
    assert model.active_adapters() == ["one"]
    assert abs(one - two).max() > 1e-4
    model.set_adapter(["one", "two"])
    with pytest.raises(ArgumentError, match="active adapters"):  # as transformers: a folder holds one
        model.save_pretrained(tmp_path)
    model.set_adapter("one")
    with pytest.raises(ArgumentError, match="state_dict with an adapter"):
        model.save_pretrained(tmp_path, state_dict={})
    model.disable_adapters()
    np.testing.assert_allclose(logits(model), plain, atol=1e-6)
    model.enable_adapters()
    np.testing.assert_allclose(logits(model), one, atol=1e-6)
    model.delete_adapter("two")
    model.delete_adapter("one")
    assert not hasattr(model, "peft_config")
    np.testing.assert_allclose(logits(model), plain, atol=1e-6)
    with pytest.raises(ArgumentError, match="no folder"):
        model.load_adapter()


def test_an_adapter_of_itself_is_refused(folders: Folders, tmp_path: Path) -> None:
    model = tf.AutoModelForCausalLM.from_pretrained(folders("LlamaForCausalLM"))
    model.add_adapter(LoraConfig(r=2, target_modules=["q_proj"]))
    model.save_pretrained(tmp_path)
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": str(tmp_path)}))
    with pytest.raises(CheckpointError, match="is an adapter too"):
        tf.LlamaForCausalLM.from_pretrained(tmp_path)


def test_training_resumes_with_an_adapter(folders: Folders, tmp_path: Path) -> None:
    rows = [{"input_ids": [*row], "labels": [*row]} for row in np.arange(5, 29).reshape(4, 6).tolist()]

    def run(steps: int, resume: bool) -> tf.PreTrainedModel:
        tallow.manual_seed(0)
        model = tf.AutoModelForCausalLM.from_pretrained(folders("LlamaForCausalLM"))
        model.add_adapter(LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=True))
        arguments = tf.TrainingArguments(
            str(tmp_path / str(steps if not resume else 2)),
            max_steps=steps,
            save_steps=2,
            per_device_train_batch_size=2,
            lr_scheduler_type="constant",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = tf.Trainer(model, arguments, train_dataset=rows, data_collator=tf.default_data_collator)
        trainer.train(resume_from_checkpoint=resume)
        return model

    whole, _ = run(4, False), run(2, False)
    resumed = run(4, True)
    for name, value in whole.get_adapter_state_dict().items():
        np.testing.assert_allclose(value.numpy(), resumed.get_adapter_state_dict()[name].numpy(), atol=1e-6)


def test_weights_in_16_bits_are_cast_before_training(folders: Folders) -> None:
    model = tf.AutoModelForCausalLM.from_pretrained(folders("LlamaForCausalLM"), dtype="bfloat16")
    prepared = prepare_model_for_kbit_training(model)
    assert {parameter.dtype for parameter in prepared.parameters()} == {tallow.float32}
    assert not any(parameter.requires_grad for parameter in prepared.parameters())


@pytest.mark.filterwarnings("ignore:.*has no use for")
def test_bases_of_programs_load_files_with_and_without_a_head(folders: Folders) -> None:
    class Scored(tf.BertPreTrainedModel):
        def __init__(self, config: tf.PreTrainedConfig) -> None:
            super().__init__(config)
            self.bert = tf.BertModel(config)
            self.score = tallow.nn.Linear(config.hidden_size, 1)
            self.post_init()

        def forward(self, input_ids: tallow.Tensor) -> tallow.Tensor:
            return self.score(self.bert(input_ids).pooler_output)

    for name in ("BertModel", "BertForSequenceClassification"):
        folder = folders(name)
        with pytest.warns(TallowWarning, match=r"2 weights of Scored are not in the file.*score\.bias"):
            model = Scored.from_pretrained(folder)
        own = tf.BertModel.from_pretrained(folder)
        with tallow.no_grad():
            ours, theirs = (each(tallow.tensor(IDS)).pooler_output.numpy() for each in (model.bert, own))
        np.testing.assert_array_equal(ours, theirs)
        assert model.base_model is model.bert
        assert model.config.architectures == [name]  # of the file, as in transformers
