"""Captions of images, and answers to questions about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError
from tallow.models import loading
from tallow.models.auto import model_class
from tallow.models.vision.blip import BlipForConditionalGeneration, BlipForQuestionAnswering, BlipWriter
from tallow.models.vision.image_processor import Image, ImageProcessor
from tallow.text.tokenizer import Tokenizer


class ImageCaptioner(loading.FromPretrained):
    """Writes captions of images, or answers questions about them.

    Args:
        processor: prepares the images.
        model: a BLIP for captions, or one for answers.
        tokenizer: of the model.

    Attributes:
        answers: whether the model answers questions; otherwise it writes captions.

    Example:
        captioner = ImageCaptioner.from_pretrained("Salesforce/blip-image-captioning-base")
        print("".join(captioner.caption("photo.jpg")))
    """

    def __init__(self, processor: ImageProcessor, model: BlipWriter, tokenizer: Tokenizer) -> None:
        self.processor, self.model, self.tokenizer = processor, model, tokenizer
        self.answers = isinstance(model, BlipForQuestionAnswering)

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        kind = model_class(path)
        if not issubclass(kind, BlipWriter):
            raise CheckpointError(f"{path}: a {kind.__name__} writes no captions", hint="choose a BLIP")
        processor, tokenizer = ImageProcessor.from_pretrained(path), Tokenizer.from_pretrained(path)
        return cls(processor, loading.read(kind, path, dtype, device, quant, strict), tokenizer)

    def caption(self, image: Image, prompt: str = "", **options: Any) -> Iterator[str]:
        """Write the caption of an image, and yield pieces as they come.

        Args:
            image: as for `ImageProcessor`.
            prompt: its beginning, which is not among the pieces.
            options: `max_tokens`, `sample`, `num_beams`, `processors`, as of `Seq2SeqLM.generate_text`; at most 50
                tokens by default.

        Raises:  ArgumentError for a model of answers, and a prompt that is too long; ShapeError, ImageError, OSError
                 for an image that cannot be read; TokenizerError
        """
        if not isinstance(self.model, BlipForConditionalGeneration):
            raise ArgumentError("the model answers questions", hint="call answer(image, question)")
        begun = self.tokenizer.encode(prompt, add_special_tokens=False) if prompt else []
        return self._text(self.model.caption_ids(self._pixels(image), begun, **options), begun)

    def answer(self, image: Image, question: str, **options: Any) -> Iterator[str]:
        """Answer a question about an image, and yield pieces as they come.

        Args, raises:  as `caption`
        """
        if not isinstance(self.model, BlipForQuestionAnswering):
            raise ArgumentError("the model writes captions", hint="call caption(image), or choose a BLIP for answers")
        ids = self.tokenizer.encode(question)
        return self._text(self.model.answer_ids(self._pixels(image), ids, **options), [])

    def _pixels(self, image: Image) -> Tensor:
        return self.processor(image).to(next(self.model.parameters()).device)

    def _text(self, ids: Iterator[int], previous: Sequence[int]) -> Iterator[str]:
        return self.tokenizer.decode_stream(ids, previous=previous)
