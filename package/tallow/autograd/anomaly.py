"""Find the op whose backward returns NaN: `detect_anomaly` and `set_detect_anomaly`."""

from __future__ import annotations

from tallow.tape.modes import mode


class set_detect_anomaly:
    """Switch the search on or off at once, in this thread; back at the end of the block, if used as one.

    While it is on, `backward` and `grad` check every gradient and raise GraphError with the name of the first op whose
    backward returns NaN.

    Args:    check_nan: False searches for nothing, as in PyTorch
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = False
        self._wanted = mode and check_nan
        self._switch()

    def _switch(self) -> None:
        self._before, mode.finds_nan = mode.finds_nan, self._wanted

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        mode.finds_nan = self._before


class detect_anomaly(set_detect_anomaly):
    """As `set_detect_anomaly(True)`, but only inside of the block."""

    def __init__(self, check_nan: bool = True) -> None:
        self._wanted = check_nan

    def __enter__(self) -> None:
        self._switch()
