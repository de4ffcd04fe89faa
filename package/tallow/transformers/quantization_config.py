"""Configs of quantisation under transformers' names, which become blocks of llama.cpp's formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tallow import dtypes
from tallow.errors import ArgumentError, ArgumentTypeError, TallowWarning, warn
from tallow.transformers.configuration import dtype_of

BITS = ("load_in_8bit", "load_in_4bit")
# Settings of bitsandbytes' formats.
SETTINGS: dict[str, Any] = {
    "llm_int8_threshold": 6.0,
    "llm_int8_skip_modules": None,
    "llm_int8_enable_fp32_cpu_offload": False,
    "llm_int8_has_fp16_weight": False,
    "bnb_4bit_quant_type": "fp4",
    "bnb_4bit_use_double_quant": False,
    "bnb_4bit_compute_dtype": dtypes.float32,
    "bnb_4bit_quant_storage": dtypes.uint8,
}
DTYPES = ("bnb_4bit_compute_dtype", "bnb_4bit_quant_storage")
FOUR_BITS, EIGHT_BITS = "q4_0", "int8"  # the names in tallow.models.quantize


class BitsAndBytesConfig:
    """Quantise matrices to 8 or 4 bits while loading.

    tallow has llama.cpp's blocks in place of those of bitsandbytes: Q8_0 for 8 bits, Q4_0 for 4. They have a scale for
    each 32 weights, so results differ a little from those of bitsandbytes.

    Args:
        load_in_8bit, load_in_4bit: which.
        kwargs: settings of bitsandbytes' own formats, as in `SETTINGS`, which are kept but have no effect

    Raises:  ArgumentError for both; ArgumentTypeError for what is no bool
    Warns:   TallowWarning for other names
    """

    quant_method = "bitsandbytes"
    load_in_8bit: bool
    load_in_4bit: bool
    bnb_4bit_quant_type: str

    def __init__(self, load_in_8bit: bool = False, load_in_4bit: bool = False, **kwargs: Any) -> None:
        if unknown := sorted(kwargs.keys() - SETTINGS.keys()):
            warn(f"BitsAndBytesConfig has no argument {', '.join(unknown)}; it has no effect", TallowWarning)
        vars(self).update({"load_in_8bit": False, "load_in_4bit": False, **SETTINGS})
        self.load_in_8bit, self.load_in_4bit = load_in_8bit, load_in_4bit
        for name in SETTINGS.keys() & kwargs.keys():
            setattr(self, name, kwargs[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in BITS:
            if not isinstance(value, bool):
                raise ArgumentTypeError(f"{name}={value!r:.80}", hint="pass True or False")
            if value and any(getattr(self, other) for other in BITS if other != name):
                raise ArgumentError("BitsAndBytesConfig: both load_in_8bit and load_in_4bit", hint="pass one of them")
        if name in DTYPES:
            value = SETTINGS[name] if value is None else dtype_of(value)
        super().__setattr__(name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, dtypes as names."""
        own = {name: str(value).rpartition(".")[2] if name in DTYPES else value for name, value in vars(self).items()}
        return {"quant_method": self.quant_method, **{f"_{name}": own[name] for name in BITS}, **own}

    def to_diff_dict(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults."""
        default = BitsAndBytesConfig().to_dict()
        return {name: value for name, value in self.to_dict().items() if value != default[name]}

    def to_json_string(self, use_diff: bool = True) -> str:
        """Return the settings as JSON.  Args: use_diff: those alone that differ from the defaults"""
        return json.dumps(self.to_diff_dict() if use_diff else self.to_dict(), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_dict(cls, config_dict: Mapping[str, Any], return_unused_kwargs: bool = False, **kwargs: Any) -> Any:
        """Return a config of the entries of a dict, of which `kwargs` replace some.

        Args:  return_unused_kwargs: return those that are no settings too
        """
        entries = {name: value for name, value in config_dict.items() if name in (*BITS, *SETTINGS)}
        known = {name: value for name, value in kwargs.items() if name in (*BITS, *SETTINGS)}
        made = cls(**{**entries, **known})
        unused = {name: value for name, value in kwargs.items() if name not in known}
        return (made, unused) if return_unused_kwargs else made

    def quantization_method(self) -> str | None:
        """Return the name of bitsandbytes' format: "llm_int8", "fp4" or "nf4"; None for none."""
        return "llm_int8" if self.load_in_8bit else self.bnb_4bit_quant_type if self.load_in_4bit else None

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
