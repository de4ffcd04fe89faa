"""optimum's names: `optimum.onnxruntime` has classes that run ONNX files with transformers' inputs and results."""
