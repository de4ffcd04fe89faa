"""torch.quantization: the former path of `torch.ao.quantization`."""

from tallow.compat.torch.ao.quantization import DeQuantStub, QuantStub, __getattr__

__all__ = ["DeQuantStub", "QuantStub", "__getattr__"]
