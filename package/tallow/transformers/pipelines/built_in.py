"""The models of the package as pipelines have them, so that tasks answer offline.

stories     text-generation
spoken      automatic-speech-recognition
glosses     feature-extraction, and zero-shot-classification by the likeness of meanings

Letters: B texts of a batch, T positions, D width.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import tallow as tl
from tallow import nn
from tallow.errors import ArgumentError
from tallow.lazy_names import import_name
from tallow.models.built_in import glosses, spoken, stories
from tallow.nn import functional as F
from tallow.text.llama2c import Llama2cTokenizer
from tallow.text.whisper import WhisperTokenizer
from tallow.transformers.modeling_outputs import BaseModelOutput, SequenceClassifierOutput
from tallow.transformers.pipelines.tasks import Task

Parts = tuple[Any, dict[str, Any]]
LABELS = {0: "contradiction", 1: "entailment"}
SHARPNESS = 10.0  # the factor of cosines: with it, the likeliest of three labels of WordNet's topics gets about 0.8


def load(name: str, task: Task) -> Parts:
    """Return the model of a task, and what prepares its inputs, by their names.

    Raises:  ArgumentError for a task that no model of the package fits
    """
    if name not in LOADERS:
        raise ArgumentError(
            f"no model of the package fits the task {name!r}",
            hint=f"name one, as in pipeline({name!r}, model={task.default!r}); "
            f"tasks with a model of the package: {', '.join(LOADERS)}",
        )
    return LOADERS[name]()


def tokenizer_of(entries: dict[str, Any], config: dict[str, Any]) -> Any:
    """Return a tokenizer of the entries of a `tokenizer.json` and a `tokenizer_config.json`."""
    engine = import_name("tallow.transformers.tokenization_files:library")().Tokenizer.from_str(json.dumps(entries))
    return named("PreTrainedTokenizerFast")(tokenizer_object=engine, **config)


def named(name: str) -> Any:
    """Return a class of `tallow.transformers`."""
    return import_name(f"tallow.transformers:{name}")


def _stories() -> Parts:
    model = named("AutoModelForCausalLM").from_pretrained(str(stories.FOLDER), dtype=tl.float32)
    source = stories.FOLDER / "tokenizer.bin"
    entries, config = Llama2cTokenizer.load(source, model.config.vocab_size).hugging_face_form()
    # A text that continues a prompt keeps its first space: pipelines decode it apart from the prompt.
    steps = [step for step in entries["decoder"]["decoders"] if step["type"] != "Strip"]
    tokenizer = tokenizer_of(entries | {"decoder": {"type": "Sequence", "decoders": steps}}, config)
    tokenizer.pad_token = tokenizer.eos_token
    return model, {"tokenizer": tokenizer}


def _spoken() -> Parts:
    model = named("AutoModelForSpeechSeq2Seq").from_pretrained(str(spoken.FOLDER), dtype=tl.float32)
    config = model.config
    seconds = config.max_source_positions // 50  # a position is 20 ms
    extractor = named("WhisperFeatureExtractor")(feature_size=config.num_mel_bins, chunk_length=seconds)
    words = WhisperTokenizer.from_pretrained(spoken.FOLDER, config.vocab_size)
    tokenizer = SpokenTokenizer(words)
    # As Whisper's own files say it.
    model.generation_config.max_length = config.max_target_positions
    model.generation_config.no_timestamps_token_id = words.no_timestamps
    return model, {"tokenizer": tokenizer, "feature_extractor": extractor}


def _vectors() -> Parts:
    encoder = glosses.load()
    return WordVectors(encoder), {"tokenizer": _words()}


def _likeness() -> Parts:
    return Likeness(glosses.load()), {"tokenizer": _words()}


def _words() -> Any:
    names = ["input_ids", "token_type_ids", "attention_mask"]
    return named("PreTrainedTokenizerFast").from_pretrained(
        str(glosses.FOLDER), pad_token="[PAD]", model_input_names=names, model_max_length=512
    )


LOADERS: dict[str, Callable[[], Parts]] = {
    "automatic-speech-recognition": _spoken,
    "feature-extraction": _vectors,
    "text-generation": _stories,
    "zero-shot-classification": _likeness,
}


class WordVectors(nn.Module):
    """The vectors of words (B, T, D), which `glosses` pools to vectors of texts.

    Args:  encoder: `glosses.load()`
    """

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.words = encoder.model
        self.config = SimpleNamespace(model_type="glosses", id2label=LABELS, label2id={v: k for k, v in LABELS.items()})

    def forward(self, input_ids: Any, **masks: Any) -> Any:
        return BaseModelOutput(last_hidden_state=self.words(input_ids))


class Likeness(WordVectors):
    """Says by the likeness of two texts whether the first entails the second, as zero-shot classification asks."""

    def forward(self, input_ids: Any, **masks: Any) -> Any:
        x_BTD = self.words(input_ids)
        sums = (
            (x_BTD * (masks["attention_mask"] * (masks["token_type_ids"] == which)).unsqueeze(-1)).sum(1)
            for which in (0, 1)
        )
        texts_BD, labels_BD = (F.normalize(each, dim=-1) for each in sums)
        cosines_B = SHARPNESS * (texts_BD * labels_BD).sum(-1)
        return SequenceClassifierOutput(logits=tl.stack([-cosines_B, cosines_B], dim=-1))


class SpokenTokenizer:
    """The built-in speech model's tokenizer, with the methods that a pipeline calls."""

    unk_token_id = None

    def __init__(self, words: WhisperTokenizer) -> None:
        self.words = words
        self.pad_token_id = self.eos_token_id = words.eot
        self.all_special_ids = list(range(words.eot, words.timestamp_begin))

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> Any:
        """Return the ids of special tokens; None for others."""
        if not isinstance(tokens, str):
            return [self.convert_tokens_to_ids(token) for token in tokens]
        names = {"startofprev": self.words.sot_prev, "startoftranscript": self.words.sot}
        names |= {"notimestamps": self.words.no_timestamps}
        names |= dict(zip(self.words.languages, self.words.language_tokens, strict=True))
        return names.get(tokens.removeprefix("<|").removesuffix("|>"))

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True, decode_with_timestamps: bool = False) -> str:
        """Return the text of ids, without special tokens, or with them and the times."""
        if decode_with_timestamps:
            return self.words.decode_with_timestamps(ids)
        return self.words.decode([i for i in ids if i < self.words.eot or not skip_special_tokens])
