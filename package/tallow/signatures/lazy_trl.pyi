"""Names that a package imports on first use. Written by scripts/build_stubs.py."""

from tallow.trl.dpo import DPOConfig as DPOConfig
from tallow.trl.dpo import DPOTrainer as DPOTrainer
from tallow.trl.grpo_config import GRPOConfig as GRPOConfig
from tallow.trl.grpo import GRPOTrainer as GRPOTrainer
from tallow.trl.orpo import ORPOConfig as ORPOConfig
from tallow.trl.orpo import ORPOTrainer as ORPOTrainer
from tallow.trl.reward import RewardConfig as RewardConfig
from tallow.trl.reward import RewardTrainer as RewardTrainer
from tallow.trl.sft import SFTConfig as SFTConfig
from tallow.trl.sft import SFTTrainer as SFTTrainer
from tallow.trl.samples import extract_prompt as extract_prompt
from tallow.trl.samples import is_conversational as is_conversational
from tallow.trl.samples import maybe_convert_to_chatml as maybe_convert_to_chatml
from tallow.trl.packing import pack_dataset as pack_dataset

__all__ = [
    "DPOConfig",
    "DPOTrainer",
    "GRPOConfig",
    "GRPOTrainer",
    "ORPOConfig",
    "ORPOTrainer",
    "RewardConfig",
    "RewardTrainer",
    "SFTConfig",
    "SFTTrainer",
    "extract_prompt",
    "is_conversational",
    "maybe_convert_to_chatml",
    "pack_dataset",
]
