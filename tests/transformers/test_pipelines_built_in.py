"""`pipeline`: names of tasks, what it refuses, and the models of the package, which answer offline."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from support.paths import ROOT

import tallow as tl
from tallow.errors import ArgumentError, InvalidKeyError, UnsupportedError
from tallow.transformers.pipelines.tasks import ALIASES, ELSEWHERE, TASKS, task_named, task_of

SENTENCES = {
    "The orchestra played a symphony.": "music",
    "Boil the potatoes and add salt.": "cooking",
    "The nurse gave him a vaccine.": "medicine",
}


def test_pipeline_of_tallow_is_that_of_transformers_names() -> None:
    assert tl.pipeline is tl.transformers.pipeline  # type: ignore[attr-defined]
    assert tl.transformers.pipelines.pipeline is tl.pipeline  # type: ignore[attr-defined]


@pytest.mark.native
def test_import_of_tallow_does_not_load_it() -> None:
    program = "import sys, tallow; print([n for n in sys.modules if n.startswith('tallow.transformers')])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_tasks_are_those_of_transformers() -> None:
    pipelines = pytest.importorskip("transformers.pipelines")
    known = {*pipelines.SUPPORTED_TASKS, *pipelines.TASK_ALIASES, *pipelines.REMOVED_TASKS, "image-to-text"}
    ours = {*TASKS, *ELSEWHERE, *ALIASES}
    assert ours == known
    for name in pipelines.TASK_ALIASES.keys() - ELSEWHERE:
        assert task_named(name) == pipelines.TASK_ALIASES[name]


@pytest.mark.parametrize(
    ("architecture", "task"),
    {
        "BertForSequenceClassification": "text-classification",
        "LlamaForCausalLM": "text-generation",
        "GPT2LMHeadModel": "text-generation",
        "WhisperForConditionalGeneration": "automatic-speech-recognition",
        "T5ForConditionalGeneration": "text2text-generation",
        "MarianMTModel": "translation",
        "CLIPModel": "zero-shot-image-classification",
        "ViTModel": "image-feature-extraction",
        "BertModel": "feature-extraction",
        "BertForPreTraining": None,
    }.items(),
)
def test_architecture_says_the_task(architecture: str, task: str | None) -> None:
    assert task_of(architecture) == task


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "nothing": ({}, ArgumentError, "no task and no model"),
    "a misspelt task": ({"task": "text-generaton"}, InvalidKeyError, "unknown task"),
    "a task without languages": ({"task": "translation_en"}, InvalidKeyError, "translation_en_to_fr"),
    "another library's task": ({"task": "mask-generation"}, UnsupportedError, "install transformers"),
    "no model for it": ({"task": "fill-mask"}, ArgumentError, "model='distilbert/distilroberta-base'"),
    "a tokenizer alone": ({"task": "fill-mask", "tokenizer": "x"}, ArgumentError, "pass the model too"),
    "videos": ({"task": "fill-mask", "video_processor": 1}, ArgumentError, "video_processor"),
    "a model as the task": ({"task": tl.nn.Linear(1, 1)}, ArgumentError, "a task is a name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    arguments, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        tl.pipeline(**arguments)


def test_zero_shot_by_the_likeness_of_meanings() -> None:
    pipe = tl.pipeline("zero-shot-classification")
    labels = list(SENTENCES.values())
    for found in pipe(list(SENTENCES), candidate_labels=labels, batch_size=4):
        assert found["labels"][0] == SENTENCES[found["sequence"]]
        assert sum(found["scores"]) == pytest.approx(1)


def test_features_of_the_package_are_near_for_near_meanings() -> None:
    pipe = tl.pipeline("feature-extraction")
    texts = ["A kitten naps.", "a young cat that is asleep", "The bank raises interest."]
    vectors = tl.cat([pipe(text, return_tensors=True).mean(dim=1) for text in texts])
    vectors = tl.nn.functional.normalize(vectors)
    near, far = (vectors @ vectors.T)[0, 1:].tolist()
    assert near > far


def test_unknown_argument_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"candidate_label'.*\n.*candidate_labels"):
        tl.pipeline("zero-shot-classification")("text", candidate_label=["a"])


def test_stories_and_speech_of_the_package() -> None:
    [told] = tl.pipeline("text-generation")("Once upon a time", max_new_tokens=4, do_sample=False)
    assert told["generated_text"].startswith("Once upon a time ")
    hear = tl.pipeline("automatic-speech-recognition")
    samples = ROOT / "wasm_examples" / "whisper" / "samples"
    pytest.importorskip("soundfile")
    found = hear(str(samples / "timer.flac"), return_timestamps=True)
    assert found["text"] == " set the timer to twenty minutes"
    words = hear(str(samples / "timer.flac"), return_timestamps="word")["chunks"]
    assert [word["text"] for word in words] == [" set", " the", " timer", " to", " twenty", " minutes"]
    assert [word["timestamp"] for word in words] == sorted(word["timestamp"] for word in words)
    parts = hear(str(samples / "commands.flac"), chunk_length_s=4, return_timestamps=True)
    assert parts["text"] == " turn left go forward ten steps open the red door stop"
    starts = [chunk["timestamp"][0] for chunk in parts["chunks"]]
    assert starts == sorted(starts)
