"""Processors: a tokenizer with an image processor or a feature extractor, called as one.

Source:  transformers 5.23, `ProcessorMixin`, `CLIPProcessor` and `WhisperProcessor`
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.io.atomic import atomic_write
from tallow.text.tokenizer_folder import has_tokenizer
from tallow.transformers.auto_tokenizer import AutoTokenizer, letter_tokenizer
from tallow.transformers.feature_extraction import AutoFeatureExtractor
from tallow.transformers.feature_extraction_whisper import WhisperFeatureExtractor
from tallow.transformers.image_processing import AutoImageProcessor
from tallow.transformers.preprocessing import FILE, NESTED, BatchFeature
from tallow.transformers.tokenization import TokenizersBackend
from tallow.transformers.tokenization_files import folder_of
from tallow.transformers.uploads import upload

# For each part of a processor: what loads it.
LOADERS: dict[str, Any] = {
    "image_processor": AutoImageProcessor,
    "feature_extractor": AutoFeatureExtractor,
    "tokenizer": AutoTokenizer,
}
# Groups of arguments, and the part that takes each.
GROUPS = {"text_kwargs": "tokenizer", "images_kwargs": "image_processor", "audio_kwargs": "feature_extractor"}
_TEXT_ARGUMENTS = frozenset(inspect.signature(TokenizersBackend.__call__).parameters) - {
    "self",
    "kwargs",
    "return_tensors",
}


class ProcessorMixin:
    """A tokenizer and what prepares images or sound, with one call for both.

    Attributes:
        attributes: the names of the parts, in the order of the constructor.
        tokenizer, image_processor, feature_extractor: the parts.
    """

    attributes: ClassVar[tuple[str, ...]]
    tokenizer: Any
    feature_extractor: Any
    image_processor: Any

    def __init__(self, *parts: Any, chat_template: Any = None, **named: Any) -> None:
        given = dict(zip(self.attributes, parts, strict=False)) | named
        if len(parts) > len(self.attributes) or given.keys() != {*self.attributes}:
            raise ArgumentTypeError(
                f"{type(self).__name__} of {', '.join(given) or 'nothing'}",
                hint=f"pass {' and '.join(self.attributes)}",
            )
        vars(self).update(given)
        self.chat_template = chat_template

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        subfolder: str = "",
        **kwargs: Any,
    ) -> Self:
        """Load the parts of a folder, or of a repository on the Hub.

        Args:
            revision, token, subfolder: as for `AutoTokenizer.from_pretrained`.
            kwargs: settings of the tokenizer that replace those of its files.

        Raises:  CheckpointError if a part is missing; HubError; TokenizerError
        """
        folder = folder_of(pretrained_model_name_or_path, revision, token, subfolder, kwargs)
        parts = {name: LOADERS[name].from_pretrained(folder, **kwargs) for name in cls.attributes}
        return cls(**parts)

    def __call__(self, images: Any = None, text: Any = None, audio: Any = None, **kwargs: Any) -> BatchFeature:
        """Return the inputs of the model for texts with images or sound.

        Args:
            images, text, audio: as the parts take them; one of them may be left out.
            kwargs: arguments of the parts, also as `text_kwargs`, `images_kwargs` and `audio_kwargs`; and
                `return_tensors`, of all parts.

        Raises:  ArgumentError without any of them, and as the parts do
        """
        inputs = {"tokenizer": text, "image_processor": images, "feature_extractor": audio}
        if all(inputs[name] is None for name in self.attributes):
            raise ArgumentError(f"{type(self).__name__}: no input", hint="pass text, images or audio")
        data: dict[str, Any] = {}
        for name in ("tokenizer", "image_processor", "feature_extractor"):
            if name in self.attributes and inputs[name] is not None:
                data |= getattr(self, name)(inputs[name], **_arguments_of(name, kwargs))
        return BatchFeature(data)

    def decode(self, *args: Any, **kwargs: Any) -> Any:
        """Return the text of ids, as the tokenizer does."""
        return self.tokenizer.decode(*args, **kwargs)

    def batch_decode(self, *args: Any, **kwargs: Any) -> list[str]:
        """Return the texts of rows of ids, as the tokenizer does."""
        return self.tokenizer.batch_decode(*args, **kwargs)

    def apply_chat_template(self, conversation: Any, *, tokenize: bool = False, **kwargs: Any) -> Any:
        """Return the text of a conversation, or its ids, as the tokenizer does."""
        template = kwargs.pop("chat_template", None) or self.chat_template
        return self.tokenizer.apply_chat_template(conversation, chat_template=template, tokenize=tokenize, **kwargs)

    def parse_response(self, response: Any, schema: Any = None, *, prefix: Any = None, tools: Any = None) -> Any:
        """Return the message that a model's answer is.  Args, raises: as the tokenizer's"""
        return self.tokenizer.parse_response(response, schema, prefix=prefix, tools=tools)

    @property
    def model_input_names(self) -> list[str]:
        """The names of all entries that the parts return."""
        return list(dict.fromkeys(name for part in self.attributes for name in getattr(self, part).model_input_names))

    def save_pretrained(self, save_directory: str | Path, push_to_hub: bool = False, **kwargs: Any) -> tuple[str, ...]:
        """Write the files of all parts, and return their paths.  Args: kwargs: arguments of `push_to_hub`"""
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        settings: dict[str, Any] = {"processor_class": type(self).__name__}
        paths: list[str] = []
        for name in self.attributes:
            part = getattr(self, name)
            paths += part.save_pretrained(folder)
            if name != "tokenizer":
                settings[name] = json.loads(part.to_json_string())
        with atomic_write(folder / NESTED) as file:
            file.write((json.dumps(settings, indent=2, sort_keys=True) + "\n").encode())
        if push_to_hub:
            self.push_to_hub(kwargs.pop("repo_id", folder.name), **kwargs)
        return (*paths, str(folder / NESTED))

    def push_to_hub(self, repo_id: str, *, commit_message: str = "Upload processor", **kwargs: Any) -> Any:
        """Upload the files to a repository on the Hub.

        Args:    kwargs: `private`, `token`, `revision` and `create_pr`, as for a tokenizer
        Raises:  MissingPackageError without `huggingface_hub`; the errors of that package
        """
        return upload(self.save_pretrained, repo_id, commit_message=commit_message, **kwargs)

    def __repr__(self) -> str:
        parts = "".join(f"\n- {name}: {getattr(self, name)!r}" for name in self.attributes)
        return f"{type(self).__name__}:{parts}"


def _arguments_of(part: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that a part takes."""
    own = {name: value for name, value in kwargs.items() if name not in GROUPS and name != "common_kwargs"}
    taken = {name: value for name, value in own.items() if (name in _TEXT_ARGUMENTS) == (part == "tokenizer")}
    if part == "feature_extractor":  # it has some of the tokenizer's arguments
        taken = own
    both = {name: kwargs[name] for name in ("return_tensors",) if name in kwargs} | dict(
        kwargs.get("common_kwargs", {})
    )
    group = next(name for name, value in GROUPS.items() if value == part)
    return both | taken | dict(kwargs.get(group, {}))


class CLIPProcessor(ProcessorMixin):
    """CLIP's tokenizer and image processor: see `ProcessorMixin`."""

    attributes = ("image_processor", "tokenizer")


class BlipProcessor(CLIPProcessor):
    """BLIP's tokenizer and image processor: see `ProcessorMixin`. Texts have no segments."""

    def __call__(self, images: Any = None, text: Any = None, audio: Any = None, **kwargs: Any) -> BatchFeature:
        """Return the inputs of the model for images, with texts or without.  Args, raises: as `ProcessorMixin`"""
        data = super().__call__(images, text, audio, **kwargs)
        data.pop("token_type_ids", None)
        return data


class SoundProcessor(ProcessorMixin):
    """The base of processors with a feature extractor and a tokenizer."""

    attributes = ("feature_extractor", "tokenizer")

    def __call__(self, audio: Any = None, text: Any = None, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return the features of sound; the ids of texts; of both, features with `labels`.

        Args:    kwargs: arguments of the feature extractor, such as `sampling_rate`, or of the tokenizer
        Raises:  ArgumentError without sound and text, and as the parts do
        """
        if audio is None and text is None:
            raise ArgumentError(f"{type(self).__name__}: no input", hint="pass audio or text")
        rate = kwargs.pop("sampling_rate", None)
        ids = None if text is None else self.tokenizer(text, **kwargs)
        if audio is None:
            return ids
        features = self.feature_extractor(audio, sampling_rate=rate, **kwargs)
        if ids is not None:
            features["labels"] = ids["input_ids"]
        return features


class Wav2Vec2Processor(SoundProcessor):
    """The feature extractor and the tokenizer of letters of wav2vec2: see `ProcessorMixin`."""

    def pad(self, input_features: Any = None, labels: Any = None, **kwargs: Any) -> Any:
        """Return rows with the same length: of samples, of ids, or of both.

        Args:
            input_features: dicts with `input_values`, one for each sound.
            labels: dicts with `input_ids`, one for each text.
            kwargs: arguments of both parts.

        Raises:  ArgumentError without any, and as the parts do
        """
        if input_features is None and labels is None:
            raise ArgumentError("Wav2Vec2Processor.pad: no input", hint="pass input_features or labels")
        ids = None if labels is None else self.tokenizer.pad(labels, **kwargs)
        if input_features is None:
            return ids
        features = self.feature_extractor.pad(input_features, **kwargs)
        if ids is not None:
            features["labels"] = ids["input_ids"]
        return features


class WhisperProcessor(SoundProcessor):
    """Whisper's feature extractor and tokenizer: see `ProcessorMixin`."""

    def get_decoder_prompt_ids(self, task: Any = None, language: Any = None, no_timestamps: bool = True) -> Any:
        """Return the ids that begin a transcript with their places: see `WhisperTokenizer`."""
        return self.tokenizer.get_decoder_prompt_ids(task=task, language=language, no_timestamps=no_timestamps)

    def get_prompt_ids(self, text: str, return_tensors: str = "np") -> Any:
        """Return the ids of a text that came before: see `WhisperTokenizer`."""
        return self.tokenizer.get_prompt_ids(text, return_tensors=return_tensors)


class AutoProcessor:
    """Loads what prepares the inputs of a folder's model: a processor, or its only part."""

    def __init__(self) -> None:
        raise ArgumentTypeError("AutoProcessor has no objects", hint="call AutoProcessor.from_pretrained(name)")

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        revision: str | None = None,
        token: str | None = None,
        subfolder: str = "",
        **kwargs: Any,
    ) -> Any:
        """Return the processor of a folder or repository; of a model of texts or images alone, the one part.

        Args:
            revision, token, subfolder: as for `AutoTokenizer.from_pretrained`.
            kwargs: settings that replace those of the files.

        Raises:  CheckpointError if the folder has no part; HubError
        """
        folder = folder_of(pretrained_model_name_or_path, revision, token, subfolder, kwargs)
        found = {}
        for name in ("image_processor", "feature_extractor"):
            try:
                found[name] = LOADERS[name].from_pretrained(folder)
                break
            except CheckpointError:
                continue
        if has_tokenizer(folder) or letter_tokenizer(folder) is not None:
            found["tokenizer"] = AutoTokenizer.from_pretrained(folder, **kwargs)
        whole = (
            WhisperProcessor if type(found.get("feature_extractor")) is WhisperFeatureExtractor else Wav2Vec2Processor
        )
        pair = BlipProcessor if getattr(found.get("image_processor"), "kind", "") == "Blip" else CLIPProcessor
        for kind in (pair, whole):
            if found.keys() == {*kind.attributes}:
                return kind(**found)
        if not found:
            raise CheckpointError(f"{folder} has no {FILE} and no tokenizer", hint="add the files of the model")
        return next(iter(found.values()))
