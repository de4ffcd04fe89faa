"""Write the page's settings as a script for a terminal, which prints the numbers that the page shows."""

from __future__ import annotations

from datasets import Dataset
from settings import OPTIMIZERS, Settings

from tallow import nn

SCRIPT = '''\
"""Train on {title}. For PyTorch, write: import torch as tl."""

{imports}import tallow as tl

nn, F = tl.nn, tl.nn.functional


{data}
tl.manual_seed({seed})
model = nn.Sequential(
{layers})
optimizer = tl.optim.{optimizer}(model.parameters(), {options})

for epoch in range({epochs}):
    model.train()
    for batch in train[tl.randperm(len(train))].split({batch_size}):
        loss = F.cross_entropy(model(x[batch]), y[batch])
{penalty}        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with tl.no_grad():
        logits = model(x[test])
    loss, accuracy = F.cross_entropy(logits, y[test]), (logits.argmax(1) == y[test]).float().mean()
    print(f"epoch {{epoch + 1}}: loss {{loss.item():.4f}}, accuracy {{accuracy.item():.1%}}")

tl.save(model.state_dict(), "model.pt")
'''
PENALTY = "        loss = loss + {l1:g} * sum(weight.abs().sum() for weight in model.parameters() if weight.ndim > 1)\n"


def write_script(settings: Settings, dataset: Dataset, network: nn.Sequential) -> str:
    """Return a script that trains `network` on `dataset`."""
    kind, _ = OPTIMIZERS[settings.optimizer]
    imports = "".join(f"{line}\n" for line in dataset.imports)
    return SCRIPT.format(
        title=dataset.title,
        imports=imports and f"{imports}\n",
        data=dataset.code,
        seed=settings.seed,
        layers="".join(f"    nn.{_call(layer)},\n" for layer in network),
        optimizer=kind.__name__,
        options=", ".join(f"{name}={value:g}" for name, value in settings.optimizer_options().items()),
        epochs=10 if dataset.has_images else 50,
        batch_size=settings.batch_size,
        penalty=PENALTY.format(l1=settings.l1) if settings.l1 else "",
    )


def _call(layer: nn.Module) -> str:
    """Return the call that makes a layer: its repr without argument names and defaults."""
    text = repr(layer)
    for redundant in ("in_features=", "out_features=", ", bias=True", "start_dim=1, end_dim=-1"):
        text = text.replace(redundant, "")
    return text
