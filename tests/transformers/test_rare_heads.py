"""Classes that few programs use: stages of images, masked patches, two heads of GPT-2, decoders that read a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.folders import Folders
from tests.transformers.test_models import IDS, PIXELS, entries

import tallow.transformers as mine


@pytest.mark.parametrize("name", ["Dinov2Backbone", "ResNetBackbone"])
def test_stages(name: str, folders: Folders) -> None:
    folder = folders(name, out_features=["stem", "stage2"])

    def program(tf: Any, torch: Any) -> Any:
        model = getattr(tf, name).from_pretrained(folder)
        found = [model(torch.tensor(PIXELS)).feature_maps, model.channels, model.stage_names, model.config.out_indices]
        model.out_indices = [0, -1]
        maps = model(torch.tensor(PIXELS)).feature_maps
        sum(each.pow(2).sum() for each in maps).backward()
        found += [maps, model.out_features, next(model.encoder.parameters()).grad]
        again = getattr(tf, name).from_pretrained(folder, out_features=["stage1"])
        return [*found, again.config.out_indices, again.num_features]

    both(program, tol=2e-4)
    for wrong in (
        {"out_features": ["stage99"]},
        {"out_indices": [2, 1]},
        {"out_indices": [1], "out_features": ["stem"]},
    ):
        both_raise(lambda tf, _, wrong=wrong: getattr(tf, name).config_class(**wrong))


def test_masked_patches_are_restored(folders: Folders) -> None:
    folder = folders("ViTForMaskedImageModeling", encoder_stride=4)
    masked = np.random.default_rng(3).random((2, 36)) > 0.5

    def program(tf: Any, torch: Any) -> Any:
        model = tf.AutoModelForMaskedImageModeling.from_pretrained(folder, attn_implementation="eager")
        result = model(torch.tensor(PIXELS), bool_masked_pos=torch.tensor(masked))
        result.loss.backward()
        return [entries(result), model.vit.embeddings.mask_token.grad, model.decoder[0].weight.grad]

    both(program)


def test_clip_labels_images(folders: Folders) -> None:
    folder = folders("CLIPForImageClassification", num_labels=3)

    def program(tf: Any, torch: Any) -> Any:
        model = tf.AutoModelForImageClassification.from_pretrained(folder)
        result = model(torch.tensor(PIXELS), labels=torch.tensor([2, 0]))
        result.loss.backward()
        return [entries(result), model.classifier.weight.grad, model.vision_model.post_layernorm.weight.grad]

    both(program)


@pytest.mark.filterwarnings("ignore:.*newly initialized")
@pytest.mark.parametrize("config", [{}, {"summary_type": "mean", "summary_activation": "tanh"}])
def test_gpt2_scores_choices(config: dict[str, Any], folders: Folders) -> None:
    folder = folders("GPT2DoubleHeadsModel", **config)

    def program(tf: Any, torch: Any) -> Any:
        model = tf.GPT2DoubleHeadsModel.from_pretrained(folder, attn_implementation="eager")
        ids, places, right = (torch.tensor(each) for each in (IDS.reshape(2, 2, 3), [[0, 1], [2, 1]], [1, 0]))
        shown = {"output_hidden_states": True, "output_attentions": True, "use_cache": False}
        first = model(ids, mc_token_ids=places, labels=ids, mc_labels=right, **shown)
        second = model(ids, token_type_ids=ids - 3, labels=ids, mc_labels=right)
        (second.loss + second.mc_loss).backward()
        typed = tf.GPT2Model(model.config).eval()
        typed.load_state_dict(model.transformer.state_dict())
        last = typed(ids[0], token_type_ids=ids[0] - 2).last_hidden_state
        grads = [model.transformer.wte.weight.grad, model.multiple_choice_head.summary.weight.grad]
        return [entries(first), entries(second), grads, last, model.config.num_labels, model.can_generate()]

    both(program)


@pytest.mark.parametrize("name", ["BartForCausalLM", "MarianForCausalLM", "WhisperForCausalLM"])
def test_decoders_read_sources(name: str, folders: Folders, tmp_path: Path) -> None:
    # With fewer layers in the encoder, transformers' cache has too few.
    folder = folders(name, **({"encoder_layers": 2} if name.startswith("Whisper") else {}))
    source = np.random.default_rng(1).normal(size=(2, 5, 32)).astype(np.float32)

    def program(tf: Any, torch: Any) -> Any:
        model = getattr(tf, name).from_pretrained(folder, attn_implementation="eager")
        ids, seen = torch.tensor(IDS), torch.tensor(source[..., : model.config.d_model]).requires_grad_(True)
        mask = torch.tensor([[1, 1, 1, 0, 0], [1] * 5])
        texts = {"encoder_hidden_states": seen, "encoder_attention_mask": mask}
        read = {"encoder_outputs": (seen,)} if name.startswith("Whisper") else texts
        shown = {"output_hidden_states": True, "output_attentions": True, "use_cache": False}
        result = model(ids, labels=ids, **shown, **read)
        result.loss.backward()
        found = [entries(result), seen.grad, model.get_input_embeddings().weight.grad]
        with torch.no_grad():
            past = model(ids[:, :3], use_cache=True, **read).past_key_values
            found.append(model(ids[:, 3:], past_key_values=past, **read, return_dict=False)[0])
            found += [model(ids, use_cache=False).logits, model.generate(ids, max_new_tokens=4, do_sample=False)]
        model.save_pretrained(tmp_path / tf.__name__)
        return found

    both(program)
    real = pytest.importorskip("transformers")
    _, info = getattr(real, name).from_pretrained(tmp_path / "tallow.transformers", output_loading_info=True)
    assert all(key.endswith("embed_positions.weight") for key in info["missing_keys"])
    assert not info["unexpected_keys"]
    getattr(mine, name).from_pretrained(tmp_path / "transformers")
