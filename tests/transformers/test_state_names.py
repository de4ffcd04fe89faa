"""State dicts and files have the names and values of transformers, in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.folders import Folders
from tests.transformers.test_models import CLASSES

import tallow as tl
import tallow.transformers as mine
from tallow.transformers.model_names import WITHOUT_HEAD

# What transformers keeps besides: sinusoids, which are computed here, and a token for training that has no use.
COMPUTED = ("embed_positions.weight", "mask_token")
SEVERAL = [
    "LlamaForCausalLM",
    "MixtralModel",
    "OlmoeForCausalLM",
    "ViTModel",
    "Dinov2Model",
    "BartModel",
    "WhisperModel",
    "T5Model",
]


def values(state: Any) -> dict[str, Any]:
    return {name: np.asarray(value.detach().float().numpy()) for name, value in state.items()}


@pytest.fixture(scope="module")
def real() -> Any:
    return pytest.importorskip("transformers")


@pytest.mark.parametrize("name", CLASSES)
def test_state_dicts(name: str, folders: Folders, real: Any) -> None:
    folder = folders(name)
    theirs = values(getattr(real, name).from_pretrained(folder).state_dict())
    model = getattr(mine, name).from_pretrained(folder)
    ours = values(model.state_dict())
    theirs = {key: value for key, value in theirs.items() if key in ours or not key.endswith(COMPUTED)}
    # BART adds zeros to its scores, which M2M100 has not in transformers.
    if name == "M2M100ForConditionalGeneration":
        assert not ours.pop("final_logits_bias").any()
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        np.testing.assert_array_equal(ours[key], value, err_msg=key)


@pytest.mark.parametrize("name", [*SEVERAL, "MarianMTModel", "BertForMaskedLM", "GPT2LMHeadModel"])
def test_weights_of_transformers_load(name: str, folders: Folders, real: Any) -> None:
    folder = folders(name)
    model = getattr(mine, name).from_pretrained(folder)
    theirs = {key: tl.from_numpy(each) for key, each in values(real_state(real, name, folder)).items()}
    expected = values(model.state_dict())
    with tl.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    missing, unexpected = model.load_state_dict(theirs)
    assert (missing, unexpected) == ([], [])
    for key, value in values(model.state_dict()).items():
        np.testing.assert_array_equal(value, expected[key], err_msg=key)


def real_state(real: Any, name: str, folder: str) -> Any:
    return getattr(real, name).from_pretrained(folder).state_dict()


@pytest.mark.parametrize("name", [*SEVERAL, "MarianModel", "Qwen3MoeForCausalLM", "ViTForImageClassification"])
def test_files(name: str, folders: Folders, real: Any, tmp_path: Path) -> None:
    """The real package reads what is saved here, and finds every weight of the file that it wrote itself."""
    folder = folders(name)
    getattr(mine, name).from_pretrained(folder).save_pretrained(tmp_path)
    model, info = getattr(real, name).from_pretrained(tmp_path, output_loading_info=True)
    assert not info["unexpected_keys"]
    assert all(key.endswith(COMPUTED) for key in info["missing_keys"])
    for key, value in values(real_state(real, name, folder)).items():
        if not key.endswith(COMPUTED) or "Bart" in name:
            np.testing.assert_array_equal(values(model.state_dict())[key], value, err_msg=key)


@pytest.mark.parametrize("name", sorted(WITHOUT_HEAD))
def test_own_weights_load(name: str, folders: Folders) -> None:
    model = getattr(mine, name).from_pretrained(folders(name))
    assert model.load_state_dict(model.state_dict()) == ([], [])
    with pytest.raises(RuntimeError, match="nothing"):
        model.load_state_dict({**model.state_dict(), "nothing": tl.zeros(1)})
