"""`AutoFeatureExtractor`: what prepares sounds, of the class that a folder names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow.errors import ArgumentTypeError, CheckpointError
from tallow.transformers.feature_extraction_speech import Wav2Vec2FeatureExtractor
from tallow.transformers.feature_extraction_whisper import WhisperFeatureExtractor
from tallow.transformers.preprocessing import only_settings, read_settings
from tallow.transformers.sound_inputs import SoundExtractor
from tallow.transformers.tokenization_files import folder_of

CLASSES: dict[str, type[SoundExtractor]] = {
    kind.__name__: kind for kind in (Wav2Vec2FeatureExtractor, WhisperFeatureExtractor)
}


class AutoFeatureExtractor:
    """Loads the feature extractor of a folder or repository."""

    def __init__(self) -> None:
        raise ArgumentTypeError("AutoFeatureExtractor has no objects", hint="call AutoFeatureExtractor.from_pretrained")

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
        """Return the feature extractor of a folder, with the arguments of `Preprocessor.from_pretrained`.

        Raises:  CheckpointError if there is none, or one of another class; HubError
        """
        folder = folder_of(pretrained_model_name_or_path, revision, token, subfolder, kwargs)
        settings = read_settings(folder, SoundExtractor.nested)
        named = (
            settings.get(SoundExtractor.type_key) or settings.get("image_processor_type") or "WhisperFeatureExtractor"
        )
        if named not in CLASSES:
            raise CheckpointError(
                f"{SoundExtractor.type_key} is {named!r:.80}",
                hint=f"tallow has {', '.join(CLASSES)}; for images use AutoImageProcessor",
            )
        return CLASSES[named].from_dict(settings, **only_settings(kwargs))
