"""SentenceTransformer, CrossEncoder, SparseEncoder and util equal sentence-transformers, where that is importable."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.folders import Folders

import tallow as tl
import tallow.sentence_transformers as mine
from tallow.errors import ArgumentError, CheckpointError, UnsupportedError

# The real library warns of its own parts.
pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = [
    "the cat sits",
    "a dog runs in the park with a ball",
    "hello",
    "the big bank of the river was closed today because of a storm",
    "a cat runs",
]
NEAR = 1e-5


@pytest.fixture(scope="module")
def real() -> Any:
    return pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="module")
def folder(folders: Folders, real: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder that sentence-transformers wrote: BERT, the mean, a dense layer and a norm; with prompts."""
    parts = real.sentence_transformer.modules if hasattr(real, "sentence_transformer") else real.models
    transformer = parts.Transformer(folders("BertModel"), max_seq_length=16)
    width = transformer.get_word_embedding_dimension()
    modules = [transformer, parts.Pooling(width, "mean"), parts.Dense(width, 12), parts.Normalize()]
    path = str(tmp_path_factory.mktemp("sentence") / "model")
    model = real.SentenceTransformer(modules=modules, prompts={"query": "a cat ", "document": "the "}, device="cpu")
    model.save(path, create_model_card=False)
    return path


@pytest.fixture(scope="module")
def models(folder: str, real: Any) -> tuple[Any, mine.SentenceTransformer]:
    return real.SentenceTransformer(folder, device="cpu"), mine.SentenceTransformer(folder)


def near(actual: Any, expected: Any, tol: float = NEAR) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=0, atol=tol)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prompt_name": "query"},
        {"prompt": "my dog "},
        {"truncate_dim": 4},
        {"truncate_dim": 4, "normalize_embeddings": True},
        {"precision": "binary"},
        {"precision": "ubinary"},
        {"convert_to_tensor": True},
        {"batch_size": 2},
    ],
)
def test_encode(models: tuple[Any, mine.SentenceTransformer], options: dict[str, Any]) -> None:
    theirs, ours = models
    near(ours.encode(TEXTS, **options), theirs.encode(TEXTS, **options))
    near(ours.encode(TEXTS[1], **options), theirs.encode(TEXTS[1], **options))


@pytest.mark.filterwarnings("ignore")
def test_encode_other_kinds(models: tuple[Any, mine.SentenceTransformer]) -> None:
    theirs, ours = models
    near(ours.encode_query(TEXTS), theirs.encode_query(TEXTS))
    near(ours.encode_document(TEXTS), theirs.encode_document(TEXTS))
    for precision in ("int8", "uint8"):  # a step may fall on either side
        near(ours.encode(TEXTS, precision=precision), theirs.encode(TEXTS, precision=precision), 1)
    tokens = [model.encode(TEXTS, output_value="token_embeddings") for model in (ours, theirs)]
    for own, other in zip(*tokens, strict=True):
        near(own, other)
    features = ours.encode(TEXTS[0], output_value=None)
    near(features["sentence_embedding"], theirs.encode(TEXTS[0], output_value=None)["sentence_embedding"])
    listed = ours.encode(TEXTS, convert_to_numpy=False)
    assert isinstance(listed, list)
    assert ours.encode([]).size == 0
    for name in ("similarity", "similarity_pairwise"):
        vectors = theirs.encode(TEXTS)
        near(getattr(ours, name)(vectors, vectors), getattr(theirs, name)(vectors, vectors))
    assert ours.get_embedding_dimension() == theirs.get_embedding_dimension() == 12
    assert ours.max_seq_length == theirs.max_seq_length == 16
    assert ours.prompts == theirs.prompts


def test_saved_folders_load_in_both(models: tuple[Any, mine.SentenceTransformer], real: Any, tmp_path: Path) -> None:
    _, ours = models
    ours.save_pretrained(tmp_path)
    expected = ours.encode(TEXTS, prompt_name="query")
    near(real.SentenceTransformer(str(tmp_path), device="cpu").encode(TEXTS, prompt_name="query"), expected)
    near(mine.SentenceTransformer(tmp_path).encode(TEXTS, prompt_name="query"), expected)
    kinds = [each["type"].rpartition(".")[2] for each in json.loads((tmp_path / "modules.json").read_text())]
    assert kinds == ["Transformer", "Pooling", "Dense", "Normalize"]


def test_modules_by_hand(folders: Folders, tmp_path: Path) -> None:
    parts = mine.models
    transformer = parts.Transformer(folders("BertModel"), max_seq_length=8)
    width = transformer.get_word_embedding_dimension()
    pooling = parts.Pooling(width, pooling_mode_cls_token=True, pooling_mode_max_tokens=True)
    model = mine.SentenceTransformer(modules=[transformer, pooling, parts.LayerNorm(2 * width)], truncate_dim=9)
    assert model.encode(TEXTS).shape == (5, 9)
    assert pooling.get_pooling_mode_str() == "cls+max"
    near(model.encode(TEXTS), model(model.preprocess(TEXTS))["sentence_embedding"].detach()[:, :9])
    model.save(tmp_path)
    near(mine.SentenceTransformer(tmp_path).encode(TEXTS), model.encode(TEXTS))
    with model.truncate_sentence_embeddings(3):
        assert model.encode(TEXTS[0]).shape == (3,)


def test_model_refuses(models: tuple[Any, mine.SentenceTransformer], folder: str) -> None:
    _, ours = models
    with pytest.raises(ArgumentError, match="no prompt 'other'"):
        ours.encode(TEXTS, prompt_name="other")
    with pytest.raises(ArgumentError, match="precision"):
        ours.encode(TEXTS, precision="int4")
    with pytest.raises(ArgumentError, match="similarity"):
        ours.similarity_fn_name = "near"
    with pytest.raises(UnsupportedError, match="backend"):
        mine.SentenceTransformer(folder, backend="onnx")
    with pytest.raises(UnsupportedError, match="trust_remote_code"):
        mine.SentenceTransformer(folder, trust_remote_code=True)
    with pytest.raises(ArgumentError, match="unknown argument"):
        mine.SentenceTransformer(folder, colour=1)


def with_segments(folder: Path) -> None:
    """Name a class of tokenizers that tells the two texts of a pair apart."""
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": "BertTokenizer"}))


def test_cross_encoder(folders: Folders, real: Any) -> None:
    pairs = [(TEXTS[0], text) for text in TEXTS]
    for labels, has_segments in ((1, False), (1, True), (3, True)):
        names = {i: f"LABEL_{i}" for i in range(labels)}
        path = folders("BertForSequenceClassification", id2label=names)
        if has_segments:
            with_segments(Path(path))
        theirs, ours = real.CrossEncoder(path, max_length=16, device="cpu"), mine.CrossEncoder(path, max_length=16)
        near(ours.predict(pairs), theirs.predict(pairs))
        near(ours.predict(pairs[1]), theirs.predict(list(pairs[1])))
        near(ours.predict(pairs, apply_softmax=True), theirs.predict(pairs, apply_softmax=True))
        near(ours.predict(pairs, convert_to_tensor=True), theirs.predict(pairs, convert_to_tensor=True).numpy())
        if labels == 1:
            rows = ours.rank(TEXTS[0], TEXTS, top_k=3, return_documents=True)
            expected = theirs.rank(TEXTS[0], TEXTS, top_k=3, return_documents=True)
            assert [(row["corpus_id"], row["text"]) for row in rows] == [
                (row["corpus_id"], row["text"]) for row in expected
            ]
            near([row["score"] for row in rows], [row["score"] for row in expected])
        else:
            with pytest.raises(ArgumentError, match="3 labels"):
                ours.rank(TEXTS[0], TEXTS)


ROLES = (
    "{% for m in messages %}{% if m['role'] == 'system' %}I: {{ m['content'] }}\n{% elif m['role'] == 'query' %}"
    "Q: {{ m['content'] }}\n{% elif m['role'] == 'document' %}D: {{ m['content'] }}\nyes or no?{% endif %}{% endfor %}"
)


def scorer_folder(folder: str, template: str) -> str:
    """Give a folder tokens "yes" and "no", and a chat template."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["yes", "no"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.chat_template = template
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    for part in (tokenizer, model):
        part.save_pretrained(folder)
    return folder


def test_cross_encoder_of_a_language_model(folders: Folders, real: Any, tmp_path: Path) -> None:
    path = scorer_folder(folders("Qwen3ForCausalLM", initializer_range=0.3), ROLES)
    pairs = [(TEXTS[0], text) for text in (*TEXTS, TEXTS[3] * 3)]
    options: Any = {"prompts": {"web": "a cat "}, "default_prompt_name": "web", "max_length": 48}
    theirs, ours = real.CrossEncoder(path, device="cpu", **options), mine.CrossEncoder(path, **options)
    expected = theirs.predict(pairs)
    assert np.ptp(expected) > 0.1
    near(ours.predict(pairs), expected)
    near(ours.predict(pairs, prompt="hello"), theirs.predict(pairs, prompt="hello"))
    ours.save_pretrained(tmp_path / "ours")
    theirs.save_pretrained(str(tmp_path / "theirs"))
    near(mine.CrossEncoder(tmp_path / "theirs").predict(pairs), expected)
    near(real.CrossEncoder(str(tmp_path / "ours"), device="cpu").predict(pairs), expected)
    score = tmp_path / "ours/1_LogitScore/config.json"
    score.write_text(json.dumps(json.loads(score.read_text()) | {"false_token_id": -1}))
    with pytest.raises(CheckpointError, match="false_token=-1: the model has tokens 0 to"):
        mine.CrossEncoder(tmp_path / "ours")


def test_qwen3_reranker_without_a_template_of_pairs(folders: Folders) -> None:
    """The prompt of the model's card, built from tokens by transformers, whose logits give the score."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = scorer_folder(folders("Qwen3ForCausalLM", initializer_range=0.4, max_position_embeddings=512), "{{ 1 }}")
    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModelForCausalLM.from_pretrained(path).eval()
    judge = "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    judge += 'Note that the answer can only be "yes" or "no".'
    expected = []
    for text in TEXTS:
        prompt = f"<|im_start|>system\n{judge}<|im_end|>\n<|im_start|>user\n<Instruct>: Find it\n<Query>: {TEXTS[0]}\n"
        prompt += f"<Document>: {text}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
        with torch.no_grad():
            logits = model(torch.tensor([tokenizer.encode(prompt, add_special_tokens=False)])).logits[0, -1]
        pair = logits[tokenizer.convert_tokens_to_ids(["no", "yes"])]
        expected.append(pair.softmax(0)[1].item())
    ours = mine.CrossEncoder(path, max_length=512)
    near(ours.predict([(TEXTS[0], text) for text in TEXTS], prompt="Find it"), expected)


def test_sparse_encoder(folders: Folders, real: Any) -> None:
    path = folders("BertForMaskedLM")
    theirs, ours = real.SparseEncoder(path, device="cpu"), mine.SparseEncoder(path)
    expected = theirs.encode(TEXTS)
    found = ours.encode(TEXTS)
    assert found.is_sparse
    near(found.to_dense(), expected.to_dense(), 1e-4)
    near(ours.encode(TEXTS, max_active_dims=5).to_dense(), theirs.encode(TEXTS, max_active_dims=5).to_dense(), 1e-4)
    near(ours.similarity(found, found), theirs.similarity(expected, expected), 1e-2)
    assert ours.sparsity(found)["active_dims"] == theirs.sparsity(expected)["active_dims"]
    top = ours.decode(found, top_k=4)
    assert [[token for token, _ in row] for row in top] == [
        [t for t, _ in row] for row in theirs.decode(expected, top_k=4)
    ]


VECTORS = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)


@pytest.mark.parametrize(
    "name",
    [
        *("cos_sim", "dot_score", "euclidean_sim", "manhattan_sim", "pairwise_cos_sim", "pairwise_dot_score"),
        *("pairwise_euclidean_sim", "pairwise_manhattan_sim", "pairwise_angle_sim", "pytorch_cos_sim"),
    ],
)
def test_similarities(name: str, real: Any) -> None:
    a, b = VECTORS[:7], VECTORS[7:14]
    near(getattr(mine.util, name)(a, b), getattr(real.util, name)(a, b))
    near(getattr(mine.util, name)(tl.tensor(a[:, :5]), list(b[:, :5])), getattr(real.util, name)(a[:, :5], b[:, :5]))


@pytest.mark.parametrize("score", ["cos_sim", "dot_score"])
def test_semantic_search(score: str, real: Any) -> None:
    def rows(util: Any, **options: Any) -> Any:
        found = util.semantic_search(VECTORS[:5], VECTORS[5:], score_function=getattr(util, score), **options)
        return [[(hit["corpus_id"], hit["score"]) for hit in row] for row in found]

    for options in ({}, {"top_k": 3, "query_chunk_size": 2, "corpus_chunk_size": 9}):
        near(rows(mine.util, **options), rows(real.util, **options))


def test_mining_and_communities(real: Any) -> None:
    torch = pytest.importorskip("torch")
    own = mine.util.paraphrase_mining_embeddings(tl.tensor(VECTORS), top_k=5, query_chunk_size=7, corpus_chunk_size=11)
    theirs = real.util.paraphrase_mining_embeddings(
        torch.tensor(VECTORS), top_k=5, query_chunk_size=7, corpus_chunk_size=11
    )
    assert [each[1:] for each in own] == [each[1:] for each in theirs]
    assert own[:9] == mine.util.paraphrase_mining_embeddings(tl.tensor(VECTORS), top_k=5, max_pairs=9)
    near([each[0] for each in own], [each[0] for each in theirs])
    for threshold, size in ((0.5, 3), (0.2, 2), (0.95, 2)):
        found = mine.util.community_detection(VECTORS, threshold=threshold, min_community_size=size, batch_size=9)
        expected = real.util.community_detection(VECTORS, threshold=threshold, min_community_size=size, batch_size=9)
        assert found == expected
    assert mine.util.community_detection(VECTORS[:3]) == []


@pytest.mark.filterwarnings("ignore")
def test_quantize_embeddings(real: Any) -> None:
    ranges = np.stack([VECTORS.min(0), VECTORS.max(0)])
    for precision in ("int8", "uint8", "binary", "ubinary", "float32"):
        for options in ({}, {"ranges": ranges}, {"calibration_embeddings": VECTORS}):
            near(
                mine.quantize_embeddings(tl.tensor(VECTORS[:30]), precision, **options),
                real.quantize_embeddings(VECTORS[:30], precision, **options),
                0,
            )
    with pytest.raises(ArgumentError, match="single vector"):
        mine.quantize_embeddings(VECTORS[0], "int8")


class Fixed:
    """A model whose vectors are given."""

    def __init__(self, vectors: dict[str, Any]) -> None:
        self.vectors, self.similarity_fn_name = vectors, "cosine"

    def encode(self, texts: Any, prompt_name: Any = None, **options: Any) -> Any:
        return tl.tensor(np.stack([self.vectors[text] for text in texts]))

    encode_query = encode_document = encode

    def similarity(self, a: Any, b: Any) -> Any:
        return mine.util.cos_sim(a, b)


def angles(*degrees: float) -> list[Any]:
    return [np.float32([np.cos(np.radians(each)), np.sin(np.radians(each))]) for each in degrees]


def test_mine_hard_negatives() -> None:
    names = ["q", "r", "a", "b", "c", "d", "e"]
    model = Fixed(dict(zip(names, angles(0, 90, 5, 80, 30, 50, 20), strict=True)))
    pairs = [{"anchor": "q", "positive": "a"}, {"anchor": "r", "positive": "b"}]
    options: dict[str, Any] = {"corpus": ["c", "d", "e"], "verbose": False}
    rows = mine.mine_hard_negatives(pairs, model, num_negatives=2, **options)
    assert [row["negative"] for row in rows] == ["e", "c", "d", "c"]
    rows = mine.mine_hard_negatives(pairs, model, num_negatives=2, output_format="n-tuple", range_min=1, **options)
    assert rows[0] == {"anchor": "q", "positive": "a", "negative_1": "c", "negative_2": "d"}
    rows = mine.mine_hard_negatives(
        pairs, model, num_negatives=5, max_score=0.9, output_format="labeled-pair", **options
    )
    assert [(row["positive"], row["label"]) for row in rows][:4] == [("a", 1), ("c", 0), ("d", 0), ("b", 0)]
    rows = mine.mine_hard_negatives(pairs[:1], model, num_negatives=4, relative_margin=0.2, **options)
    assert [row["negative"] for row in rows] == ["d"]  # cos 50° is below 0.8 cos 5°, and cos 30° is not
    with pytest.raises(ArgumentError, match="output_format"):
        mine.mine_hard_negatives(pairs, model, output_format="pairs")


def test_evaluators() -> None:
    evaluation = mine.evaluation
    model = Fixed(dict(zip("abcdef", angles(0, 10, 25, 45, 90, 180), strict=True)))
    judged = [0.9, 0.3, 0.5, 0.4]
    result = evaluation.EmbeddingSimilarityEvaluator(list("aaaa"), list("bdce"), judged, name="dev")(model)
    # ranks by cosine: b, c, d, e; by score: b, c, e, d
    assert result["dev_spearman_cosine"] == pytest.approx(0.8)
    cosines = np.cos(np.radians([10, 45, 25, 90]))
    assert result["dev_pearson_cosine"] == pytest.approx(np.corrcoef(cosines, judged)[0, 1], abs=1e-6)
    result = evaluation.TripletEvaluator(list("aab"), list("bce"), list("cbd"))(model)
    assert result == {"cosine_accuracy": pytest.approx(1 / 3)}
    search = evaluation.InformationRetrievalEvaluator(
        {"1": "a", "2": "f"}, {name: name for name in "bcde"}, {"1": {"c", "e"}, "2": {"e"}}, mrr_at_k=[10]
    )(model)
    assert search["cosine_accuracy@1"] == pytest.approx(0.5)
    assert search["cosine_recall@3"] == pytest.approx((0.5 + 1) / 2)
    assert search["cosine_mrr@10"] == pytest.approx((1 / 2 + 1) / 2)
    gain = (1 / np.log2(3) + 1 / np.log2(5)) / (1 + 1 / np.log2(3))
    assert search["cosine_ndcg@10"] == pytest.approx((gain + 1) / 2)


def colbert_folder(folders: Folders, form: str, target: Path) -> Path:
    """Write a folder of a ColBERT in one of its forms: by the real library, or by hand as older programs did."""
    import torch
    from safetensors.torch import load_file, save_file
    from sentence_transformers import multi_vector_encoder

    bert = folders("BertModel", initializer_range=0.3)
    parts = real_modules()
    torch.manual_seed(1)
    dense = parts.Dense(
        32, 12, bias=False, activation_function=torch.nn.Identity(), module_input_name="token_embeddings"
    )
    if form == "sentence-transformers":
        transformer = parts.Transformer(bert, query_length=9, document_length=12, query_expansion=EXPANSION)
        mask = multi_vector_encoder.modules.MultiVectorMask(skiplist_words=["the", "nothing"])
        modules = [transformer, dense, mask, parts.Normalize(module_input_name="token_embeddings")]
        prompts = {"query": "a dog ", "document": "the "}
        multi_vector_encoder.MultiVectorEncoder(modules=modules, prompts=prompts, device="cpu").save_pretrained(
            str(target), create_model_card=False
        )
        return target
    shutil.copytree(bert, target)
    config = json.loads((target / "config.json").read_text())
    if form == "original":
        weights = {f"bert.{name}": value for name, value in load_file(target / "model.safetensors").items()}
        save_file(weights | {"linear.weight": dense.linear.weight.detach()}, target / "model.safetensors")
        (target / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
        metadata = {"query_maxlen": 10, "doc_maxlen": 9, "query_token_id": "cat", "doc_token_id": "dog"}
        (target / "artifact.metadata").write_text(json.dumps(metadata))
        return target
    (target / "1_Dense").mkdir()
    dense.save(str(target / "1_Dense"))
    (target / "1_Dense/config.json").write_text(
        json.dumps({"in_features": 32, "out_features": 12, "bias": False} | {"activation_function": IDENTITY})
    )
    kinds = {"": "sentence_transformers.models.Transformer", "1_Dense": "pylate.models.Dense.Dense"}
    rows = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(kinds.items())]
    (target / "modules.json").write_text(json.dumps(rows))
    settings = {"model_type": "ColBERT", "query_prefix": "[Q] ", "document_prefix": "dog ", "query_length": 11}
    settings |= {"document_length": 10, "attend_to_expansion_tokens": True, "skiplist_words": [".", "cat"]}
    (target / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return target


EXPANSION = {"strategy": "min", "length": 7, "attend": False, "token": None}
IDENTITY = "torch.nn.modules.linear.Identity"


def real_modules() -> Any:
    from sentence_transformers.base import modules

    return modules


@pytest.mark.parametrize("form", ["sentence-transformers", "original", "pylate"])
def test_multi_vector_encoder(form: str, folders: Folders, real: Any, tmp_path: Path) -> None:
    folder = colbert_folder(folders, form, tmp_path / "model")
    theirs, ours = real.MultiVectorEncoder(str(folder), device="cpu"), mine.MultiVectorEncoder(folder)
    for name in ("encode_query", "encode_document"):
        expected = getattr(theirs, name)(TEXTS)
        found = getattr(ours, name)(TEXTS, batch_size=2)
        for array, wanted in zip(found, expected, strict=True):
            near(array, wanted)
    queries, documents = theirs.encode_query(TEXTS[:2]), theirs.encode_document(TEXTS)
    scores = ours.similarity(ours.encode_query(TEXTS[:2]), ours.encode_document(TEXTS))
    near(scores, theirs.similarity(queries, documents), 1e-4)
    pairs = ours.similarity_pairwise(ours.encode_query(TEXTS), ours.encode_document(TEXTS))
    near(pairs, theirs.similarity_pairwise(theirs.encode_query(TEXTS), documents), 1e-4)
    near(ours.encode(TEXTS[3], convert_to_numpy=True), documents[3])
    with pytest.raises(ArgumentError, match="side"):
        ours.encode(TEXTS, task="answer")


@pytest.mark.parametrize("entries", [{"query_maxlen": 10**9}, {"query_maxlen": "9"}, {"doc_maxlen": -1}])
def test_lengths_in_files_are_checked(entries: Any, folders: Folders, real: Any, tmp_path: Path) -> None:
    folder = colbert_folder(folders, "original", tmp_path / "model")
    (folder / "artifact.metadata").write_text(json.dumps(entries))
    with pytest.raises(CheckpointError, match=r"query_expansion is|length of a document"):
        mine.MultiVectorEncoder(folder)


def test_documents_longer_than_the_model_are_cut(folders: Folders, real: Any, tmp_path: Path) -> None:
    folder = colbert_folder(folders, "original", tmp_path / "model")
    (folder / "artifact.metadata").write_text(json.dumps({"doc_maxlen": 10**6}))
    encoder = mine.MultiVectorEncoder(folder)
    assert (
        len(encoder.encode("cat " * 2000))
        == json.loads((folder / "config.json").read_text())["max_position_embeddings"]
    )


def test_scores_of_many_documents_are_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.models.encoders import multi_vector

    rng = np.random.default_rng(0)
    queries, documents = (
        [rng.normal(size=(size, 4)).astype(np.float32) for size in sizes] for sizes in ((3, 0), (5, 0, 9, 1, 2))
    )
    expected = [[(q @ d.T).max(1).sum() if len(d) else 0 for d in documents] for q in queries]
    for most in (1, 6, 1 << 15):
        monkeypatch.setattr(multi_vector, "TOKENS", most)
        near(multi_vector.max_sim(queries, documents), np.array(expected, np.float32))


def test_multi_vectors_of_bge_m3(folders: Folders) -> None:
    """FlagEmbedding projects the last hidden states of all tokens but the first, and normalizes them."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    path = folders("XLMRobertaModel", initializer_range=0.3)
    torch.manual_seed(2)
    linear = torch.nn.Linear(32, 32)
    torch.save(linear.state_dict(), Path(path) / "colbert_linear.pt")
    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
    found = mine.MultiVectorEncoder(path).encode(TEXTS, batch_size=3)
    for text, array in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt", truncation=True)).last_hidden_state[0, 1:]
        near(array, torch.nn.functional.normalize(linear(hidden), dim=-1).detach().numpy())


def test_weights_of_tokens_of_bge_m3(folders: Folders) -> None:
    """FlagEmbedding takes the greatest weight of each token of a text that is not special."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    path = folders("XLMRobertaModel", initializer_range=0.3)
    torch.manual_seed(2)
    linear = torch.nn.Linear(32, 1)
    torch.save(linear.state_dict(), Path(path) / "sparse_linear.pt")
    tokenizer, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
    found = tl.models.SparseEncoder.from_pretrained(path).encode(TEXTS, batch_size=3)
    special = tokenizer.convert_tokens_to_ids(["<s>", "</s>", "<pad>", "<unk>"])
    for text, array in zip(TEXTS, found, strict=True):
        inputs = tokenizer(text, return_tensors="pt", truncation=True)
        with torch.no_grad():
            weights = torch.relu(linear(model(**inputs).last_hidden_state))[0, :, 0].tolist()
        expected = np.zeros(len(array), np.float32)
        for token, weight in zip(inputs["input_ids"][0].tolist(), weights, strict=True):
            expected[token] = max(expected[token], 0 if token in special else weight)
        near(array, expected)
