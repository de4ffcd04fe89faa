"""Folders of cross-encoders and sparse encoders, old and new: scores equal the formulas of sentence-transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.hugging_face import classifier_folder, splade_folder

from tallow.errors import CheckpointError
from tallow.models import SparseEncoder, TextClassifier

PAIRS = [("A cat sleeps.", "A kitten naps."), ("A cat sleeps.", "The bank is closed."), ("", "a")]
SETTINGS, CONFIG, LENGTHS = "config_sentence_transformers.json", "config.json", "sentence_bert_config.json"
IDENTITY = "torch.nn.modules.linear.Identity"
# Until version 4 of sentence-transformers, until 5.3, and since.
FORMS = {
    "old": lambda path: (CONFIG, {"sbert_ce_default_activation_function": path}),
    "block": lambda path: (CONFIG, {"sentence_transformers": {"activation_fn": path, "version": "4.1.0"}}),
    "new": lambda path: (SETTINGS, {"activation_fn": path, "model_type": "CrossEncoder", "prompts": {}}),
}
FUNCTIONS = {
    IDENTITY: torch.nn.Identity(),
    "torch.nn.modules.activation.Sigmoid": torch.nn.Sigmoid(),
    "torch.nn.Tanh": torch.nn.Tanh(),
    "torch.nn.modules.activation.Softmax": torch.nn.Softmax(1),
}


def put(folder: Path, file: str, entries: dict[str, Any]) -> None:
    path = folder / file
    known = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(known | entries))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("path", "labels"), [(path, 1 + (i % 2)) for i, path in enumerate(FUNCTIONS)])
def test_scores_of_cross_encoders(form: str, path: str, labels: int, tmp_path: Path) -> None:
    folder = classifier_folder(tmp_path, labels)
    put(folder, *FORMS[form](path))
    ours = TextClassifier.from_pretrained(folder)
    expected = FUNCTIONS[path](torch.from_numpy(ours.logits(PAIRS))).numpy()
    np.testing.assert_allclose(ours.predict(PAIRS), expected, atol=1e-6)
    if labels == 1:
        ranked = ours.rank(PAIRS[0][0], [text for _, text in PAIRS[:2]])
        np.testing.assert_allclose([each.score for each in ranked], np.sort(expected[:2, 0])[::-1], atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "path", ["os.system", "torch.nn.modules.activation.PReLU", "torch.hub.Tanh", "torch.nn.Linear", "Tanh", 3]
)
def test_other_functions_are_refused_by_name(form: str, path: Any, tmp_path: Path) -> None:
    folder = classifier_folder(tmp_path, 1)
    put(folder, *FORMS[form](path))
    with pytest.raises(CheckpointError, match=str(path)):
        TextClassifier.from_pretrained(folder)


def test_null_names_no_function(tmp_path: Path) -> None:
    folder = classifier_folder(tmp_path, 1)
    for form in FORMS.values():
        put(folder, *form(None))
    ours = TextClassifier.from_pretrained(folder)
    np.testing.assert_allclose(ours.predict(PAIRS), 1 / (1 + np.exp(-ours.logits(PAIRS))), atol=1e-6)


def test_lengths_case_and_prompts_of_scorers(tmp_path: Path) -> None:
    folder = classifier_folder(tmp_path, 1)
    put(folder, LENGTHS, {"max_seq_length": 9, "do_lower_case": True})
    put(folder, "tokenizer_config.json", {"do_lower_case": False})
    ours = TextClassifier.from_pretrained(folder)
    assert ours.max_length == 9
    assert ours.logits([("A CAT", "Naps " * 20)]) == ours.logits([("a cat", "naps naps naps naps")])
    put(folder, SETTINGS, {"prompts": {"q": "Find: ", "none": None}, "default_prompt_name": "none"})
    TextClassifier.from_pretrained(folder)
    put(folder, SETTINGS, {"default_prompt_name": "q"})
    with pytest.raises(CheckpointError, match="default_prompt_name is 'q'"):
        TextClassifier.from_pretrained(folder)


@pytest.mark.parametrize("strategy", ["max", "sum"])
@pytest.mark.parametrize("function", ["relu", "log1p_relu"])
def test_pooling_of_sparse_encoders(strategy: str, function: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = splade_folder(tmp_path)
    texts = ["A cat sleeps.", "The bank is closed on Sundays."]
    put(folder, "1_SpladePooling/config.json", {"pooling_strategy": strategy, "activation_function": function})
    kinds = {"MLMTransformer": "", "SpladePooling": "1_SpladePooling"}
    modules = [
        {"path": path, "type": f"sentence_transformers.sparse_encoder.models.{kind}"} for kind, path in kinds.items()
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    rows = []
    for text in texts:
        with torch.no_grad():
            weights = model(**tokenizer(text, return_tensors="pt")).logits[0].relu().log1p()
        weights = weights.log1p() if function == "log1p_relu" else weights
        rows.append(weights.amax(0) if strategy == "max" else weights.sum(0))
    np.testing.assert_allclose(SparseEncoder.from_pretrained(folder).encode(texts), torch.stack(rows), atol=1e-4)


def test_modules_that_sparse_encoders_lack(tmp_path: Path) -> None:
    folder = splade_folder(tmp_path)
    modules = [{"path": "", "type": "sentence_transformers.sparse_encoder.models.SparseAutoEncoder"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match="modules of kind 'SparseAutoEncoder'"):
        SparseEncoder.from_pretrained(folder)
    modules = [{"path": "1", "type": "sentence_transformers.sparse_encoder.models.SpladePooling"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    put(folder, "1/config.json", {"pooling_strategy": "mean"})
    with pytest.raises(CheckpointError, match="pooling_strategy='mean'"):
        SparseEncoder.from_pretrained(folder)
