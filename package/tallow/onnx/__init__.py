"""Models in ONNX files: load them as modules that run, train and print their code; write modules as ONNX files."""

from tallow.lazy_names import names_of

LAZY = {
    "DecoderWithPast": "tallow.onnx.decoder:DecoderWithPast",
    "ONNXProgram": "tallow.onnx.exporters.program:ONNXProgram",
    "OnnxModule": "tallow.onnx.loading:OnnxModule",
    "export": "tallow.onnx.exporting:export",
    "load": "tallow.onnx.loading:load",
}
__all__ = list(LAZY)

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
