"""mBART, Pegasus, M2M100, MT5 and UMT5 compared with transformers: the same logits, gradients and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from support.model_pairs import BART_SIZES, T5_SIZES, VOCAB

import tallow as tl
from tallow.models import AutoModel

ENDS = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
CASES: dict[str, dict[str, Any]] = {
    "MBartForConditionalGeneration": BART_SIZES | ENDS,
    "PegasusForConditionalGeneration": BART_SIZES | ENDS | {"scale_embedding": True},
    "M2M100ForConditionalGeneration": BART_SIZES | ENDS,
    "MT5ForConditionalGeneration": T5_SIZES | {"pad_token_id": 1, "feed_forward_proj": "gated-gelu"},
    "UMT5ForConditionalGeneration": T5_SIZES | {"pad_token_id": 1},
}


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", CASES)
def test_logits_gradients_and_texts(name: str, side: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    theirs = kind(kind.config_class(**CASES[name])).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) / 4)
    theirs.save_pretrained(tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    rng = np.random.default_rng(0)
    ids, labels, mask = rng.integers(4, VOCAB, (2, 17)), rng.integers(4, VOCAB, (2, 9)), np.ones((2, 17), np.int64)
    padding = slice(9, None) if side == "right" else slice(0, 8)
    ids[1, padding], mask[1, padding] = 1, 0
    labels[1, 6:] = -100
    given = {"input_ids": ids, "attention_mask": mask, "labels": labels}
    expected = theirs(**{key: torch.tensor(value) for key, value in given.items()})
    got = model(**{key: tl.tensor(value) for key, value in given.items()})
    ours, other = (each.detach().numpy()[labels != -100] for each in (got.logits, expected.logits))
    np.testing.assert_allclose(ours, other, rtol=1e-4, atol=1e-4)
    assert got.loss.item() == pytest.approx(expected.loss.item(), rel=1e-4)
    expected.loss.backward()
    got.loss.backward()
    gradients = {key: each.grad for key, each in theirs.named_parameters() if each.grad is not None}
    for key, parameter in model.named_parameters():
        if key in gradients and parameter.grad is not None:
            np.testing.assert_allclose(parameter.grad.numpy(), gradients[key].numpy(), atol=1e-4, err_msg=key)
    text = theirs.generate(torch.tensor(ids[:1]), max_new_tokens=12, num_beams=3, do_sample=False)[0, 1:].tolist()
    written = list(model.generate_ids(ids[0].tolist(), max_tokens=12, num_beams=3))
    assert text[: len(written)] == written
    assert len(written) >= len(text) - 1
