"""torch.onnx: `export` is that of `tallow.onnx`. Names of the older exporter can be imported; a call of one raises."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from tallow.compat.absent import absent
from tallow.onnx import ONNXProgram, export

__all__ = [
    "ExportOptions",
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "dynamo_export",
    "export",
    "is_in_onnx_export",
    "is_onnxrt_backend_supported",
    "register_custom_op_symbolic",
    "select_model_mode_for_export",
    "unregister_custom_op_symbolic",
]

_HINT = "call torch.onnx.export, which returns an ONNXProgram"
TensorProtoDataType = IntEnum(
    "TensorProtoDataType",
    "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 COMPLEX128 "
    "BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ",
    start=0,
)
OperatorExportTypes = IntEnum("OperatorExportTypes", "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK ONNX_FALLTHROUGH", start=0)
TrainingMode = IntEnum("TrainingMode", "EVAL PRESERVE TRAINING", start=0)


class OnnxExporterError(RuntimeError):
    """An error of an export."""


dynamo_export = absent("torch.onnx.dynamo_export", _HINT)
ExportOptions = absent("torch.onnx.ExportOptions", _HINT)
select_model_mode_for_export = absent("torch.onnx.select_model_mode_for_export", _HINT)


def is_in_onnx_export() -> bool:
    """Return False: an export of tallow records a module's ordinary calls."""
    return False


def is_onnxrt_backend_supported() -> bool:
    """Return False: there is no such backend."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Do nothing: no export calls the function."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Do nothing: no function is registered."""
