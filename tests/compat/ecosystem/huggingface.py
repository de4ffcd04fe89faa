"""Cases of Hugging Face's packages: models of transformers, and the packages that train and adapt them."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from comparison import case, filled, normal, tokens, trained

SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SIZES, "num_key_value_heads": 2, "head_dim": 8}
PICTURE = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


def made(torch: Any, rng: np.random.RandomState, name: str, kind: str, **options: Any) -> Any:
    """Return a model with weights from NumPy: `made(torch, rng, "Bert", "ForMaskedLM", vocab_size=61)`."""
    import transformers

    transformers.logging.set_verbosity_error()
    config = getattr(transformers, f"{name}Config")(**options)
    return filled(torch, getattr(transformers, name + kind)(config), rng)


def language(torch: Any, rng: np.random.RandomState, name: str, kind: str, **options: Any) -> list[Any]:
    """Return a model's loss with a padded row, its gradients, and what it generates greedily and by beams."""
    model, ids = made(torch, rng, name, kind, **options), 3 + tokens(torch, rng, 58, 2, 9)
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    found = trained(torch, model, lambda: model(input_ids=ids, attention_mask=mask, labels=ids).loss)
    if model.can_generate():
        asked = {"attention_mask": mask, "max_new_tokens": 6, "do_sample": False}
        for how in ({}, {"num_beams": 3, "no_repeat_ngram_size": 2}, {"repetition_penalty": 1.3}):
            found.append(model.generate(ids, **asked, **how))
    return found


def embedded(torch: Any, model: Any, **inputs: Any) -> list[Any]:
    """Return what `trained` does for the last hidden state."""
    return trained(torch, model, lambda: model(**inputs).last_hidden_state)


@case
def transformers__bert(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """BERT and DistilBERT with a padded row."""
    small = {"vocab_size": 61, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}
    found = language(torch, rng, "Bert", "ForMaskedLM", **SIZES)
    return [*found, *language(torch, rng, "DistilBert", "ForMaskedLM", **small)]


@case
def transformers__gpt2(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """GPT-2: the loss, and tokens by greedy search, by beams and with a penalty of repetition."""
    sizes = {"vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2}
    return language(torch, rng, "GPT2", "LMHeadModel", **sizes, pad_token_id=0)


@case
def transformers__llama(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Llama, Mistral with a window, and Qwen 3."""
    found = language(torch, rng, "Llama", "ForCausalLM", **GROUPED)
    found += language(torch, rng, "Mistral", "ForCausalLM", **GROUPED, sliding_window=5)
    return found + language(torch, rng, "Qwen3", "ForCausalLM", **GROUPED)


@case
def transformers__gemma2(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Gemma 2, whose layers alternate between a window and the whole text."""
    return language(torch, rng, "Gemma2", "ForCausalLM", **GROUPED, sliding_window=5)


@case
def transformers__mixtral(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Mixtral, a mixture of four experts."""
    return language(torch, rng, "Mixtral", "ForCausalLM", **GROUPED, num_local_experts=4)


@case
def transformers__mamba(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Mamba, a state space model, without its kernels for CUDA."""
    sizes = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "pad_token_id": 0}
    return language(torch, rng, "Mamba", "ForCausalLM", **sizes, bos_token_id=1, eos_token_id=2)


@case
def transformers__t5(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """T5, an encoder and a decoder."""
    sizes = {"vocab_size": 61, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    return language(torch, rng, "T5", "ForConditionalGeneration", **sizes, decoder_start_token_id=0)


@case
def transformers__whisper(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Whisper: the loss of a text, and tokens for a spectrogram."""
    layers = {f"{part}_layers": 2 for part in ("encoder", "decoder")}
    heads = {f"{part}_attention_heads": 4 for part in ("encoder", "decoder")}
    wide = {f"{part}_ffn_dim": 48 for part in ("encoder", "decoder")}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
    sizes = {"vocab_size": 61, "d_model": 32, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 24}
    model = made(torch, rng, "Whisper", "ForConditionalGeneration", **layers, **heads, **wide, **sizes, **special)
    sound, text = normal(torch, rng, 2, 8, 40), 3 + tokens(torch, rng, 58, 2, 7)
    found = trained(torch, model, lambda: model(input_features=sound, labels=text).loss)
    model.generation_config.begin_suppress_tokens = model.generation_config.suppress_tokens = None
    return [*found, model.generate(sound, max_new_tokens=6, do_sample=False)]


@case
def transformers__vision(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """ViT, DINOv2, Swin, ConvNeXt and SegFormer."""
    x = normal(torch, rng, 2, 3, 32, 32)
    swin = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
    convolutions = {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}
    segments = {"hidden_sizes": [8, 16, 16, 32], "num_attention_heads": [1, 2, 2, 4], "depths": [1, 1, 1, 1]}
    kinds: dict[str, dict[str, Any]] = {
        "ViT": {**PICTURE, "intermediate_size": 48},
        "Dinov2": PICTURE,
        "Swin": swin,
        "ConvNext": convolutions,
        "Segformer": segments,
    }
    found: list[Any] = []
    for name, options in kinds.items():
        found += embedded(torch, made(torch, rng, name, "Model", **options), pixel_values=x)
    return found


@case
def transformers__clip(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """CLIP with its contrastive loss."""
    text = {**SIZES, "eos_token_id": 60}
    model = made(torch, rng, "CLIP", "Model", text_config=text, vision_config=PICTURE, projection_dim=16)
    pictures, words = normal(torch, rng, 3, 3, 32, 32), 3 + tokens(torch, rng, 58, 3, 7)
    return trained(torch, model, lambda: model(words, pictures, return_loss=True).loss)


@case
def transformers__sound(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """wav2vec 2.0 with the CTC loss."""
    sizes = {**SIZES, "conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 8), "num_feat_extract_layers": 2}
    rest = {"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "apply_spec_augment": False}
    model = made(torch, rng, "Wav2Vec2", "ForCTC", **sizes, **rest)
    sound, text = normal(torch, rng, 2, 800), 3 + tokens(torch, rng, 58, 2, 5)
    return trained(torch, model, lambda: model(sound, labels=text).loss, 1e-3)


def examples(torch: Any, rng: np.random.RandomState) -> list[dict[str, Any]]:
    """Return twelve texts of seven tokens with their labels."""
    ids = 3 + tokens(torch, rng, 58, 12, 7)
    return [{"input_ids": row, "labels": row} for row in ids]


@case
def transformers__trainer(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Trainer: three epochs, a checkpoint, a second run that resumes from it, and the loss of an evaluation."""
    from transformers import Trainer, TrainingArguments

    data, found = examples(torch, rng), []  # type: ignore[var-annotated]
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"output_dir": folder, "report_to": "none", "use_cpu": True, "disable_tqdm": True}
        options |= {"per_device_train_batch_size": 4, "num_train_epochs": 3, "logging_steps": 1, "learning_rate": 1e-3}
        options |= {"train_sampling_strategy": "sequential", "save_steps": 5, "warmup_steps": 2, "max_grad_norm": 0.5}
        arguments = TrainingArguments(**options, lr_scheduler_type="cosine")
        for resumed in (False, True):
            model = made(torch, np.random.RandomState(2), "Llama", "ForCausalLM", **GROUPED)
            trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:5])
            trainer.train(resume_from_checkpoint=f"{folder}/checkpoint-5" if resumed else None)
            found += [row[key] for row in trainer.state.log_history for key in ("loss", "grad_norm") if key in row]
            found += [trainer.evaluate()["eval_loss"], *(p for _, p in sorted(model.named_parameters()))]
    return found


@case
def accelerate(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Train with accumulated gradients, save the state, go on, and go on again from what was saved."""
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    set_seed(0)
    nn, losses = torch.nn, []  # type: ignore[var-annotated]
    model = filled(torch, nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), rng)
    data = torch.utils.data.TensorDataset(normal(torch, rng, 24, 6), tokens(torch, rng, 3, 24))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 12)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    parts = (model, optimizer, torch.utils.data.DataLoader(data, batch_size=4), schedule)
    model, optimizer, loader, schedule = accelerator.prepare(*parts)

    def epoch() -> None:
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(float(loss))

    with tempfile.TemporaryDirectory() as folder:
        epoch()
        accelerator.save_state(folder)
        epoch()
        first = [p.detach().clone() for p in model.parameters()]
        accelerator.load_state(folder)
        epoch()
    return [losses, *first, *model.parameters(), accelerator.gather(normal(torch, rng, 3))]


@case
def accelerate__hooks(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A model that is made on meta and filled from a checkpoint, with one layer kept on disk."""
    from accelerate import init_empty_weights, load_checkpoint_and_dispatch

    def model() -> Any:
        nn = torch.nn
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    with tempfile.TemporaryDirectory() as folder:
        torch.save(filled(torch, model(), rng).state_dict(), f"{folder}/weights.bin")
        with init_empty_weights():
            empty = model()
        places = {"0": "disk", "1": "cpu", "2": "cpu"}
        options = {"device_map": places, "offload_folder": f"{folder}/offloaded"}
        return [load_checkpoint_and_dispatch(empty, f"{folder}/weights.bin", **options)(normal(torch, rng, 4, 6))]


@case
def peft(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """LoRA on Llama: four steps, save the adapter, load it again, and merge it."""
    from peft import LoraConfig, PeftModel, get_peft_model

    def base() -> Any:
        return made(torch, np.random.RandomState(2), "Llama", "ForCausalLM", **GROUPED)

    model = get_peft_model(base(), LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]))
    adapted = {name: p for name, p in sorted(model.named_parameters()) if p.requires_grad}
    with torch.no_grad():
        for p in adapted.values():
            p.copy_(0.1 * normal(torch, rng, *p.shape))
    optimizer, losses = torch.optim.AdamW(adapted.values(), lr=0.01), []
    ids = torch.stack([row["input_ids"] for row in examples(torch, rng)[:4]])
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = PeftModel.from_pretrained(base(), folder)
    with torch.no_grad():
        return [losses, *adapted.values(), again(ids).logits, again.merge_and_unload()(ids).logits]


@case
def peft__others(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """DoRA, IA3 and prompt tuning on GPT-2."""
    from peft import IA3Config, LoraConfig, PromptTuningConfig, get_peft_model

    found: list[Any] = []
    sizes = {"vocab_size": 61, "n_embd": 32, "n_layer": 1, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2}
    ids = 3 + tokens(torch, rng, 58, 2, 7)
    for config in (
        LoraConfig(r=4, use_dora=True, task_type="CAUSAL_LM", fan_in_fan_out=True),
        IA3Config(task_type="CAUSAL_LM"),
        PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    ):
        model = get_peft_model(made(torch, rng, "GPT2", "LMHeadModel", **sizes, pad_token_id=0), config)
        with torch.no_grad():
            for _, p in sorted((name, p) for name, p in model.named_parameters() if p.requires_grad):
                p.copy_(0.1 * normal(torch, rng, *p.shape) + 0.5)
        found += trained(torch, model.eval(), lambda m=model: m(input_ids=ids, labels=ids).loss)  # type: ignore[misc]
    return found


@case
def sentence_transformers(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A BERT with mean pooling from a folder: embeddings, similarities, and a step with the ranking loss."""
    from pathlib import Path

    from sentence_transformers import SentenceTransformer, losses
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertTokenizerFast

    texts = ["a bird sang in the rain", "the rain stopped", "people read books while the bird sang", "books"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(" ".join(texts).split()))]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "vocab.txt").write_text("\n".join(words), encoding="utf-8")
        BertTokenizerFast(vocab_file=f"{folder}/vocab.txt").save_pretrained(folder)
        made(torch, rng, "Bert", "Model", **{**SIZES, "vocab_size": len(words)}).save_pretrained(folder)
        model = SentenceTransformer(modules=[Transformer(folder), Pooling(32), Normalize()], device="cpu")
        model.save(f"{folder}/whole")
        model = SentenceTransformer(f"{folder}/whole", device="cpu")
    vectors = model.encode(texts, show_progress_bar=False)
    rank = losses.MultipleNegativesRankingLoss(model.eval())
    features = [model.preprocess(texts[:2]), model.preprocess(texts[2:])]
    rows = [{key: value for key, value in part.items() if hasattr(value, "shape")} for part in features]
    found = trained(torch, model, lambda: rank([dict(row) for row in rows], None))
    return [vectors, model.similarity(vectors, vectors), *found]
