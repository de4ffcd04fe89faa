"""Configs of quantisation under transformers' names, which become blocks of llama.cpp's formats."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError, TallowWarning, warn

FOUR_BITS, EIGHT_BITS = "q4_0", "int8"  # the names in tallow.models.quantize


class BitsAndBytesConfig:
    """Quantise matrices to 8 or 4 bits while loading.

    tallow has llama.cpp's blocks in place of those of bitsandbytes: Q8_0 for 8 bits, Q4_0 for 4. They have a scale for
    each 32 weights, so results differ a little from those of bitsandbytes.

    Args:
        load_in_8bit, load_in_4bit: which.
        kwargs: settings of bitsandbytes' own formats, which are kept but have no effect

    Raises:  ArgumentError for both
    """

    quant_method = "bitsandbytes"

    def __init__(self, load_in_8bit: bool = False, load_in_4bit: bool = False, **kwargs: Any) -> None:
        if load_in_8bit and load_in_4bit:
            raise ArgumentError("BitsAndBytesConfig: both load_in_8bit and load_in_4bit", hint="pass one of them")
        self.load_in_8bit, self.load_in_4bit = load_in_8bit, load_in_4bit
        for name, value in kwargs.items():
            setattr(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings."""
        return {"quant_method": self.quant_method, **vars(self)}

    def is_quantizable(self) -> bool:
        """Return whether there is anything to quantise to."""
        return self.load_in_8bit or self.load_in_4bit


def quant_of(kwargs: dict[str, Any]) -> str | None:
    """Take the arguments about quantisation, and return the `quant` of `tallow.models`; None for none.

    Raises:  ArgumentError for a config of another kind
    """
    config = kwargs.pop("quantization_config", None)
    if config is None:
        config = {name: kwargs.pop(name, False) for name in ("load_in_8bit", "load_in_4bit")}
    entries = config if isinstance(config, dict) else getattr(config, "to_dict", dict)()
    if config and not {"load_in_8bit", "load_in_4bit"} & entries.keys():
        raise ArgumentError(
            f"quantization_config is a {type(config).__name__}", hint="pass BitsAndBytesConfig(load_in_4bit=True)"
        )
    quant = FOUR_BITS if entries.get("load_in_4bit") else EIGHT_BITS if entries.get("load_in_8bit") else None
    if quant is not None:
        blocks = "Q4_0" if quant == FOUR_BITS else "Q8_0"
        warn(f"the weights become {blocks}, blocks of 32 as in llama.cpp, not those of bitsandbytes", TallowWarning)
    return quant
