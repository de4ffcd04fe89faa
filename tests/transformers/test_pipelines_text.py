"""Pipelines that label texts and tokens, fill masks, and return vectors: as transformers' own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.folders import Folders

from tallow.errors import ArgumentError

TEXTS = ["The cat sat on the mat.", "A dog!", "Rain in the morning"]
LABELS = {
    "id2label": {0: "contradiction", 1: "neutral", 2: "entailment"},
    "label2id": {"contradiction": 0, "neutral": 1, "entailment": 2},
}
TAGS = {"id2label": dict(enumerate(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]))}


def calls(task: str, folder: str, inputs: Any, *options: dict[str, Any], **made: Any) -> Any:
    """Return a program that makes a pipeline and calls it with each of the options."""

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline(task, model=folder, device=-1, **made)
        return [pipe(inputs, **each) for each in options or ({},)]

    return program


CLASSIFYING: dict[str, tuple[Any, dict[str, Any]]] = {
    "one label": (TEXTS[0], {}),
    "several texts": (TEXTS, {}),
    "all": (TEXTS[0], {"top_k": None}),
    "two of each": (TEXTS, {"top_k": 2}),
    "sigmoid": (TEXTS[0], {"function_to_apply": "sigmoid", "top_k": None}),
    "none": (TEXTS[0], {"function_to_apply": "none", "top_k": None}),
    "a pair": ({"text": TEXTS[0], "text_pair": TEXTS[1]}, {}),
    "pairs": ([{"text": TEXTS[0], "text_pair": text} for text in TEXTS], {}),
    "a batch": (TEXTS, {"batch_size": 2}),
    "cut": (" ".join(TEXTS * 9), {"truncation": True, "max_length": 12}),
}


@pytest.mark.parametrize("case", CLASSIFYING)
def test_text_classification(folders: Folders, case: str) -> None:
    inputs, options = CLASSIFYING[case]
    both(calls("text-classification", folders("BertForSequenceClassification", **LABELS), inputs, options))


@pytest.mark.parametrize("problem", ["regression", "multi_label_classification"])
def test_text_classification_by_the_kind_of_problem(folders: Folders, problem: str) -> None:
    folder = folders("BertForSequenceClassification", problem_type=problem, **LABELS)
    both(calls("sentiment-analysis", folder, TEXTS[0], {"top_k": None}, {}))


def test_one_label_gets_a_sigmoid(folders: Folders) -> None:
    both(calls("text-classification", folders("RobertaForSequenceClassification", num_labels=1), TEXTS))


def test_pair_as_a_list_is_refused(folders: Folders) -> None:
    program = calls("text-classification", folders("BertForSequenceClassification", **LABELS), [TEXTS[:2]] * 2)
    both_raise(program, errors=ArgumentError)


ZERO_SHOT: dict[str, dict[str, Any]] = {
    "a list": {"candidate_labels": ["weather", "animals", "food"]},
    "with commas": {"candidate_labels": "weather, animals"},
    "one label": {"candidate_labels": ["weather"]},
    "several may hold": {"candidate_labels": ["weather", "animals", "food"], "multi_label": True},
    "another template": {"candidate_labels": ["rain", "cat"], "hypothesis_template": "It is about {}."},
    "a batch": {"candidate_labels": ["weather", "animals", "food"], "batch_size": 4},
}


@pytest.mark.parametrize("case", ZERO_SHOT)
def test_zero_shot_classification(folders: Folders, case: str) -> None:
    folder = folders("BertForSequenceClassification", **LABELS)

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("zero-shot-classification", model=folder, device=-1)
        return [pipe(TEXTS[2], **ZERO_SHOT[case]), pipe(TEXTS, **ZERO_SHOT[case])]

    both(program)


def test_zero_shot_needs_a_place_for_the_label(folders: Folders) -> None:
    options = {"candidate_labels": ["a"], "hypothesis_template": "nothing"}
    folder = folders("BertForSequenceClassification", **LABELS)
    both_raise(calls("zero-shot-classification", folder, TEXTS[0], options), errors=ArgumentError)


@pytest.mark.parametrize("strategy", ["none", "simple", "first", "average", "max"])
def test_token_classification_by_words(folders: Folders, strategy: str) -> None:
    folder = folders("BertForTokenClassification", **TAGS)
    both(calls("ner", folder, TEXTS, {}, {"batch_size": 2}, {"ignore_labels": []}, aggregation_strategy=strategy))


@pytest.mark.parametrize("strategy", ["none", "simple", "max"])
@pytest.mark.filterwarnings("ignore:Tokenizer does not support real words")
def test_token_classification_without_marks_of_words(folders: Folders, strategy: str) -> None:
    folder = folders("RobertaForTokenClassification", **TAGS)
    both(calls("token-classification", folder, TEXTS[:2], {"aggregation_strategy": strategy, "ignore_labels": ["O"]}))


def test_token_classification_of_words_and_of_long_texts(folders: Folders) -> None:
    folder = folders("BertForTokenClassification", **TAGS)

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("ner", model=folder, device=-1, aggregation_strategy="simple")
        words = pipe(TEXTS[0].split(), is_split_into_words=True)
        return [words, pipe(" ".join(TEXTS * 6), stride=4), pipe(" ".join(TEXTS * 6))]

    both(program)


@pytest.mark.parametrize("options", [{"aggregation_strategy": "mean"}, {"aggregation_strategy": "none", "stride": 2}])
def test_token_classification_refuses(folders: Folders, options: dict[str, Any]) -> None:
    both_raise(calls("ner", folders("BertForTokenClassification", **TAGS), TEXTS[0], options), errors=ArgumentError)


FILLING: dict[str, tuple[Any, dict[str, Any]]] = {
    "one mask": ("The [MASK] sat on the mat.", {}),
    "two masks": ("The [MASK] sat on the [MASK].", {"top_k": 2}),
    "a list of one": (["A [MASK]!"], {"top_k": 3}),
    "several": (["A [MASK]!", "The [MASK] sat on the mat."], {"top_k": 2, "batch_size": 2}),
    "targets": ("The [MASK] sat.", {"targets": ["cat", "the"]}),
    "cut": ("The [MASK] sat." + " A dog!" * 30, {"tokenizer_kwargs": {"truncation": True}}),
}


@pytest.mark.parametrize("case", FILLING)
def test_fill_mask(folders: Folders, case: str) -> None:
    inputs, options = FILLING[case]
    both(calls("fill-mask", folders("BertForMaskedLM"), inputs, options))


def test_fill_mask_needs_a_mask(folders: Folders) -> None:
    both_raise(calls("fill-mask", folders("BertForMaskedLM"), "no mask"), errors=ArgumentError)


def test_feature_extraction(folders: Folders) -> None:
    folder = folders("BertModel")

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("feature-extraction", model=folder, device=-1)
        texts = [pipe(TEXTS[0]), pipe(TEXTS), pipe(TEXTS[0], return_tensors=True), pipe(TEXTS, batch_size=3)]
        return [
            *texts,
            pipe(" ".join(TEXTS * 9), truncation=True),
            pipe("A", tokenize_kwargs={"padding": "max_length"}),
        ]

    both(program)


def test_generators_and_datasets_stream(folders: Folders) -> None:
    folder = folders("BertForSequenceClassification", **LABELS)

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("text-classification", model=folder, device=-1)
        taken: list[str] = []

        def texts() -> Any:
            for text in TEXTS:
                taken.append(text)
                yield text

        results = iter(pipe(texts(), batch_size=2))
        first, count = next(results), len(taken)
        rows = [{"a": text, "b": "A dog!"} for text in TEXTS]

        class Rows(torch.utils.data.Dataset):  # type: ignore[misc]
            def __len__(self) -> int:
                return len(rows)

            def __getitem__(self, i: int) -> dict[str, str]:
                return rows[i]

        from importlib import import_module

        name = "pt_utils" if tf.__name__ == "transformers" else "datasets"
        datasets = import_module(f"{tf.__name__}.pipelines.{name}")
        keyed = list(pipe(datasets.KeyDataset(Rows(), "a"), batch_size=2))
        return [first, count, list(results), keyed, list(pipe(datasets.KeyPairDataset(Rows(), "a", "b")))]

    both(program)


def test_parts_may_be_given_as_objects(folders: Folders) -> None:
    folder = folders("BertForSequenceClassification", **LABELS)

    def program(tf: Any, torch: Any) -> Any:
        model = tf.AutoModelForSequenceClassification.from_pretrained(folder)
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        direct = tf.TextClassificationPipeline(model=model, tokenizer=tokenizer, device=-1)
        return [
            tf.pipeline("text-classification", model=model, tokenizer=tokenizer, top_k=1, device=-1)(TEXTS[0]),
            direct(TEXTS),
            direct.predict(TEXTS[1]),
        ]

    both(program)


def test_pipeline_of_ones_own(folders: Folders) -> None:
    folder = folders("BertForSequenceClassification", **LABELS)

    def program(tf: Any, torch: Any) -> Any:
        class Pair(tf.Pipeline):  # type: ignore[misc]
            def _sanitize_parameters(self, **given: Any) -> Any:
                return ({"second": given["second"]} if "second" in given else {}), {}, {}

            def preprocess(self, text: str, second: str = "A") -> Any:
                return self.tokenizer(text, text_pair=second, return_tensors="pt")

            def _forward(self, model_inputs: Any) -> Any:
                return self.model(**model_inputs)

            def postprocess(self, model_outputs: Any) -> Any:
                return model_outputs.logits[0].argmax(-1).item(), model_outputs.logits[0].numpy()

        pipe = tf.pipeline("text-classification", model=folder, pipeline_class=Pair, device=-1)
        return [pipe(TEXTS[0]), pipe(TEXTS, second="A dog!"), pipe(TEXTS, batch_size=3)]

    both(program)
