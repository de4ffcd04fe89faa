"""torch.profiler.profiler: the file of PyTorch that has the names of torch.profiler."""

from __future__ import annotations

from tallow.compat.torch.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Return the action of each step without a schedule: all are recorded."""
    return ProfilerAction.RECORD
