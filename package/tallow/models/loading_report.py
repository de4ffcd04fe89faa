"""Reports of loading: the weights of a checkpoint that a model did not simply take as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class LoadingReport:
    """The weights that loading dropped, kept apart, took from another name, or made new. Its text has a line for each.

    Attributes:
        repeated: tensors of the file that equal another weight, and share its memory: name -> the other weight.
        renamed: weights that the file has under another name only: name -> the name in the file.
        untied: tensors that the config ties to another weight, and the file has other values for: name -> the other
            weight. The model uses the file's.
        unused: tensors of the file that the model does not use: of another head, or derived from the config.
        new: weights that the file lacks, and the model makes.

    Example:
        model = AutoModel.from_pretrained(folder)
        print(model.loading_report)  # unused    cls.seq_relationship.weight
    """

    repeated: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    untied: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for name, other in self.repeated.items():
            yield f"repeated  {name} equals {other}"
        for name, other in self.renamed.items():
            yield f"renamed   {name} is {other} in the file"
        for name, other in self.untied.items():
            yield f"untied    {name} differs from {other}, to which the config ties it"
        for name in self.unused:
            yield f"unused    {name}"
        for name in self.new:
            yield f"new       {name}"


def report_of(
    ties: Mapping[str, str], held: Collection[str], own: Collection[str], apart: Collection[str]
) -> LoadingReport:
    """Return the report of a checkpoint that holds tensors of these names.

    Args:
        ties, apart: as in `tallow.models.ties`.
        held: the names of the file's tensors, in the model's terms.
        own: the names of the model's weights.
    """
    repeated, renamed = {}, {}
    for name, other in ties.items():
        if name in apart:
            continue
        if name in held and (other in held or other in renamed):
            repeated[name] = other
        elif name in held:
            renamed[other] = name
        elif name in own:
            renamed[name] = other
    used = {*own, *repeated, *renamed.values()}
    return LoadingReport(
        repeated=repeated,
        renamed=renamed,
        untied={name: other for name, other in ties.items() if name in apart},
        unused=tuple(name for name in held if name not in used),
        new=tuple(name for name in own if name not in held and name not in renamed),
    )
