"""Configs of models that can be the eyes of others: which of their stages are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.errors import ArgumentError
from tallow.models.vision.stages import stage_name

KINDS = ("dinov2", "resnet")  # model types


class BackboneConfigMixin:
    """Adds the stages to a config: `out_features` are their names, `out_indices` their places. Setting one sets both.

    Without either, the last stage is read.
    """

    def __init__(self, **kwargs: Any) -> None:
        names = kwargs.pop("out_features", kwargs.pop("_out_features", None))
        places = kwargs.pop("out_indices", kwargs.pop("_out_indices", None))
        kwargs.pop("stage_names", None)  # which follow from the number of layers
        super().__init__(**kwargs)
        self.set_output_features_output_indices(names, places)

    @property
    def stage_names(self) -> list[str]:
        """The names of the stem and of all stages."""
        count = len(self.depths) if hasattr(self, "depths") else self.num_hidden_layers  # type: ignore[attr-defined]
        return [stage_name(place) for place in range(count + 1)]

    def set_output_features_output_indices(
        self, out_features: Sequence[str] | None, out_indices: Sequence[int] | None
    ) -> None:
        """Set which stages are read, by names, places, or both.

        Raises:  ArgumentError for stages that are not there, out of order or twice, and for two lists that differ
        """
        stages = self.stage_names
        names = None if out_features is None else list(out_features)
        places = None if out_indices is None else list(out_indices)
        if names is None:
            wanted = [len(stages) - 1] if places is None else [_counted(place, stages) for place in places]
        else:
            wanted = [stages.index(name) if name in stages else -1 for name in names]
            if places is not None and [_counted(place, stages) for place in places] != wanted:
                raise ArgumentError(f"out_features={names} and out_indices={places} are not the same stages")
        if -1 in wanted or wanted != sorted(set(wanted)):
            raise ArgumentError(
                f"stages {names or places}; the model has {', '.join(stages)}",
                hint="name each at most once, in this order",
            )
        self._out_features = [stages[place] for place in wanted]
        self._out_indices = wanted if places is None else places

    @property
    def out_features(self) -> list[str]:
        """The names of the stages that are read."""
        return self._out_features

    @out_features.setter
    def out_features(self, names: Sequence[str] | None) -> None:
        self.set_output_features_output_indices(names, None)

    @property
    def out_indices(self) -> list[int]:
        """Their places among all, 0 for the stem."""
        return self._out_indices

    @out_indices.setter
    def out_indices(self, places: Sequence[int] | None) -> None:
        self.set_output_features_output_indices(None, places)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings, as values of JSON."""
        entries: dict[str, Any] = super().to_dict()  # type: ignore[misc]
        names = {"out_features": list(self.out_features), "out_indices": list(self.out_indices)}
        return entries | {"stage_names": self.stage_names} | names


def _counted(place: Any, stages: Sequence[str]) -> int:
    """Return a place, counted from the end if it is negative; -1 if there is none."""
    count = len(stages)
    return place % count if isinstance(place, int) and -count <= place < count else -1
