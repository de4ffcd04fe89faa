"""`pipeline(task, model)`: a model with what prepares its inputs and reads its outputs, as in transformers.

factory     `pipeline`, which loads the parts of a task
tasks       the tasks by name: the class of each, and the classes of its models
built_in    the models of the package, for a task without a model
base        what all pipelines do: batches, generators, arguments
batches     several inputs as one, and their outputs apart again
scores      scores of labels

The other files are the tasks.
"""

from tallow.lazy_names import names_of

_FILES = {
    "base": ("ChunkPipeline", "Pipeline"),
    "datasets": ("KeyDataset", "KeyPairDataset"),
    "factory": ("pipeline",),
    "feature_extraction": ("FeatureExtractionPipeline",),
    "fill_mask": ("FillMaskPipeline",),
    "images": ("ImageClassificationPipeline", "ImageFeatureExtractionPipeline", "ZeroShotImageClassificationPipeline"),
    "pictures": ("DepthEstimationPipeline", "ImageSegmentationPipeline", "ObjectDetectionPipeline"),
    "question_answering": ("QuestionAnsweringPipeline",),
    "sounds": ("AudioClassificationPipeline",),
    "speech_recognition": ("AutomaticSpeechRecognitionPipeline",),
    "text_classification": ("TextClassificationPipeline", "ZeroShotClassificationPipeline"),
    "text_generation": ("TextGenerationPipeline",),
    "text_to_audio": ("TextToAudioPipeline",),
    "text_to_text": ("SummarizationPipeline", "Text2TextGenerationPipeline", "TranslationPipeline"),
    "token_classification": ("AggregationStrategy", "NerPipeline", "TokenClassificationPipeline"),
}
_LAZY = {name: f"tallow.transformers.pipelines.{file}:{name}" for file, names in _FILES.items() for name in names}

__all__ = list(_LAZY)

__getattr__, __dir__ = names_of(__name__, _LAZY)
