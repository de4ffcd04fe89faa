"""Training a language model: PyTorch's steps from equal weights, and a folder that transformers loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import tallow as tl
from tallow.cli import main
from tallow.models import AutoModel
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.training import LanguageModelSettings, LanguageModelTraining, learning_rate_factor
from tallow.training.processes import Processes
from tallow.training.texts import Rows
from tallow.training.vocabulary import write_byte_vocabulary

STEPS = 6
SIZES: dict[str, Any] = {
    "vocab_size": 19,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 8,
}


def test_steps_are_pytorchs(tmp_path: Path) -> None:
    tl.manual_seed(0)
    model = Llama(LlamaConfig(**SIZES))
    reference: Any = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, rms_norm_eps=1e-6))
    reference.load_state_dict({name: torch.from_numpy(each.numpy()) for name, each in model.state_dict().items()})
    rows = Rows(np.random.default_rng(0).integers(0, 19, 120).astype(np.int32), context=8, seed=1)
    settings = LanguageModelSettings(
        steps=STEPS, batch_size=4, warmup_steps=2, learning_rate=0.02, clip_norm=0.5, context=8, model={}, texts=""
    )
    losses = [loss for (loss,) in LanguageModelTraining(settings, model, rows, tmp_path / "run", Processes()).run()]

    matrices = [each for name, each in reference.named_parameters() if each.ndim > 1 and "embed" not in name]
    others = [each for name, each in reference.named_parameters() if each.ndim == 1 or "embed" in name]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.02, betas=(0.9, 0.98))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_factor(step, settings))
    expected = []
    for step in range(STEPS):
        tokens = torch.from_numpy(rows.at(np.arange(4 * step, 4 * step + 4)))
        loss = reference(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        expected.append(loss.item())
    # The last token of a row is a target, not an input; transformers reads it too, without predicting its successor.
    assert losses == pytest.approx(expected, rel=1e-4)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("vocabulary", [[], ["--vocab", "300"]], ids=["bytes", "pieces"])
def test_transformers_loads_the_folder(vocabulary: list[str], tmp_path: Path) -> None:
    text = "Zoë saw a 🐈 and said: two  spaces\n" * 20
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    options = ["--steps", "2", "--width", "16", "--layers", "1", "--heads", "2", "--context", "16", "--batch-size", "2"]
    assert main(["train", str(tmp_path / "text.txt"), "--out", str(out), *options, *vocabulary]) == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    model = Llama.from_pretrained(out)
    ids = tokenizer(text[:30], add_special_tokens=False).input_ids
    assert ids == model.tokenizer.encode(text[:30])
    assert tokenizer.decode(ids) == text[:30]
    if not vocabulary:
        assert ids == list(text[:30].encode())
    assert tokenizer.eos_token_id == tokenizer.bos_token_id == model.config.bos_token_id
    reference = transformers.AutoModelForCausalLM.from_pretrained(out)
    with torch.no_grad(), tl.no_grad():
        expected = reference(torch.tensor([ids[:16]])).logits.numpy()
        np.testing.assert_allclose(model(tl.tensor([ids[:16]])).numpy(), expected, atol=1e-5)


def test_training_continues_a_transformers_model(tmp_path: Path) -> None:
    """The folder is written back with other weights and all its other files."""
    (tmp_path / "text.txt").write_text("The sky is blue. " * 20, encoding="utf-8")
    source, out = tmp_path / "given", tmp_path / "out"
    config = transformers.GPT2Config(
        vocab_size=257, n_positions=32, n_embd=8, n_layer=1, n_head=2, bos_token_id=256, eos_token_id=256
    )
    transformers.GPT2LMHeadModel(config).half().save_pretrained(source)
    write_byte_vocabulary(source)
    options = ["--model", str(source), "--steps", "2", "--batch-size", "2", "--learning-rate", "0.1"]
    assert main(["train", str(tmp_path / "text.txt"), "--out", str(out), *options]) == 0
    assert (out / "tokenizer.json").read_bytes() == (source / "tokenizer.json").read_bytes()
    tokens = [[*b"The sky is blue."]]
    before, after = (transformers.AutoModelForCausalLM.from_pretrained(folder).float() for folder in (source, out))
    assert {each.dtype for each in after.parameters()} == {torch.float32}
    with torch.no_grad(), tl.no_grad():
        expected = after(torch.tensor(tokens)).logits.numpy()
        np.testing.assert_allclose(AutoModel.from_pretrained(out)(tl.tensor(tokens)).numpy(), expected, atol=1e-5)
        assert np.abs(expected - before(torch.tensor(tokens)).logits.numpy()).max() > 0.01
