"""Losses and training of CrossEncoder and SparseEncoder equal those of sentence-transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.folders import Folders

import tallow as tl
import tallow.sentence_transformers as mine
from tallow.errors import ArgumentError, CheckpointError
from tallow.sentence_transformers import cross_encoder as ours
from tallow.sentence_transformers import sparse_encoder as sparse
from tallow.utils.torch_numbers import TorchNumbers

# The real library warns of its own parts.
pytestmark = pytest.mark.filterwarnings("ignore")

WITHOUT_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
QUERIES = ["where do cats sleep", "what do dogs eat", "who is a bank", "a red car"]
TEXTS = ["cats sleep on sofas", "dogs eat bones", "banks are closed", "the car is red and fast"]
OTHERS = ["no", "cats eat fish", "a long text of many words", "red"]
LISTS = [TEXTS[:3], TEXTS[1:3], [OTHERS[0]], TEXTS]
GRADES = [[2.0, 0.0, 1.0], [0.0, 1.0], [1.0], [0.0, 3.0, 1.0, 1.0]]
SCORES = np.float32([0.1, 0.9, 0.4, 1.0])
# name, arguments, columns, labels, number of labels of the model
PAIRS: list[tuple[str, dict[str, Any], list[Any], Any, int]] = [
    ("BinaryCrossEntropyLoss", {}, [QUERIES, TEXTS], SCORES, 1),
    ("MSELoss", {}, [QUERIES, TEXTS], SCORES, 1),
    ("CrossEntropyLoss", {}, [QUERIES, TEXTS], np.array([0, 2, 1, 1]), 3),
    ("MultipleNegativesRankingLoss", {"num_negatives": None}, [QUERIES, TEXTS], None, 1),
    ("MultipleNegativesRankingLoss", {"num_negatives": None, "scale": 3.0}, [QUERIES, TEXTS, OTHERS], None, 1),
    ("MarginMSELoss", {}, [QUERIES, TEXTS, OTHERS], SCORES, 1),
    ("MarginMSELoss", {}, [QUERIES, TEXTS, OTHERS], np.stack([SCORES, SCORES[::-1]], 1), 1),
    ("ListNetLoss", {}, [QUERIES, LISTS], GRADES, 1),
    ("ListNetLoss", {"mini_batch_size": -1}, [QUERIES, LISTS], GRADES, 1),
    ("RankNetLoss", {"sigma": 2.0}, [QUERIES, LISTS], GRADES, 1),
    ("LambdaLoss", {}, [QUERIES, LISTS], GRADES, 1),
    ("LambdaLoss", {"k": 2, "reduction_log": "natural"}, [QUERIES, LISTS], GRADES, 1),
    ("LambdaLoss", {"weighting_scheme": "NDCGLoss1Scheme"}, [QUERIES, LISTS], GRADES, 1),
    ("LambdaLoss", {"weighting_scheme": "NDCGLoss2Scheme"}, [QUERIES, LISTS], GRADES, 1),
    ("LambdaLoss", {"weighting_scheme": "LambdaRankScheme"}, [QUERIES, LISTS], GRADES, 1),
]
RNG = np.random.default_rng(3)
WEIGHTS = [np.maximum(RNG.standard_normal((4, 12)), 0).astype(np.float32) for _ in range(4)]
TEACHER = RNG.standard_normal((4, 3)).astype(np.float32)
SPARSE: list[tuple[str, dict[str, Any], int, Any]] = [
    ("SparseMultipleNegativesRankingLoss", {}, 3, None),
    ("SparseMarginMSELoss", {}, 3, SCORES),
    ("SparseDistillKLDivLoss", {}, 4, TEACHER),
    ("SparseDistillKLDivLoss", {"temperature": 1.5, "teacher_temperature": 0.7}, 4, TEACHER),
    ("SparseTripletLoss", {}, 3, None),
    ("SparseCoSENTLoss", {}, 2, SCORES),
    ("SparseAnglELoss", {}, 2, SCORES),
    ("SparseCosineSimilarityLoss", {}, 2, SCORES),
]


@pytest.fixture(scope="module")
def real() -> Any:
    return pytest.importorskip("sentence_transformers")


def labels_of(values: Any, library: Any) -> Any:
    return [library.tensor(each) for each in values] if isinstance(values, list) else library.tensor(values)


@pytest.mark.parametrize(("name", "options", "columns", "labels", "count"), PAIRS)
def test_losses_of_pairs(
    name: str, options: dict[str, Any], columns: list[Any], labels: Any, count: int, real: Any, folders: Folders
) -> None:
    torch = pytest.importorskip("torch")
    names = {i: f"L{i}" for i in range(count)}
    path = folders("BertForSequenceClassification", id2label=names, **WITHOUT_DROPOUT)
    found = []
    for library, module, kind in ((torch, real.cross_encoder, real.CrossEncoder), (tl, ours, ours.CrossEncoder)):
        model = kind(path, num_labels=count, **({"device": "cpu"} if library is torch else {}))
        model.eval()
        scheme = options.get("weighting_scheme")
        more = options | (
            {"weighting_scheme": getattr(module.losses.lambda_loss, scheme)()} if scheme and library is torch else {}
        )
        if scheme and library is tl:
            more["weighting_scheme"] = getattr(module.losses, scheme)()
        loss = getattr(module.losses, name)(model, **more)
        value = loss(columns, None if labels is None else labels_of(labels, library))
        value.backward()
        weights = dict(model.named_parameters())
        gradient = next(each.grad for key, each in weights.items() if key.endswith("classifier.weight"))
        found.append((value.item(), gradient.numpy()))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("name", "options", "columns", "labels"), SPARSE)
def test_losses_of_weights(
    name: str, options: dict[str, Any], columns: int, labels: Any, real: Any, folders: Folders
) -> None:
    torch = pytest.importorskip("torch")
    path = folders("BertForMaskedLM", **WITHOUT_DROPOUT)
    found = []
    for library, module in ((torch, real.sparse_encoder), (tl, sparse)):
        model = module.SparseEncoder(path, **({"device": "cpu"} if library is torch else {}))
        loss = getattr(module.losses, name)(model, **options)
        vectors = [library.tensor(each) for each in WEIGHTS[:columns]]
        value = loss.compute_loss_from_embeddings(vectors, None if labels is None else library.tensor(labels))
        found.append(value.item())
        with pytest.raises(AttributeError if library is torch else ArgumentError, match="alone"):
            loss([], None)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)


def arguments(folder: Path, kind: Any, **options: Any) -> Any:
    usual = {"per_device_train_batch_size": 3, "num_train_epochs": 2, "learning_rate": 1e-3, "report_to": "none"}
    usual |= {"logging_steps": 1, "save_strategy": "no", "disable_tqdm": True}
    return kind(str(folder), **(usual | options))


PROGRAMS = {
    "cross": [
        {"query": q, "text": t, "label": float(s)}
        for q, t, s in zip(QUERIES * 2, TEXTS + OTHERS, [*SCORES] * 2, strict=True)
    ],
    "sparse": [{"anchor": q, "positive": t} for q, t in zip(QUERIES * 2, TEXTS + OTHERS, strict=True)],
}


@pytest.mark.parametrize("kind", ["cross", "sparse"])
def test_steps_equal_a_loop_over_pytorch(kind: str, real: Any, folders: Folders, tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    rows = PROGRAMS[kind]
    name = "BertForSequenceClassification" if kind == "cross" else "BertForMaskedLM"
    one = {"id2label": {0: "L"}} if kind == "cross" else {}
    path = folders(name, **WITHOUT_DROPOUT, **one)
    if kind == "cross":
        model, mine_ = real.CrossEncoder(path, num_labels=1, device="cpu"), ours.CrossEncoder(path)
        loss = real.cross_encoder.losses.BinaryCrossEntropyLoss(model)
        trainer_class, args = ours.CrossEncoderTrainer, ours.CrossEncoderTrainingArguments
    else:
        model, mine_ = real.SparseEncoder(path, device="cpu"), sparse.SparseEncoder(path)
        inner = real.sparse_encoder.losses.SparseMultipleNegativesRankingLoss(model)
        loss = real.sparse_encoder.losses.SpladeLoss(model, inner, 3e-5, 5e-5)
        trainer_class, args = sparse.SparseEncoderTrainer, sparse.SparseEncoderTrainingArguments
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    schedule = transformers.get_scheduler("linear", optimizer, 0, 6)
    expected: list[float] = []
    model.train()
    for step, (epoch, start) in enumerate((epoch, start) for epoch in range(2) for start in (0, 3, 6)):
        batch = [rows[i] for i in TorchNumbers(42 + epoch).randperm(8)[start : start + 3]]
        columns = [[row[key] for row in batch] for key in list(rows[0])[:2]]
        if kind == "cross":
            value = loss(columns, torch.tensor([row["label"] for row in batch]))
        else:
            part = min(step / 2, 1.0) ** 2
            loss.document_regularizer_weight, loss.query_regularizer_weight = 3e-5 * part, 5e-5 * part
            value = sum(loss([model.preprocess(each) for each in columns]).values())
        value.backward()
        expected.append(value.item())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        loss.zero_grad()
    trainer = trainer_class(mine_, arguments(tmp_path / "out", args), train_dataset=rows)
    trainer.train()
    found = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    saved = tmp_path / "saved"
    trainer.model.save_pretrained(saved)
    texts = list(zip(QUERIES, TEXTS, strict=True))
    model.eval()
    if kind == "cross":
        wanted = model.predict(texts)
        np.testing.assert_allclose(mine_.predict(texts), wanted, atol=2e-3)
        again, theirs = ours.CrossEncoder(saved), real.CrossEncoder(str(saved), device="cpu")
        values = [each.predict(texts) for each in (mine_, again, theirs)]
    else:
        wanted = model.encode(QUERIES).to_dense().numpy()
        np.testing.assert_allclose(mine_.encode(QUERIES).to_dense().numpy(), wanted, atol=5e-3)
        again, theirs = sparse.SparseEncoder(saved), real.SparseEncoder(str(saved), device="cpu")
        values = [each.encode(QUERIES).to_dense().numpy() for each in (mine_, again, theirs)]
    for each in values[1:]:
        np.testing.assert_allclose(each, values[0], atol=1e-5)


def test_a_saved_activation_is_read_by_both(real: Any, folders: Folders, tmp_path: Path) -> None:
    model = mine.CrossEncoder(folders("BertForSequenceClassification", num_labels=1), activation_fn=tl.nn.Tanh())
    model.save_pretrained(tmp_path)
    pairs = list(zip(QUERIES, TEXTS, strict=True))
    for each in (mine.CrossEncoder(tmp_path), real.CrossEncoder(str(tmp_path), device="cpu")):
        np.testing.assert_allclose(each.predict(pairs), model.predict(pairs), atol=1e-5)


def test_an_encoder_gets_a_head(folders: Folders, tmp_path: Path) -> None:
    path = folders("RobertaModel", **WITHOUT_DROPOUT)
    model = mine.CrossEncoder(path, num_labels=2)
    assert model.num_labels == 2
    inner = model.model.base_model.embeddings.word_embeddings.weight
    base = tl.models.RobertaModel.from_pretrained(path)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(inner.detach().numpy(), base.embeddings.word_embeddings.weight.detach().numpy())
    rows = [{"query": q, "text": t, "label": i % 2} for i, (q, t) in enumerate(zip(QUERIES, TEXTS, strict=True))]
    args = arguments(tmp_path / "out", ours.CrossEncoderTrainingArguments, save_strategy="epoch", eval_strategy="epoch")
    trainer = ours.CrossEncoderTrainer(model, args, train_dataset=rows, eval_dataset=rows)
    trainer.train()
    assert "eval_loss" in trainer.evaluate()
    saved = mine.CrossEncoder(trainer.state.best_model_checkpoint or tmp_path / "out/checkpoint-4")
    np.testing.assert_allclose(saved.predict([("a", "b")]), model.predict([("a", "b")]), atol=1e-6)
    with pytest.raises(CheckpointError, match="no tokens 'yes' and 'no'"):
        mine.CrossEncoder(folders("LlamaForCausalLM"))


def test_wrong_calls_are_errors(folders: Folders) -> None:
    model = mine.CrossEncoder(folders("BertForSequenceClassification"))  # three labels
    with pytest.raises(ArgumentError, match="3 labels"):
        ours.losses.MSELoss(model)
    one = mine.CrossEncoder(folders("BertForSequenceClassification", id2label={0: "L"}, **WITHOUT_DROPOUT))
    with pytest.raises(ArgumentError, match="needs 4 labels"):
        ours.losses.MSELoss(one)([QUERIES, TEXTS], tl.tensor([1.0]))
    with pytest.raises(ArgumentError, match="3 columns"):
        ours.losses.MSELoss(one)([QUERIES, TEXTS, TEXTS], tl.tensor(SCORES))
    with pytest.raises(ArgumentError, match="a list of labels"):
        ours.losses.ListNetLoss(one)([QUERIES, LISTS], tl.tensor(SCORES))
    with pytest.raises(ArgumentError, match="reduction_log"):
        ours.losses.LambdaLoss(one, reduction_log="decimal")
    with pytest.raises(ArgumentError, match="prompts by column"):
        ours.trainer.CrossEncoderDataCollator(prompts={"query": "q: "})
    encoder = mine.SparseEncoder(folders("BertForMaskedLM", **WITHOUT_DROPOUT))
    with pytest.raises(ArgumentError, match="loss is a ReLU"):
        sparse.losses.SpladeLoss(encoder, tl.nn.ReLU(), 1e-3)
    with pytest.raises(ArgumentError, match="a schedule of a ReLU"):
        sparse.callbacks.SpladeRegularizerWeightSchedulerCallback(tl.nn.ReLU())
