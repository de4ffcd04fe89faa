"""trl's names: train language models on answers, on preferences, and on rewards.

    from tallow.trl import SFTConfig, SFTTrainer

    SFTTrainer("Qwen/Qwen3-0.6B", SFTConfig("out"), train_dataset=samples).train()

Names, arguments, losses and metrics are those of trl; the loop is that of `tallow.transformers.Trainer`, adapters are
those of `tallow.peft`. Names are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.lazy_names import names_of

# The modules that define the names.
HOMES = {
    "dpo": "DPOConfig DPOTrainer",
    "grpo": "GRPOConfig GRPOTrainer",
    "orpo": "ORPOConfig ORPOTrainer",
    "packing": "pack_dataset",
    "reward": "RewardConfig RewardTrainer",
    "samples": "extract_prompt is_conversational maybe_convert_to_chatml",
    "sft": "SFTConfig SFTTrainer",
}
_LAZY = {name: f"tallow.trl.{home}:{name}" for home, names in HOMES.items() for name in names.split()}

__version__ = "1.16.0"  # whose names and results these are

__all__ = list(_LAZY)

if TYPE_CHECKING:
    from tallow.signatures.lazy_trl import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, _LAZY)
