"""Write the settings of the text tab as a script, which prints the losses that the page shows."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import recipes

if TYPE_CHECKING:
    from words import TextSettings

SCRIPT = '''\
"""{title} in text.txt. Run it with tallow."""

{standard}from pathlib import Path

import tallow as tl
{imports}
from tallow.training import LanguageModelSettings, LanguageModelTraining
from tallow.training.processes import Processes
from tallow.training.texts import Rows, Tokens, documents, tokens_of
from tallow.training.vocabulary import {vocabulary}


{functions}


texts = list(documents([Path("text.txt")]))
{model}
tokens = tokens_of(texts, vocabulary)
checkpoint = Path("checkpoint.safetensors")
sizes = {{"context": {context}, "batch_size": {batch_size}, "rate": {lr:g}, "seed": {seed}, "steps": {steps}}}
training = training_of(model, tokens, **sizes, checkpoint=checkpoint)
for step, (loss,) in enumerate(training.run(), start=1):
    if step % 10 == 0 or step == {steps}:
        print(f"step {{step}}: loss {{loss:.4f}}")

{save}
'''
NEW = {
    "standard": "",
    "title": "Train a character Llama on the text",
    "imports": "from tallow.generation import Sampler, generate\nfrom tallow.models import Llama, LlamaConfig",
    "vocabulary": "Vocabulary, character_vocabulary, characters_of",
    "model": """\
characters = characters_of(texts)
vocabulary = character_vocabulary(characters)
model = character_llama(vocabulary, width={width}, layers={layers}, context={context}, seed={seed})""",
    "save": """\
model.eval()
start = [vocabulary.end_of_text]
ids = generate(model, start, max_tokens=120, sample=Sampler(temperature=0.8, top_p=0.95, seed=1), stop_ids=start)
print("".join(characters[i] for i in ids))
tl.save(model.state_dict(), "model.pt")""",
}
LORA = {
    "standard": "from functools import partial\n",
    "title": "Adapt the story model with LoRA to the text",
    "imports": (
        "from tallow.models import Llama, stories\nfrom tallow.peft import LoraConfig, PeftModel, get_peft_model"
    ),
    "vocabulary": "Vocabulary",
    "model": """\
adapter, vocabulary = story_llama(rank={rank}, seed={seed})
model = adapter.get_base_model()""",
    "save": 'adapter.save_pretrained("adapter")',
}


def write_script(settings: TextSettings, steps: int) -> str:
    """Return a script that trains as the tab does, for this number of steps."""
    is_new = settings.task == "new"
    parts = NEW if is_new else LORA
    own = recipes.character_llama if is_new else recipes.story_llama
    functions = "\n\n".join(inspect.getsource(each) for each in (own, recipes.split, recipes.training_of)).rstrip()
    sizes = {name: getattr(settings, name) for name in ("width", "layers", "context", "rank", "seed")}
    return SCRIPT.format(
        **parts | {"model": parts["model"].format(**sizes)},
        functions=functions,
        context=settings.context,
        batch_size=settings.batch_size,
        lr=settings.lr,
        seed=settings.seed,
        steps=steps,
    )
