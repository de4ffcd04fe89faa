"""Names that a package imports on first use. Written by scripts/build_stubs.py."""

from tallow.sentence_transformers.cross_encoder.model import CrossEncoder as CrossEncoder
from tallow.sentence_transformers.cross_encoder.trainer import CrossEncoderTrainer as CrossEncoderTrainer
from tallow.sentence_transformers.cross_encoder.training_args import CrossEncoderTrainingArguments as CrossEncoderTrainingArguments
from tallow.sentence_transformers.readers import InputExample as InputExample
from tallow.sentence_transformers.multi_vector import MultiVectorEncoder as MultiVectorEncoder
from tallow.sentence_transformers.model import SentenceTransformer as SentenceTransformer
from tallow.sentence_transformers.model_card import SentenceTransformerModelCardData as SentenceTransformerModelCardData
from tallow.sentence_transformers.trainer import SentenceTransformerTrainer as SentenceTransformerTrainer
from tallow.sentence_transformers.training_args import SentenceTransformerTrainingArguments as SentenceTransformerTrainingArguments
from tallow.sentence_transformers.util.similarity import SimilarityFunction as SimilarityFunction
from tallow.sentence_transformers.sparse_encoder.model import SparseEncoder as SparseEncoder
from tallow.sentence_transformers.sparse_encoder.trainer import SparseEncoderTrainer as SparseEncoderTrainer
from tallow.sentence_transformers.sparse_encoder.training_args import SparseEncoderTrainingArguments as SparseEncoderTrainingArguments
from tallow.sentence_transformers import cross_encoder as cross_encoder
from tallow.sentence_transformers import evaluation as evaluation
from tallow.sentence_transformers import losses as losses
from tallow.sentence_transformers.util.hard_negatives import mine_hard_negatives as mine_hard_negatives
from tallow.sentence_transformers import model as model
from tallow.sentence_transformers import model_card as model_card
from tallow.sentence_transformers import models as models
from tallow.sentence_transformers import multi_vector as multi_vector
from tallow.sentence_transformers.util.quantization import quantize_embeddings as quantize_embeddings
from tallow.sentence_transformers import readers as readers
from tallow.sentence_transformers import sparse_encoder as sparse_encoder
from tallow.sentence_transformers import trainer as trainer
from tallow.sentence_transformers import training_args as training_args
from tallow.sentence_transformers import util as util

__all__ = [
    "CrossEncoder",
    "CrossEncoderTrainer",
    "CrossEncoderTrainingArguments",
    "InputExample",
    "MultiVectorEncoder",
    "SentenceTransformer",
    "SentenceTransformerModelCardData",
    "SentenceTransformerTrainer",
    "SentenceTransformerTrainingArguments",
    "SimilarityFunction",
    "SparseEncoder",
    "SparseEncoderTrainer",
    "SparseEncoderTrainingArguments",
    "cross_encoder",
    "evaluation",
    "losses",
    "mine_hard_negatives",
    "model",
    "model_card",
    "models",
    "multi_vector",
    "quantize_embeddings",
    "readers",
    "sparse_encoder",
    "trainer",
    "training_args",
    "util",
]
