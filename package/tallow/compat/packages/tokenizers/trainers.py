"""tokenizers.trainers: names; training needs the package itself."""

from __future__ import annotations

from tallow.compat.absent import absent

HINT = "train where the package tokenizers is installed, and load its tokenizer.json"
BpeTrainer, UnigramTrainer, WordLevelTrainer, WordPieceTrainer = (
    absent(f"tokenizers.trainers.{name}", HINT)
    for name in ("BpeTrainer", "UnigramTrainer", "WordLevelTrainer", "WordPieceTrainer")
)
