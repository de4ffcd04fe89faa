"""The base of models under transformers' names: a class of `tallow.models` with transformers' config and methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Self

from tallow import dtypes
from tallow.core.apply import apply
from tallow.errors import ArgumentError, TallowWarning, warn
from tallow.models.pretrained import PretrainedModel
from tallow.nn import init
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.parameter import Parameter
from tallow.ops.joining import cat
from tallow.tape.modes import no_grad
from tallow.transformers.adapters import AdapterMixin
from tallow.transformers.capture import layers_of
from tallow.transformers.configuration import PreTrainedConfig, dtype_of
from tallow.transformers.forward_common import Options
from tallow.transformers.generation.configuration_utils import GenerationConfig
from tallow.transformers.generation.mixin import GenerationMixin
from tallow.transformers.loss_functions import loss_of
from tallow.transformers.modeling_loading import NEUTRAL, load
from tallow.transformers.modeling_saving import save
from tallow.transformers.state_names import exported, imported
from tallow.transformers.uploads import upload
from tallow.transformers.without_effect import effective
from tallow.utils.checkpoint import checkpoint

FILE = "generation_config.json"
# The ends of the names of classes that generate texts.
GENERATING = ("ForCausalLM", "LMHeadModel", "DoubleHeadsModel", "ForConditionalGeneration", "MTModel")


class PreTrainedModel(AdapterMixin, GenerationMixin, PretrainedModel):
    """The base of models: transformers' names over a class of `tallow.models`.

    Args:    config: a config of the class
    Example:
        model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-0.6B", dtype="auto")
        logits = model(**tokenizer("Hello", return_tensors="pt")).logits

    Attributes:
        core_class: the class of `tallow.models`; None for a subclass that a program writes itself.
    """

    core_class: ClassVar[type[PretrainedModel] | None] = None
    model_type: ClassVar[str] = ""
    main_input_name: ClassVar[str] = "input_ids"
    supports_gradient_checkpointing: ClassVar[bool] = True
    warnings_issued: ClassVar[dict[str, bool]] = {}
    name_or_path: str = ""
    model_tags: list[str] | None = None
    is_gradient_checkpointing: bool = False

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        core = self.core_class
        if core is None:
            super().__init__(config)
            return
        if not isinstance(config, PreTrainedConfig):
            raise ArgumentError(
                f"{type(self).__name__}: config is a {type(config).__name__}",
                hint=f"pass a config, or call {type(self).__name__}.from_pretrained(name)",
            )
        core.__init__(self, config.own(core.config_class), *args, **kwargs)
        self._adopt(config)

    def _adopt(self, config: PreTrainedConfig, name: str = "") -> Self:
        """Take transformers' config in place of that of `tallow.models`."""
        vars(config)["_own"] = self.config
        config.architectures = [type(self).__name__]
        self.config, self.name_or_path = config, name or config.name_or_path
        return self

    def core_forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the class of `tallow.models` computes."""
        assert self.core_class is not None
        return self.core_class.forward(self, *args, **kwargs)

    def config_with(self, apart: Any) -> Any:
        own, config = vars(self.config).get("_own"), self.config
        if own is None:
            return super().config_with(apart)
        self.config = own
        try:
            config.tie_word_embeddings = not apart
            vars(config)["_own"] = super().config_with(apart)
        finally:
            self.config = config
        return config

    # ---------------------------------------------------------------------------------------------------------- files

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls, pretrained_model_name_or_path: str | Path, *model_args: Any, config: Any = None, **kwargs: Any
    ) -> Any:
        """Load a model of this class from a folder or a repository of the Hub; see `modeling_loading.load`."""
        return load(cls, pretrained_model_name_or_path, config, *model_args, **kwargs)

    @classmethod
    def parts_to_omit(cls) -> set[str]:
        """Return the arguments of the constructor that omit parts of the model, such as `add_pooling_layer`."""
        if cls.core_class is None:
            return set()
        parameters = signature(cls.core_class.__init__).parameters.values()
        return {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}

    @classmethod
    def from_config(cls, config: PreTrainedConfig, **kwargs: Any) -> Self:
        """Make a model with random weights.

        Args:    kwargs: `dtype`; and arguments of `from_pretrained` without an effect, such as `attn_implementation`
        Raises:  ArgumentError for other arguments
        """
        kwargs = effective(f"{cls.__name__}.from_config", kwargs, {**NEUTRAL, "trust_remote_code": (None, False)})
        former = kwargs.pop("torch_dtype", None)  # the name of older versions
        dtype = kwargs.pop("dtype", None) or former
        if kwargs:
            raise ArgumentError(
                f"{cls.__name__}.from_config has no arguments {', '.join(kwargs)}", hint="set them in the config"
            )
        model = cls(config)
        return model if dtype in (None, "auto") else model.to(dtype=dtype_of(dtype))

    _from_config = from_config

    def save_pretrained(self, save_directory: str | Path, **kwargs: Any) -> None:
        """Write `config.json`, the weights and `generation_config.json` to a folder; see `modeling_saving.save`."""
        save(self, save_directory, **kwargs)

    def push_to_hub(self, repo_id: str, commit_message: str = "Upload model", **kwargs: Any) -> Any:
        """Upload the folder that `save_pretrained` writes.

        Args:    kwargs: private, token, revision, create_pr
        Raises:  MissingPackageError without `huggingface_hub`
        """
        return upload(self.save_pretrained, repo_id, commit_message=commit_message, **kwargs)

    def state_dict(self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return the weights by transformers' names, tied ones under each of theirs; see `state_names`.

        They share memory with the modules, except those of experts, which are one tensor for all.

        Args:    as `tallow.nn.Module.state_dict`; with a destination or a prefix the names are those of the modules
        """
        state = super().state_dict(destination, prefix, keep_vars)
        return state if self.core_class is None or destination is not None or prefix else exported(self, state)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False, *, source: str = "state dict"
    ) -> Any:
        """Load weights by transformers' names, or those of the modules.

        Args, raises: as `tallow.nn.Module.load_state_dict`
        """
        if self.core_class is not None:
            state_dict = imported(self, state_dict, super().state_dict())
        return super().load_state_dict(state_dict, strict, assign, source=source)

    @cached_property
    def generation_config(self) -> GenerationConfig:
        """The settings of `generate`: of the folder's `generation_config.json`, or else of the config. They can be set.

        Raises:  CheckpointError for a file that is not valid
        """
        if self.folder is not None and (Path(self.folder) / FILE).is_file():
            return GenerationConfig.from_pretrained(self.folder)
        return GenerationConfig.from_model_config(self.config)

    def can_generate(self) -> bool:
        """Return whether the model generates texts."""
        return any(type(self).__name__.endswith(end) for end in GENERATING)

    # ----------------------------------------------------------------------------------------------------------- facts

    @property
    def device(self) -> Any:
        """The device of the weights."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> Any:
        """The dtype of the weights: of the first floats."""
        return next((p.dtype for p in self.parameters() if p.is_floating_point()), dtypes.float32)

    @property
    def base_model(self) -> Any:
        """The model without a head, inside or itself."""
        return getattr(self, self.base_model_prefix, self)

    @property
    def framework(self) -> str:
        """ "pt": tensors have PyTorch's names."""
        return "pt"

    def num_parameters(self, only_trainable: bool = False, exclude_embeddings: bool = False) -> int:
        """Return the number of weights.

        Args:
            only_trainable: those that require a gradient.
            exclude_embeddings: leave out those of embeddings.
        """
        if not only_trainable and not exclude_embeddings:
            return super().num_parameters()
        tables = {id(m.weight) for m in self.modules() if isinstance(m, Embedding)} if exclude_embeddings else set()
        counted = (p for p in self.parameters() if p.requires_grad or not only_trainable)
        return sum(p.numel() for p in counted if id(p) not in tables)

    def get_memory_footprint(self, return_buffers: bool = True) -> int:
        """Return the bytes of the weights, and with `return_buffers` of the buffers."""
        tensors = [*self.parameters(), *(self.buffers() if return_buffers else ())]
        return sum(tensor.numel() * tensor.dtype.itemsize for tensor in tensors)

    # ------------------------------------------------------------------------------------------------------ embeddings

    def _embedding_place(self) -> tuple[Any, str]:
        """Return the module that has the embedding of tokens, and its name there."""
        base = self.base_model
        names = ("shared", "embed_tokens", "wte", "word_embeddings", "tok_embeddings", "token_embedding")
        places = (base, *(m for m in (getattr(base, "embeddings", None), getattr(base, "decoder", None)) if m))
        places = (*places, getattr(getattr(base, "text_model", None), "embeddings", None))
        for place in places:
            for name in names:
                if isinstance(getattr(place, name, None), Embedding):
                    return place, name
        raise ArgumentError(f"{type(self).__name__} has no embedding of tokens", hint="a model of texts has one")

    def get_input_embeddings(self) -> Any:
        """Return the embedding of tokens.  Raises: ArgumentError for a model without one"""
        if self.main_input_name == "pixel_values":
            return self.base_model.embeddings.patch_embeddings
        place, name = self._embedding_place()
        return getattr(place, name)

    def set_input_embeddings(self, value: Any) -> None:
        """Replace the embedding of tokens."""
        place, name = self._embedding_place()
        setattr(place, name, value)

    def get_output_embeddings(self) -> Any:
        """Return the layer that computes logits of tokens; for a head that is tied, one with the same weight; or None.

        A tied head has no module of its own here: changing the layer's weight changes nothing.
        """
        head = getattr(self, self.head_name, None)
        if isinstance(head, Linear):
            return head
        table = self.head_table
        if table is None:
            return None
        tied = Linear(table.embedding_dim, table.num_embeddings, bias=False, device="meta")
        tied.weight = table.weight
        return tied

    def set_output_embeddings(self, new_embeddings: Any) -> None:
        """Replace the layer that computes logits of tokens.  Raises: ArgumentError for a head that is tied"""
        if not isinstance(getattr(self, self.head_name, None), Linear):
            raise ArgumentError(
                f"{type(self).__name__}: the head is tied to the embedding of tokens",
                hint="set the embedding: model.set_input_embeddings(...)",
            )
        setattr(self, self.head_name, new_embeddings)

    def resize_token_embeddings(
        self, new_num_tokens: int | None = None, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> Any:
        """Change the size of the vocabulary: of the embedding, the head, and its bias; return the embedding.

        Args:
            new_num_tokens: None leaves the size.
            pad_to_multiple_of: round the size up.
            mean_resizing: new rows are near the mean of the others, so that new tokens are neither likely nor unlikely;
                False draws them as in a new model.
        """
        table = self.get_input_embeddings()
        size = table.num_embeddings if new_num_tokens is None else int(new_num_tokens)
        if pad_to_multiple_of is not None:
            size = math.ceil(size / pad_to_multiple_of) * pad_to_multiple_of
        if size == table.num_embeddings:
            return table
        former = table.num_embeddings
        std = float(getattr(self.config, "initializer_range", 0.02))
        _resize_table(table, size, mean_resizing, std)
        for module in list(self.modules()):
            for name, child in list(module._modules.items()):
                if isinstance(child, Linear) and child.out_features == former and _is_head(name):
                    _resize_head(child, size, mean_resizing, std)
            for name in ("bias",):
                bias = module._parameters.get(name)
                if bias is not None and tuple(bias.shape) == (former,) and not isinstance(module, Linear):
                    setattr(module, name, Parameter(_rows(bias, size, 0.0)))
        if "final_logits_bias" in self._buffers:
            self.register_buffer("final_logits_bias", _rows(self.get_buffer("final_logits_bias")[0], size, 0.0)[None])
        self.config.vocab_size = size
        if hasattr(self.config, "text_config"):
            self.config.text_config.vocab_size = size
        return self.get_input_embeddings()

    def tie_weights(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: a tied head is the embedding itself."""

    # -------------------------------------------------------------------------------------------------------- training

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs: dict[str, Any] | None = None) -> None:
        """Store only the input of each layer while training, and compute the rest again for gradients.

        Args:    gradient_checkpointing_kwargs: of `tallow.utils.checkpoint.checkpoint`, such as use_reentrant
        """
        options = {"use_reentrant": False, **(gradient_checkpointing_kwargs or {})}
        for layer in self._all_layers():
            vars(layer)["forward"] = partial(_checkpointed, type(layer).forward, layer, options)
        self.is_gradient_checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        """Store what layers compute."""
        for layer in self._all_layers():
            vars(layer).pop("forward", None)
        self.is_gradient_checkpointing = False

    def _all_layers(self) -> Iterator[Any]:
        inner = self.base_model
        stacks = [
            getattr(inner, name) for name in ("encoder", "decoder") if hasattr(getattr(inner, name, None), "modules")
        ]
        for stack in stacks or [inner]:
            yield from layers_of(stack)

    def enable_input_require_grads(self) -> None:
        """Let the embeddings require gradients, so that adapters behind frozen layers have some."""
        note = lambda _, __, output: output.requires_grad_(True)  # noqa: E731
        vars(self)["_embeddings_require_grads"] = self.get_input_embeddings().register_forward_hook(note)

    def disable_input_require_grads(self) -> None:
        """Undo `enable_input_require_grads`."""
        if (hook := vars(self).pop("_embeddings_require_grads", None)) is not None:
            hook.remove()

    def set_attn_implementation(self, attn_implementation: Any) -> None:
        """Do nothing: tallow chooses how attention is computed."""
        warn(f"attn_implementation={attn_implementation!r} has no effect: tallow has one attention", TallowWarning)

    @property
    def loss_function(self) -> Callable[..., Any]:
        """The loss of the class, with transformers' arguments; see `loss_functions`. It can be set."""
        function: Callable[..., Any] = vars(self).get("_loss_function") or loss_of(type(self).__name__)
        return function

    @loss_function.setter
    def loss_function(self, value: Callable[..., Any]) -> None:
        vars(self)["_loss_function"] = value

    def add_model_tags(self, tags: str | Sequence[str]) -> None:
        """Add tags for the model's card, which `Trainer.create_model_card` writes; each counts once."""
        new = [tags] if isinstance(tags, str) else list(tags)
        self.model_tags = list(dict.fromkeys([*(self.model_tags or ()), *new]))

    def post_init(self) -> None:
        """Do nothing: weights are drawn where they are made. Models that programs write call it."""

    init_weights = post_init

    def get_encoder(self) -> Any:
        """Return the encoder of an encoder-decoder model: called with a source, it returns hidden states."""
        if not hasattr(self, "_encode"):
            raise ArgumentError(f"{type(self).__name__} has no encoder apart", hint="call the model itself")
        return EncoderOf(self)

    def get_decoder(self) -> Any:
        """Return the decoder's module."""
        return getattr(self.base_model, "decoder", self.base_model)


class EncoderOf:
    """The encoder of a model, as a function with transformers' arguments."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.main_input_name = model.main_input_name

    def __call__(self, input_ids: Any = None, attention_mask: Any = None, **kwargs: Any) -> Any:
        """Return the encoder's result for a source."""
        source = kwargs.pop(self.main_input_name, input_ids)
        embeds = kwargs.pop("inputs_embeds", None)
        names = ("output_hidden_states", "output_attentions", "return_dict")
        hidden, weights, as_dict = (kwargs.pop(name, None) for name in names)
        options = Options(self.model, hidden, weights, as_dict, kwargs)
        encoded = self.model._encode(options, source, attention_mask, embeds)
        return encoded if options.return_dict else encoded.to_tuple()


def _checkpointed(forward: Callable[..., Any], layer: Any, options: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    if not layer.training:
        return forward(layer, *args, **kwargs)
    return checkpoint(partial(forward, layer), *args, **options, **kwargs)


def _is_head(name: str) -> bool:
    return name in ("lm_head", "decoder", "proj_out", "vocab_projector")


def _rows(values: Any, size: int, fill: float | None, mean: bool = True, std: float = 0.02) -> Any:
    """Return rows (size, ...) that begin with those of `values`.

    Args:    fill: of new ones; None draws them, near the mean of the others or around zero
    """
    with no_grad():
        former = values.detach()
        if size <= former.shape[0]:
            return former[:size].clone()
        shape = (size - former.shape[0], *former.shape[1:])
        new = former.new_zeros(shape)
        if fill is not None:
            new.fill_(fill)
        elif mean:
            new = new + former.float().mean(0).to(former.dtype)
        else:
            init.normal_(new, 0.0, std)
        return apply(cat, [former, new])


def _resize_table(table: Any, size: int, mean: bool, std: float) -> None:
    """Change the number of rows of an embedding, in place, as modules that refer to it expect."""
    table.weight = Parameter(_rows(table.weight, size, None, mean, std), requires_grad=table.weight.requires_grad)
    table.num_embeddings = size
    if table.padding_idx is not None and table.padding_idx >= size:
        table.padding_idx = None


def _resize_head(head: Linear, size: int, mean: bool, std: float) -> None:
    """Change the number of outputs of a layer, in place."""
    head.weight = Parameter(_rows(head.weight, size, None, mean, std), requires_grad=head.weight.requires_grad)
    if head.bias is not None:
        head.bias = Parameter(_rows(head.bias, size, 0.0), requires_grad=head.bias.requires_grad)
    head.out_features = size
