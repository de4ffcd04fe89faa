"""The base of all models: build a model directly from the tensors of a checkpoint, without initial weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.fused.explanation import LayerReport, explanation
from tallow.io.model_folder import load_folder
from tallow.kernels.quantized.block_matrix import HALF_FORMATS, BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.models import loading
from tallow.models.config import Config
from tallow.models.encoders.encoder_layers import EncoderLayers
from tallow.models.loading_report import LoadingReport
from tallow.models.quantize import block_format
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.block_layers import (
    BlockEmbedding,
    BlockLayer,
    BlockLinear,
    arrange_blocks,
    block_layers,
    block_notes,
    put_block_layers,
)
from tallow.nn.convolution import Conv2d
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter
from tallow.nn.quantization import count_weights
from tallow.nn.transposed_linear import Conv1D
from tallow.tape.modes import no_grad


def check_length(length: int, limit: int) -> None:
    """Raise ArgumentError for a text of more tokens than the model has positions."""
    if length > limit:
        raise ArgumentError(f"a text of {length} tokens; the model has {limit} positions", hint="shorten the text")


def tied_logits(hidden_BTD: Tensor, table: Embedding) -> Tensor:
    """Return logits (B, T, V) from the head's input (B, T, D), where the head's matrix is that of an embedding."""
    if isinstance(table, BlockEmbedding):
        return table.project(hidden_BTD)
    return F.linear(hidden_BTD, table.weight)


def _head_of(table: Any) -> Module:
    """Return a linear layer without bias, with the matrix of an embedding."""
    if isinstance(table, BlockEmbedding):
        return BlockLinear(table.stored).to(table.blocks.device)
    head = Linear(table.embedding_dim, table.num_embeddings, bias=False, device="meta")
    head.weight = Parameter(table.weight.detach(), requires_grad=table.weight.requires_grad)
    return head.train(table.training)


def _width(module: Module) -> int | None:
    """Return the number of input features of a layer that `quantize` replaces; None for any other module."""
    if type(module) is Linear or (isinstance(module, BlockLinear) and module.format in HALF_FORMATS):
        return module.in_features
    return module.weight.shape[0] if type(module) is Conv1D else None


def _quantize_half(layer: Module, format: str) -> None:
    """Replace the matrix of a layer of blocks if it is in half precision."""
    if isinstance(layer, BlockLayer) and layer.format in HALF_FORMATS:
        layer.take(BlockMatrix.quantized(layer.matrix.widen(), format))


class SpanLogits(NamedTuple):
    """Logits of where an answer starts and ends.

    Shapes:  each (B, T)
    """

    start: Tensor
    end: Tensor


class PretrainedModel(Module, loading.FromPretrained):
    """The base of models that load Hugging Face folders.

    The constructor of a subclass takes a config, a device and a dtype; on device "meta" parameters take no memory.

    Attributes:
        config_class: the class that reads `config.json`.
        head_name: the attribute of a language model's head, where it has one.
        base_model_prefix: the attribute of a model with a head that holds the model without one. A checkpoint of one
            loads into the other, if it holds all the needed weights.
        folder: the folder or GGUF file that the model was loaded from; None for any other model.
        loading_report: the weights of a folder that were dropped, kept apart, taken from another name, or made new.
    """

    config_class: ClassVar[type[Config]]
    head_name: ClassVar[str] = "lm_head"
    base_model_prefix: ClassVar[str]
    config: Any
    folder: Path | None = None
    loading_report: LoadingReport = LoadingReport()

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        return loading.read(cls, path, dtype, device, quant, strict)

    @staticmethod
    def read_folder(folder: Path) -> Mapping[str, Any]:
        """Return the tensors of a folder, for `assemble`."""
        return load_folder(folder)

    @classmethod
    def assemble(
        cls,
        config: Any,
        state: Mapping[str, Tensor],
        dtype: Any = None,
        device: Any = None,
        source: str = "state dict",
        **parts: bool,
    ) -> Self:
        """Build a model from the arrays of a state dict, which are converted and moved only where necessary.

        Args:
            source: the origin of the state, for error messages.
            parts: options of the class that omit parts of the model.

        Raises:  CheckpointError
        """
        return loading.assemble(cls, config, state, dtype, device, source, parts)

    @classmethod
    def parts_of(cls, state: Mapping[str, Any]) -> dict[str, bool]:
        """Return the options of the constructor that omit parts of the model, by the tensors of a checkpoint."""
        return {}

    def adapt(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors of a checkpoint, by the model's names, as the model takes them.

        Raises:  CheckpointError
        """
        return dict(state)

    def check_weights(self, source: str) -> None:
        """Raise ArgumentError if the model cannot compute with the weights that were loaded."""

    def quantize(self, quant: str, dtype: Any = None) -> Self:
        """Replace the matrices of the model by quantised ones, in place, for inference.

        On the CPU kernels multiply them by rows that are rounded to int8. All Linear layers are quantised, GPT-2's
        Conv1D, and an embedding of tokens whose matrix is also the head; everything else stays in floats.

        Args:
            quant: "int8", which is llama.cpp's Q8_0, or another of its formats that tallow writes, such as "q8_0".
            dtype: of what stays in floats; None means float32.

        Raises:  ArgumentError for an unknown name, another device, rows that are not whole blocks, and a model without
                 Linear layers
        """
        device = next(self.parameters()).device
        format = block_format(quant, device)
        modules = dict(self.named_modules())
        widths = {name: width for name, module in modules.items() if (width := _width(module)) is not None}
        if not widths and not any(block_layers(self)):
            raise ArgumentError(f"quant={quant!r}: a {type(self).__name__} has no Linear layers to quantise")
        size = FORMATS[format].weights
        for name, width in widths.items():  # before anything is changed
            if width % size:
                raise ArgumentError(
                    f"quant={quant!r}: {name} has rows of {width}, not whole {format} blocks",
                    hint="call nn.quantization.quantize_ with a filter_fn that leaves such layers in floats",
                )
        table: Module | None = self.head_table
        for name, module in modules.items():
            if type(module) in (Linear, Conv1D) or (module is table and type(module) is Embedding):
                weight = module.weight.T if type(module) is Conv1D else module.weight
                try:
                    matrix = BlockMatrix.quantized(weight.array, format)
                except ArgumentError as error:
                    raise ArgumentError(f"quantize: {name}: {error}") from error
                put_block_layers(self, {f"{name}.weight": matrix}, device)
            elif name in widths or module is table:
                _quantize_half(module, format)
        self.to(device, dtype=dtypes.float32 if dtype is None else dtypes.as_dtype(dtype))
        arrange_blocks(self)
        return self.eval()

    def num_parameters(self) -> int:
        """Return the number of weights, quantised ones included."""
        return count_weights(self)

    def untie_head(self) -> None:
        """Give the head a matrix of its own, which shares memory with the embedding's, if it has none."""
        if (table := self.head_table) is not None:
            setattr(self, self.head_name, _head_of(table))
            self.config = self.config_with([f"{self.head_name}.weight"])

    @property
    def head_table(self) -> Embedding | None:
        """The embedding whose matrix is also the head, and which computes logits as a BlockEmbedding; None if none."""
        return None

    def reset_parameters(self) -> None:
        """Draw all matrices from N(0, initializer_range²), as transformers does; set biases and embeddings of padding
        to zero. A base model inside initializes itself."""
        if next(self.parameters()).device.type == "meta":
            return
        base = getattr(self, self.base_model_prefix, None)
        initialized = {*base.modules()} if isinstance(base, PretrainedModel) else set()
        for module in self.modules():
            if module in initialized:
                continue
            if isinstance(module, Linear | Conv2d | Embedding):
                init.normal_(module.weight, 0.0, self.config.initializer_range)
            if isinstance(module, Linear | Conv2d) and module.bias is not None:
                init.zeros_(module.bias)
            if isinstance(module, Embedding) and module.padding_idx is not None:
                with no_grad():
                    module.weight[module.padding_idx] = 0.0

    def explain(self) -> None:
        """Print for each layer whether inference runs fused, as one kernel for many ops, and if not, why.

        Example:
            >>> from tallow.models import BertConfig, BertModel
            >>> sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
            >>> BertModel(BertConfig(vocab_size=9, num_hidden_layers=1, **sizes)).explain()
            BertModel on cpu, in inference
              encoder.layer.0  modules: encoder.layer.0.attention.self is in training mode and has dropout
        """
        title = f"{type(self).__name__} on {next(self.parameters()).device}, in inference"
        print(explanation(title, self._reports(), block_notes(self)))

    def _reports(self) -> list[LayerReport]:
        encoders = [(name, module) for name, module in self.named_modules() if isinstance(module, EncoderLayers)]
        reports = [report for name, module in encoders for report in module.reports(name)]
        return reports or [LayerReport("all layers", reason=f"no fused block computes a {type(self).__name__}")]

    @property
    def tied_weights(self) -> Mapping[str, str]:
        """The weights that have the values of another one, unless a checkpoint holds others: name -> other name."""
        return {}

    def config_with(self, apart: Collection[str]) -> Any:
        """Return the config of a model with weights of its own for these names of `tied_weights`."""
        return replace(self.config, tie_word_embeddings=False) if apart else self.config

    def is_superfluous(self, name: str) -> bool:
        """Return whether a checkpoint may hold this tensor although the model has none of that name.

        Such a tensor repeats the config, or belongs to another head.
        """
        return False


class PooledModel(PretrainedModel):
    """The base of encoders whose pooler a checkpoint may lack, such as that of a masked language model."""

    @classmethod
    def parts_of(cls, state: Mapping[str, Any]) -> dict[str, bool]:
        return {"add_pooling_layer": any("pooler." in name for name in state)}
