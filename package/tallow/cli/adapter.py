"""Options that commands share for LoRA adapters: use one, or train one."""

from __future__ import annotations

import argparse
from typing import Any

from tallow.cli.language_model import number, positive_int
from tallow.errors import ArgumentError
from tallow.models.causal_lm import CausalLM
from tallow.models.pretrained import PretrainedModel
from tallow.nn.block_layers import block_layers
from tallow.peft.config import LoraConfig
from tallow.peft.peft_model import PeftModel, get_peft_model
from tallow.peft.targets import ALL_LINEAR
from tallow.random import manual_seed

DEFAULTS: dict[str, Any] = {"lora_r": 8, "lora_alpha": 16, "lora_dropout": 0.0, "lora_targets": None}


def add_adapter_option(group: argparse._ArgumentGroup) -> None:
    """Add the option --adapter."""
    group.add_argument(
        "--adapter",
        metavar="ADAPTER",
        help="a LoRA adapter for --model, from `tallow train --lora` or peft: a folder, or owner/repository on the Hub",
    )


def add_lora_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that train an adapter."""
    group.add_argument(
        "--lora",
        action="store_true",
        help="train a LoRA adapter and freeze --model, which may also be a GGUF file; --out gets only the adapter",
    )
    group.add_argument(
        "--lora-r",
        type=positive_int,
        metavar="N",
        help=f"rank of the adapter (default: {DEFAULTS['lora_r']})",
    )
    group.add_argument(
        "--lora-alpha",
        type=positive_int,
        metavar="N",
        help=f"the adapter is scaled by N / rank (default: {DEFAULTS['lora_alpha']})",
    )
    group.add_argument(
        "--lora-dropout",
        type=number(float, "0 to 1", lambda x: 0 <= x <= 1),
        metavar="P",
        help="dropout probability of the adapter's inputs (default: 0)",
    )
    group.add_argument(
        "--lora-targets",
        metavar="NAMES",
        help=f"layers to adapt, separated by commas, or {ALL_LINEAR} (default: those of peft for the type of model)",
    )


def lora_config(arguments: argparse.Namespace) -> LoraConfig | None:
    """Return the config of the adapter to train, or None.  Raises: ArgumentError for options without --lora"""
    given = {name: value for name in DEFAULTS if (value := getattr(arguments, name)) is not None}
    if not arguments.lora:
        for name in given:
            raise ArgumentError(f"--{name.replace('_', '-')} without --lora", hint="pass --lora")
        return None
    if arguments.model is None:
        raise ArgumentError("--lora without --model", hint="pass the model to adapt")
    options = DEFAULTS | given
    targets = options["lora_targets"]
    return LoraConfig(
        r=options["lora_r"],
        lora_alpha=options["lora_alpha"],
        lora_dropout=options["lora_dropout"],
        target_modules=targets if targets in (None, ALL_LINEAR) else tuple(targets.split(",")),
        task_type="CAUSAL_LM",
        base_model_name_or_path=arguments.model,
    )


def adapted(model: CausalLM | None, config: LoraConfig | None, seed: int) -> PeftModel | None:
    """Put a new adapter into the layers of a model, and return the model with it; None without a config."""
    if model is None or config is None:
        return None
    manual_seed(seed)
    return get_peft_model(model, config)


def use_adapter(model: PretrainedModel, adapter: str | None) -> None:
    """Add the adapter of --adapter to the weights of a model, or next to its layers if some are quantised.

    A model with float weights then generates as fast as without an adapter.

    Raises:  CheckpointError, HubError for an adapter that cannot be read or does not fit the model
    """
    if adapter is None:
        return
    peft_model = PeftModel.from_pretrained(model, adapter)
    if not any(block_layers(model)):
        peft_model.merge_and_unload()


def merge_adapter(model: PretrainedModel, adapter: str | None) -> None:
    """Add the adapter of --adapter to the weights of a model.  Raises: as `use_adapter`"""
    if adapter is not None:
        PeftModel.from_pretrained(model, adapter).merge_and_unload()
