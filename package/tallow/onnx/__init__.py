"""Models in ONNX files: load them as modules that run, train and print their code; write modules as ONNX files."""

from tallow.lazy_names import names_of

LAZY = {
    "ONNXProgram": "tallow.onnx.exporters.program:ONNXProgram",
    "OnnxModule": "tallow.onnx.load:OnnxModule",
    "export": "tallow.onnx.export:export",
    "load": "tallow.onnx.load:load",
}
__all__ = list(LAZY)

__getattr__, __dir__ = names_of(__name__, lazy=LAZY)
