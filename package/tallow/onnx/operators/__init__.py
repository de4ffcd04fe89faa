"""ONNX operators as functions of tensors, one file per family."""
