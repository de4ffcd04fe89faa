"""Losses of sentence encoders and their training equal those of sentence-transformers, where that is importable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.folders import Folders

import tallow as tl
import tallow.sentence_transformers as mine
from tallow.errors import ArgumentError, UnsupportedError
from tallow.sentence_transformers import losses
from tallow.sentence_transformers.trainer import NoDuplicatesBatchSampler, SentenceTransformerTrainer
from tallow.utils.torch_numbers import TorchNumbers

# The real library warns of its own parts.
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(1)
COLUMNS = [RNG.standard_normal((6, 8)).astype(np.float32) for _ in range(4)]
SCORES = np.float32([0.1, 0.9, 0.4, 0.4, 0.0, 1.0])
BINARY = np.array([1, 0, 0, 1, 1, 0])
CLASSES = np.array([0, 1, 0, 2, 1, 0])
TEACHER = RNG.standard_normal((6, 8)).astype(np.float32)

# name of the loss, its arguments, number of columns, labels
CASES: list[tuple[str, dict[str, Any], int, Any]] = [
    ("MultipleNegativesRankingLoss", {}, 2, None),
    ("MultipleNegativesRankingLoss", {"scale": 5.0}, 4, None),
    (
        "MultipleNegativesRankingLoss",
        {"directions": ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")},
        3,
        None,
    ),
    (
        "MultipleNegativesRankingLoss",
        {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"},
        2,
        None,
    ),
    ("MultipleNegativesSymmetricRankingLoss", {}, 2, None),
    ("CosineSimilarityLoss", {}, 2, SCORES),
    ("CoSENTLoss", {}, 2, SCORES),
    ("CoSENTLoss", {"scale": 3.0}, 2, SCORES),
    ("AnglELoss", {}, 2, SCORES),
    ("ContrastiveLoss", {}, 2, BINARY),
    ("ContrastiveLoss", {"margin": 1.2, "size_average": False}, 2, BINARY),
    ("OnlineContrastiveLoss", {}, 2, BINARY),
    ("OnlineContrastiveLoss", {"margin": 1.5}, 2, BINARY),
    ("TripletLoss", {}, 3, None),
    ("TripletLoss", {"triplet_margin": 0.5}, 3, None),
    ("MSELoss", {}, 1, TEACHER),
    ("MSELoss", {}, 3, TEACHER),
    ("MarginMSELoss", {}, 3, SCORES),
    ("MarginMSELoss", {}, 4, TEACHER[:, :2]),
    ("MarginMSELoss", {}, 4, TEACHER[:, :3]),
    ("BatchAllTripletLoss", {}, 1, CLASSES),
    ("BatchAllTripletLoss", {"margin": 0.7}, 1, CLASSES),
    ("BatchHardTripletLoss", {"margin": 2.0}, 1, CLASSES),
]


@pytest.fixture(scope="module")
def real() -> Any:
    return pytest.importorskip("sentence_transformers")


def value_and_gradients(torch: Any, loss: Any, count: int, labels: Any) -> list[Any]:
    columns = [torch.tensor(each, requires_grad=True) for each in COLUMNS[:count]]
    given = None if labels is None else torch.tensor(labels)
    own = [given] * count if "MSELoss" in str(type(loss)) and hasattr(loss, "projection_dim") else given
    value = loss.compute_loss_from_embeddings(columns, own)
    value.backward()
    return [value.item(), *(each.grad.numpy() for each in columns)]


@pytest.mark.parametrize(("name", "options", "count", "labels"), CASES)
def test_losses(name: str, options: dict[str, Any], count: int, labels: Any, real: Any) -> None:
    torch = pytest.importorskip("torch")
    kinds = real.sentence_transformer.losses
    expected = value_and_gradients(torch, getattr(kinds, name)(torch.nn.Identity(), **options), count, labels)
    found = value_and_gradients(tl, getattr(losses, name)(tl.nn.Identity(), **options), count, labels)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


class Table(tl.nn.Module):
    """A model of one vector for each text, given by its number."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors = tl.nn.Parameter(tl.tensor(np.concatenate(COLUMNS)))

    def forward(self, features: Any) -> Any:
        return {"sentence_embedding": self.vectors[features["numbers"]]}


def test_matryoshka_loss_is_the_sum_over_normalized_heads_of_vectors() -> None:
    inner = losses.CosineSimilarityLoss(Table())
    loss = losses.MatryoshkaLoss(inner.model, inner, [2, 8, 5], [0.5, 1.0, 2.0])
    features = [{"numbers": tl.arange(6)}, {"numbers": tl.arange(6, 12)}]
    found = loss(features, tl.tensor(SCORES)).item()
    expected = 0.0
    for size, weight in ((2, 0.5), (8, 1.0), (5, 2.0)):
        a, b = (each[:, :size] / np.linalg.norm(each[:, :size], axis=1, keepdims=True) for each in COLUMNS[:2])
        expected += weight * float((((a * b).sum(1) - SCORES) ** 2).mean())
    assert found == pytest.approx(expected, abs=1e-5)


def test_softmax_loss_is_the_cross_entropy_of_a_layer() -> None:
    loss = losses.SoftmaxLoss(Table(), 8, 3, concatenation_sent_multiplication=True)
    features = [{"numbers": tl.arange(6)}, {"numbers": tl.arange(6, 12)}]
    found = loss(features, tl.tensor(CLASSES)).item()
    u, v = COLUMNS[:2]
    weight, bias = loss.classifier.weight.detach().numpy(), loss.classifier.bias.detach().numpy()
    logits = np.concatenate([u, v, abs(u - v), u * v], 1) @ weight.T + bias
    expected = (np.log(np.exp(logits).sum(1)) - logits[np.arange(6), CLASSES]).mean()
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: losses.MultipleNegativesRankingLoss(Table(), directions=("doc_to_doc",)),
        lambda: losses.MultipleNegativesRankingLoss(Table(), scale=0),
        lambda: losses.MultipleNegativesRankingLoss(Table()).compute_loss_from_embeddings([tl.ones(2, 3)], None),
        lambda: losses.CoSENTLoss(Table()).compute_loss_from_embeddings([tl.ones(2, 3)] * 2, tl.ones(3)),
        lambda: losses.CosineSimilarityLoss(Table()).compute_loss_from_embeddings([tl.ones(2, 3)] * 2, None),
        lambda: losses.MatryoshkaLoss(Table(), losses.TripletLoss(Table()), []),
        lambda: losses.SoftmaxLoss(Table(), 8, 3, concatenation_sent_rep=False, concatenation_sent_difference=False),
    ],
)
def test_losses_refuse(make: Any) -> None:
    with pytest.raises(ArgumentError):
        make()


WORDS = ["the", "cat", "dog", "bank", "river", "park", "ball", "storm", "runs", "sits", "closed", "hello", "today"]
SENTENCES = [" ".join(RNG.choice(WORDS, size)) for size in RNG.integers(2, 9, 40)]
PAIRS = [{"anchor": SENTENCES[i], "positive": SENTENCES[i + 20], "score": float(i % 5) / 4} for i in range(18)]
ARGUMENTS: dict[str, Any] = {"use_cpu": True, "disable_tqdm": True, "learning_rate": 1e-3, "logging_steps": 1}
ARGUMENTS |= {"per_device_train_batch_size": 4, "save_strategy": "no", "num_train_epochs": 2}


@pytest.fixture(scope="module")
def folder(folders: Folders, real: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    parts = real.sentence_transformer.modules
    sizes = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    transformer = parts.Transformer(folders("BertModel", **sizes), max_seq_length=16)
    pooling = parts.Pooling(transformer.get_word_embedding_dimension(), "mean")
    path = str(tmp_path_factory.mktemp("train") / "model")
    real.SentenceTransformer(modules=[transformer, pooling], device="cpu").save(path, create_model_card=False)
    return path


def arguments(folder: Path, **options: Any) -> mine.SentenceTransformerTrainingArguments:
    return mine.SentenceTransformerTrainingArguments(str(folder), **(ARGUMENTS | options))


@pytest.mark.parametrize("kind", ["CoSENTLoss", "MultipleNegativesRankingLoss"])
def test_steps_equal_a_loop_over_pytorch(kind: str, folder: str, real: Any, tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    rows = PAIRS if kind == "CoSENTLoss" else [{"anchor": p["anchor"], "positive": p["positive"]} for p in PAIRS]
    model = real.SentenceTransformer(folder, device="cpu")
    loss = getattr(real.sentence_transformer.losses, kind)(model)
    flat = [n for n, _ in loss.named_parameters() if "bias" in n or "LayerNorm" in n]
    groups = [[p for n, p in loss.named_parameters() if (n in flat) == each] for each in (False, True)]
    optimizer = torch.optim.AdamW([{"params": each, "weight_decay": 0.0} for each in groups], lr=1e-3)
    schedule = transformers.get_scheduler("linear", optimizer, 0, 10)
    expected: list[float] = []
    for epoch in range(2):
        order = TorchNumbers(42 + epoch).randperm(18)
        for start in range(0, 18, 4):
            batch = [rows[i] for i in order[start : start + 4]]
            features = [model.preprocess([row[name] for row in batch]) for name in ("anchor", "positive")]
            labels = torch.tensor([row["score"] for row in batch]) if kind == "CoSENTLoss" else None
            model.train()
            value = loss(features, labels)
            value.backward()
            expected.append(value.item())
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            loss.zero_grad()
    ours = mine.SentenceTransformer(folder)
    trainer = SentenceTransformerTrainer(
        ours, arguments(tmp_path), train_dataset=rows, loss=getattr(losses, kind)(ours)
    )
    trainer.train()
    found = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    model.eval()
    np.testing.assert_allclose(ours.encode(SENTENCES), model.encode(SENTENCES), atol=2e-3)


def test_evaluation_checkpoints_and_best_model(folder: str, tmp_path: Path) -> None:
    model = mine.SentenceTransformer(folder)
    evaluator = mine.evaluation.EmbeddingSimilarityEvaluator(
        SENTENCES[:9], SENTENCES[20:29], list(range(9)), name="dev"
    )
    options = {
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "load_best_model_at_end": True,
        "save_total_limit": 1,
    }
    trainer = SentenceTransformerTrainer(
        model,
        arguments(
            tmp_path,
            metric_for_best_model="dev_spearman_cosine",
            prompts={"anchor": "the cat "},
            **options,
        ),
        train_dataset=PAIRS,
        eval_dataset=PAIRS[:5],
        evaluator=evaluator,
    )
    trainer.train()
    logs = [each for each in trainer.state.log_history if "eval_loss" in each]
    assert len(logs) == 2
    best = max(each["eval_dev_spearman_cosine"] for each in logs)
    assert trainer.state.best_metric == best
    again = mine.SentenceTransformer(trainer.state.best_model_checkpoint)
    np.testing.assert_allclose(again.encode(SENTENCES), model.encode(SENTENCES), atol=1e-6)
    assert evaluator(model)["dev_spearman_cosine"] == pytest.approx(best)


def test_batches_without_duplicates() -> None:
    rows = [{"anchor": f"a{i // 3}", "positive": f"p{i}", "label": 1} for i in range(21)]
    sampler = NoDuplicatesBatchSampler(rows, 4, seed=3)
    batches = list(sampler)
    assert sorted(i for batch in batches for i in batch) == list(range(21))
    assert all(len({rows[i]["anchor"] for i in batch}) == len(batch) for batch in batches)
    sampler.set_epoch(1)
    assert list(sampler) != batches
    assert all(len(batch) == 4 for batch in NoDuplicatesBatchSampler(rows, 4, drop_last=True))


def test_training_refuses(folder: str, tmp_path: Path) -> None:
    model = mine.SentenceTransformer(folder)
    with pytest.raises(UnsupportedError, match="several"):
        SentenceTransformerTrainer(model, arguments(tmp_path), train_dataset={"a": PAIRS})
    with pytest.raises(UnsupportedError, match="router_mapping"):
        arguments(tmp_path, router_mapping={"a": "b"})
    with pytest.raises(ArgumentError, match="BatchSamplers"):
        arguments(tmp_path, batch_sampler="group_by_label")
