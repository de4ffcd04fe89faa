"""tallow's models under the names of packages: `import transformers` after `install_torch`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import tallow.transformers
from tallow.compat import install_torch
from tallow.errors import MissingModuleError, MissingNameError


@pytest.fixture
def installed() -> Iterator[None]:
    with install_torch(replace=True, own_models=True):
        yield


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("transformers", "BertModel"),
        ("transformers", "AutoModelForCausalLM"),
        ("transformers.models.bert.modeling_bert", "BertModel"),
        ("transformers.models.auto", "AutoConfig"),
        ("transformers.modeling_utils", "PreTrainedModel"),
        ("transformers.modeling_outputs", "ModelOutput"),
        ("transformers.configuration_utils", "PretrainedConfig"),
        ("transformers.generation", "GenerationConfig"),
        ("transformers.generation.utils", "GenerationConfig"),
        ("transformers.trainer_utils", "set_seed"),
        ("transformers.utils", "is_torch_available"),
        ("transformers.utils.versions", "require_version"),
        ("transformers.utils.logging", "set_verbosity_error"),
        ("transformers.data.data_collator", "DataCollatorWithPadding"),
        ("transformers.utils.generic", "ModelOutput"),
        ("sentence_transformers.similarity_functions", "SimilarityFunction"),
        ("peft", "LoraConfig"),
        ("peft.utils", "get_peft_model_state_dict"),
        ("peft.tuners.lora", "LoraConfig"),
    ],
)
def test_names_are_those_of_tallow(installed: None, module: str, name: str) -> None:
    value = getattr(importlib.import_module(module), name)
    assert value.__module__.startswith("tallow.")


def test_statements_of_scripts(installed: None) -> None:
    namespace: dict[str, object] = {}
    script = "import transformers; from transformers import logging, BertConfig as C; logging.set_verbosity_error()"
    exec(script, namespace)
    assert namespace["C"] is tallow.transformers.BertConfig
    assert sys.modules["transformers"].__version__ == tallow.transformers.__version__
    assert "BertModel" in dir(sys.modules["transformers"])


def test_what_is_missing_says_so(installed: None) -> None:
    with pytest.raises(MissingModuleError, match=r"transformers\.nonsense.*install transformers"):
        importlib.import_module("transformers.nonsense")
    for below in ("transformers.utils.nonsense", "transformers.training_args.nonsense", "transformers.data.nonsense"):
        with pytest.raises(MissingModuleError, match=below):
            importlib.import_module(below)
    with pytest.raises(MissingNameError, match="NoSuchModel"):
        _ = importlib.import_module("transformers").NoSuchModel


def test_modules_imported_before_come_back() -> None:
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "transformers"}
    with install_torch(replace=True, own_models=True):
        importlib.import_module("transformers.utils")
    after = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "transformers"}
    assert after == before


def test_transformers_itself_does_not_find_the_peft_of_tallow(monkeypatch: pytest.MonkeyPatch) -> None:
    with install_torch(replace=True):
        found = importlib.util.find_spec("peft")
        if found is None or found.origin != "tallow, which stands in for peft":
            pytest.skip("peft is installed")
        monkeypatch.setitem(sys.modules, "transformers", ModuleType("transformers"))
        assert importlib.util.find_spec("peft") is None
