"""Models that learn a text, and their training. The page's script contains these functions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import tallow as tl
from tallow.models import stories
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.peft import LoraConfig, PeftModel, get_peft_model
from tallow.training import LanguageModelSettings, LanguageModelTraining
from tallow.training.processes import Processes
from tallow.training.texts import Rows, Tokens
from tallow.training.vocabulary import Vocabulary


def character_llama(vocabulary: Vocabulary, width: int, layers: int, context: int, seed: int) -> Llama:
    """Return a new Llama that reads characters."""
    config = LlamaConfig(
        vocab_size=vocabulary.size,
        hidden_size=width,
        intermediate_size=8 * width // 3 // 16 * 16,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        bos_token_id=vocabulary.end_of_text,
        eos_token_id=(vocabulary.end_of_text,),
    )
    tl.manual_seed(seed)
    return Llama(config)


def story_llama(rank: int, seed: int) -> tuple[PeftModel, Vocabulary]:
    """Return the packaged story model with a new LoRA adapter, and its vocabulary."""
    model, tokenizer = stories.load()
    tl.manual_seed(seed)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    adapter = get_peft_model(model, config)
    encode = partial(tokenizer.encode, bos=False)
    return adapter, Vocabulary(model.vocab_size, tokenizer.bos_token_id, encode)


def split(tokens: Tokens, context: int) -> tuple[Tokens, Tokens | None]:
    """Return the tokens to train on, and the last tenth for the test, at most 32 rows; None if that is too short."""
    size = min(len(tokens) // 10, 32 * context + 1)
    return (tokens[:-size], tokens[-size:]) if size > context else (tokens, None)


def training_of(
    model: Llama, tokens: Tokens, context: int, batch_size: int, rate: float, seed: int, steps: int, checkpoint: Path
) -> LanguageModelTraining:
    """Return the training with AdamW, at a constant learning rate after 20 steps."""
    training, test = split(tokens, context)
    rows, held_out = Rows(training, context, seed), None if test is None else Rows(test, context)
    settings = LanguageModelSettings(
        seed=seed,
        steps=steps,
        batch_size=batch_size,
        learning_rate=rate,
        final_learning_rate=rate,
        warmup_steps=20,
        validate_every=50,
        checkpoint_every=steps,
        context=context,
        model={},
        texts=rows.digest(),
    )
    return LanguageModelTraining(settings, model, rows, checkpoint, Processes(), held_out)
