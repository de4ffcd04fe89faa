"""SparseEncoderTrainingArguments."""

from __future__ import annotations

from dataclasses import dataclass

from tallow.sentence_transformers.training_args import SentenceTransformerTrainingArguments


@dataclass(repr=False)
class SparseEncoderTrainingArguments(SentenceTransformerTrainingArguments):
    """As SentenceTransformerTrainingArguments."""
