"""ONNX operators as functions of tensors, one file per family."""

from tallow.onnx.operators import control_flow
