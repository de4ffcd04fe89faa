"""Load an adapter with the model that its config names, as peft's `AutoPeftModel` classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tallow.errors import ArgumentError, CheckpointError, MissingNameError
from tallow.peft.config import PeftConfig
from tallow.peft.peft_model import DEFAULT, PeftModel
from tallow.transformers import auto

# The end of a name -> the class of `tallow.transformers` that loads the model.
TASKS = {"FeatureExtraction": "AutoModel"} | {
    task: f"AutoModelFor{task}"
    for task in ("CausalLM", "QuestionAnswering", "Seq2SeqLM", "SequenceClassification", "TokenClassification")
}


class AutoPeftModel:
    """The base: loads the model of a task, and an adapter into it.

    Attributes:
        loader: the class of `tallow.transformers`.
    """

    loader: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ArgumentError(
            f"{type(self).__name__}({len(args) + len(kwargs)} arguments) makes no model",
            hint=f"call {type(self).__name__}.from_pretrained(folder)",
        )

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        adapter_name: str = DEFAULT,
        is_trainable: bool = False,
        revision: str | None = None,
        **kwargs: Any,
    ) -> PeftModel:
        """Load a folder or a repository of the Hub with an adapter, and its model.

        Args:    kwargs: of the model's `from_pretrained`, such as `dtype` and `device_map`
        Raises:  CheckpointError for an adapter that names no model; and as `PeftModel.from_pretrained`
        """
        name, token = pretrained_model_name_or_path, kwargs.get("token")
        config = PeftConfig.from_pretrained(name, revision=revision, token=token)
        if config.base_model_name_or_path is None:
            raise CheckpointError(
                f"{name}: the adapter names no model",
                hint="load the model, then PeftModel.from_pretrained(model, name)",
            )
        model = getattr(auto, cls.loader).from_pretrained(config.base_model_name_or_path, **kwargs)
        return PeftModel.from_pretrained(model, name, adapter_name, is_trainable, revision=revision, token=token)


def __getattr__(name: str) -> Any:
    task = name.removeprefix("AutoPeftModelFor")
    if task not in TASKS:
        raise MissingNameError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = type(
        name,
        (AutoPeftModel,),
        {"__module__": __name__, "__doc__": f"Loads adapters of {TASKS[task]}.", "loader": TASKS[task]},
    )
    return made
