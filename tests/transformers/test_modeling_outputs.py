"""Results of models: attributes, keys and tuples, as in transformers."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both

import tallow.transformers.modeling_outputs as ours
from tallow.errors import ArgumentError

# Results of Optimum's models, for which transformers has only a class of each family, such as DETR's.
OF_FAMILIES = {"ObjectDetectionOutput", "ImageSegmentationOutput"}
KINDS = [name for name, value in vars(ours).items() if dataclasses.is_dataclass(value) and name not in OF_FAMILIES]


@pytest.mark.parametrize("name", KINDS)
def test_fields_have_transformers_names_and_order(name: str) -> None:
    pytest.importorskip("transformers")
    from transformers import modeling_outputs
    from transformers.models.albert import modeling_albert
    from transformers.models.bert import modeling_bert
    from transformers.models.clip import modeling_clip
    from transformers.models.detr import modeling_detr
    from transformers.models.vits import modeling_vits

    modules = (modeling_outputs, modeling_albert, modeling_bert, modeling_clip, modeling_detr, modeling_vits)
    theirs = next(getattr(m, name) for m in modules if hasattr(m, name))
    assert [f.name for f in dataclasses.fields(getattr(ours, name))] == [f.name for f in dataclasses.fields(theirs)]


def outputs(tf: Any, torch: Any) -> Any:
    return tf.modeling_outputs.SequenceClassifierOutput(logits=torch.ones(2, 3), attentions=(torch.zeros(1),))


def test_read_as_object_dictionary_and_tuple() -> None:
    def program(tf: Any, torch: Any) -> Any:
        result = outputs(tf, torch)
        loss, sliced = result.loss, result[:1]
        keys = list(result.keys()), "loss" in result, len(result)
        result.loss = torch.tensor(2.0)
        return [loss, sliced, keys, result["logits"], result[0], list(result), result.to_tuple(), dict(result.items())]

    both(program)


@pytest.mark.parametrize("value", [{"a": 1, "logits": 2}, [("logits", 3)], 5])
def test_first_field_alone(value: Any) -> None:
    def program(tf: Any, torch: Any) -> Any:
        result = tf.modeling_outputs.BaseModelOutput(value)
        return [dict(result.items()), getattr(result, "logits", None)]

    both(program)


def test_results_are_pickled() -> None:
    import tallow

    result = outputs(tallow.transformers, tallow)
    copied = pickle.loads(pickle.dumps(result))
    assert list(copied) == ["logits", "attentions"]
    np.testing.assert_array_equal(copied.logits.numpy(), result.logits.numpy())


@pytest.mark.parametrize("name", ["pop", "setdefault", "update"])
def test_keys_are_fixed(name: str) -> None:
    result = ours.MaskedLMOutput(logits=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=name):
        getattr(result, name)("logits")
    with pytest.raises(ArgumentError, match="del"):
        del result["logits"]
