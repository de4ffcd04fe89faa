"""Vectors and labels of images: by a ViT, DINOv2 or ResNet, or by a CLIP, which compares images with any texts.

Letters: N images or texts, D width of the vectors, L labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, CheckpointError
from tallow.models import loading
from tallow.models.auto import model_class
from tallow.models.encoders.text_classifier import probabilities
from tallow.models.pretrained import PretrainedModel
from tallow.models.text_batches import TextBatches, Vectors, length_limit
from tallow.models.vision.clip import CLIPModel
from tallow.models.vision.dinov2 import Dinov2ForImageClassification, Dinov2Model
from tallow.models.vision.found import require_finite
from tallow.models.vision.image_processor import Image, ImageProcessor, is_one
from tallow.models.vision.resnet import ResNetForImageClassification, ResNetModel
from tallow.models.vision.vit import ViTForImageClassification, ViTModel
from tallow.tape.modes import no_grad
from tallow.text.tokenizer import Batch, Tokenizer

CLASSIFIERS = (ViTForImageClassification, Dinov2ForImageClassification, ResNetForImageClassification)
TEMPLATE = "This is a photo of {}."


class ImageEncoder(loading.FromPretrained):
    """Maps similar images to nearby vectors; and with a CLIP, texts to vectors near those of images they describe.

    Args:
        processor: prepares the images.
        model: a ViT or DINOv2, whose vector of an image is that of its first position; a ResNet, which takes the mean
            of its last maps; or a CLIPModel.
        tokenizer: of a CLIP.

    Example:
        encoder = ImageEncoder.from_pretrained("openai/clip-vit-base-patch32")
        images = encoder.encode(["cat.jpg", "beach.jpg"], normalize=True)
        texts = encoder.encode_texts(["two cats on a sofa"], normalize=True)
        texts @ images.T
    """

    kinds: ClassVar[tuple[type[PretrainedModel], ...]] = (ViTModel, Dinov2Model, ResNetModel, *CLASSIFIERS, CLIPModel)

    def __init__(self, processor: ImageProcessor, model: Any, tokenizer: Tokenizer | None = None) -> None:
        self.processor = processor
        self.model = model
        self.tokenizer = tokenizer

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool, **options: Any) -> Self:
        kind = model_class(path)
        if kind not in cls.kinds:
            names = ", ".join(each.__name__ for each in cls.kinds)
            raise CheckpointError(f"{path}: {cls.__name__} does not take a {kind.__name__}", hint=f"it takes {names}")
        processor = ImageProcessor.from_pretrained(path)
        tokenizer = Tokenizer.from_pretrained(path) if kind is CLIPModel else None
        model = loading.read(kind, path, dtype, device, quant, strict)
        return cls(processor, model, tokenizer, **options)

    def encode(self, images: Image | Sequence[Image], *, batch_size: int = 8, normalize: bool = False) -> Vectors:
        """Return the vectors of images.

        Args:
            images: as for `ImageProcessor`.
            batch_size: how many images to compute at once.
            normalize: scale vectors to length 1.

        Shapes:  (N, D) for N images, (D,) for a single one
        Raises:  ArgumentError for no images and a batch_size below 1; NumericError when a result holds NaN or
                 infinities; as `ImageProcessor`
        """
        vectors = self._compute([images] if is_one(images) else images, self._features, batch_size)
        vectors = unit(vectors) if normalize else vectors
        return vectors[0] if is_one(images) else vectors

    def encode_texts(self, texts: str | Sequence[str], *, batch_size: int = 32, normalize: bool = False) -> Vectors:
        """Return the vectors of texts that describe images. Texts that are too long are truncated.

        Args:    as for `encode`
        Shapes:  (N, D) for N texts, (D,) for a single string
        Raises:  ArgumentError for a model without an encoder of texts, and a batch_size below 1; TokenizerError for a
                 text that cannot be encoded; NumericError
        """
        if self.tokenizer is None:
            raise ArgumentError(f"a {type(self.model).__name__} reads no texts", hint="choose a CLIP")
        text = self.model.text_model
        batches = TextBatches(self.tokenizer, text, length_limit(None, self.tokenizer, text.context_length))
        rows = batches.tokenize([texts] if isinstance(texts, str) else texts)
        vectors = batches.compute_each(rows, self._text_features, most=batch_size)
        vectors = unit(vectors) if normalize else vectors
        return vectors[0] if isinstance(texts, str) else vectors

    def _compute(self, images: Sequence[Image], compute: Callable[[Tensor], Tensor], batch_size: int) -> Vectors:
        """Return what `compute` returns for the pixels of images, in batches."""
        if batch_size < 1 or not len(images):
            raise ArgumentError(f"{len(images)} images, batch_size={batch_size}", hint="pass 1 or more of each")
        device, computed = next(self.model.parameters()).device, []
        for start in range(0, len(images), batch_size):
            pixels = self.processor(images[start : start + batch_size]).to(device)
            with no_grad():
                computed.append(compute(pixels).float().cpu().numpy())
            require_finite(computed[-1])
        return np.concatenate(computed)

    def _features(self, pixels: Tensor) -> Tensor:
        if isinstance(self.model, CLIPModel):
            return self.model.get_image_features(pixels)
        base = getattr(self.model, self.model.base_model_prefix, self.model)  # without the head, if there is one
        output = base(pixels)
        return output.pooler_output.flatten(1) if isinstance(base, ResNetModel) else output.last_hidden_state[:, 0]

    def _text_features(self, batch: Batch) -> Vectors:
        tokens_BT = wrap(devices.move(batch.input_ids, next(self.model.parameters()).device))
        with no_grad():  # without the mask: padding behind a text does not change its vector
            return self.model.get_text_features(tokens_BT).float().cpu().numpy()


class ImageClassifier(ImageEncoder):
    """Labels images, by the labels that the model was trained with or, with a CLIP, by any texts (zero-shot).

    Args:
        processor: prepares the images.
        model: a ViT, DINOv2 or ResNet for image classification; or a CLIPModel, with its tokenizer.
        labels: with a CLIP, two or more short descriptions to choose from.
        template: the sentence that a CLIP compares with images, with {} in place of a label.

    Source:  Radford et al. 2021, arXiv:2103.00020, section 3.1

    Example:
        classifier = ImageClassifier.from_pretrained("google/vit-base-patch16-224")
        classifier.labels[classifier.predict(["cat.jpg"])[0].argmax()]
        clip = ImageClassifier.from_pretrained("openai/clip-vit-base-patch32", labels=["a cat", "a dog"])
        clip.predict(["cat.jpg"])
    """

    kinds = (*CLASSIFIERS, CLIPModel)
    load_options = frozenset(("labels", "template"))

    def __init__(
        self,
        processor: ImageProcessor,
        model: Any,
        tokenizer: Tokenizer | None = None,
        *,
        labels: Sequence[str] | None = None,
        template: str = TEMPLATE,
    ) -> None:
        super().__init__(processor, model, tokenizer)
        self._texts_LD: Vectors | None = None
        if tokenizer is None:
            if labels is not None:
                raise ArgumentError(
                    f"a {type(model).__name__} has labels of its own", hint="leave out labels, or choose a CLIP"
                )
            self.labels: tuple[str, ...] = model.config.labels
            return
        if labels is None or isinstance(labels, str) or len(labels) < 2:
            hint = 'pass labels, such as "a cat" and "a dog"'
            raise ArgumentError("a CLIP chooses between two or more labels", hint=hint)
        if "{}" not in template:
            raise ArgumentError(f"the template {template!r:.80} has no place for a label", hint="write {} there")
        self.labels = tuple(labels)
        texts_LD = self.encode_texts([template.replace("{}", label) for label in labels], normalize=True)
        self._texts_LD = texts_LD * np.float32(model.logit_scale.exp().item())

    def logits(self, images: Sequence[Image], *, batch_size: int = 8) -> Vectors:
        """Return the logits of images; with a CLIP, their cosines with the labels times the model's factor.

        Args:    as for `encode`
        Shapes:  (N, L)
        Raises:  as `encode`
        """
        if self._texts_LD is None:
            return self._compute(images, self.model, batch_size)
        return unit(self._compute(images, self._features, batch_size)) @ self._texts_LD.T

    def predict(self, images: Sequence[Image], *, batch_size: int = 8) -> Vectors:
        """Return the probability of each label; as `logits`. With one label it is the sigmoid of its logit."""
        return probabilities(self.logits(images, batch_size=batch_size))


def unit(vectors_ND: Vectors) -> Vectors:
    """Return vectors of length 1."""
    return vectors_ND / np.maximum(np.linalg.norm(vectors_ND, axis=-1, keepdims=True), 1e-12)
