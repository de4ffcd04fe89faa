"""tl.export: what is recorded, made functional, and refused; and that the graph computes what the module does."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from support.small_models import ENTRIES

import tallow as tl
from tallow import fx, models
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, TraceError, UnsupportedError
from tallow.export import Dim, ExportedProgram, InputKind, OutputKind, export

nn, F = tl.nn, tl.nn.functional


class Function(nn.Module):
    """A module of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def targets(program: ExportedProgram) -> list[str]:
    return [fx.node.candidate_for(n.target) for n in program.graph.nodes if n.op == "call_function"]


def check(function: Callable[..., Any], *args: Any) -> ExportedProgram:
    """Export a function, and compare the program with it on other values."""
    program = export(Function(function), args)
    others = [x * 2 - 1 if isinstance(x, tl.Tensor) and x.is_floating_point() else x for x in args]
    expected = function(*[x.clone() if isinstance(x, tl.Tensor) else x for x in others])
    got = program.module()(*[x.clone() if isinstance(x, tl.Tensor) else x for x in others])
    tl.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
    return program


def sample(*shape: int) -> tl.Tensor:
    return tl.randn(shape, generator=tl.Generator().manual_seed(1))


# ---------------------------------------------------------------------------------------------------------- the graph


def test_a_module_is_a_graph_of_ops_with_its_parameters_as_inputs() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    program = export(model, (sample(5, 3),))
    assert targets(program) == ["linear", "relu", "linear"]
    assert all(node.op in ("placeholder", "call_function", "output") for node in program.graph.nodes)
    signature = program.graph_signature
    assert signature.parameters == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert [s.kind for s in signature.input_specs] == [InputKind.PARAMETER] * 4 + [InputKind.USER_INPUT]
    assert [s.kind for s in signature.output_specs] == [OutputKind.USER_OUTPUT]
    assert signature.user_inputs == ("input_1",)
    assert dict(program.named_parameters()).keys() == dict(model.named_parameters()).keys()
    assert program.graph_module(*model.parameters(), sample(2, 3))[0].shape == (2, 2)
    assert "linear" in str(program)


def test_the_names_of_arguments_are_those_of_forward() -> None:
    class Scaled(nn.Module):
        def forward(self, x: tl.Tensor, *others: tl.Tensor, flag: bool = False, **scales: tl.Tensor) -> Any:
            return (x + others[0]) * scales["by"] if flag else x

    x, y, by = sample(3), sample(3), sample(3)
    program = export(Scaled(), (x, y), {"flag": True, "by": by})
    assert program.graph_signature.user_inputs == ("x", "others_0", True, "scales_by")
    module = program.module()
    assert tl.equal(module(y, x, flag=True, by=x), (y + x) * x)
    with pytest.raises(ArgumentError, match="flag was True in the export, and is False"):
        module(y, x, flag=False, by=x)


def test_a_module_shares_its_parameters_and_trains() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    module = export(model, (sample(5, 3),)).module()
    assert module.state_dict().keys() == model.state_dict().keys()
    for (name, p), (other, q) in zip(module.named_parameters(), model.named_parameters(), strict=True):
        assert name == other
        assert p is q
    module(sample(5, 3)).square().mean().backward()
    expected = copy.deepcopy(model)
    expected.zero_grad()
    expected(sample(5, 3)).square().mean().backward()
    for p, q in zip(model.parameters(), expected.parameters(), strict=True):
        assert p.grad is not None
        assert q.grad is not None
        assert tl.allclose(p.grad, q.grad)


def test_results_keep_their_containers() -> None:
    class Pair(NamedTuple):
        first: tl.Tensor
        rest: list[Any]

    def function(x: tl.Tensor) -> Any:
        return {"pair": Pair(x + 1, [x * 2, None, 3]), "x": x}

    result = check(function, sample(3))
    got = result.module()(sample(3))
    assert isinstance(got["pair"], Pair)
    assert got["pair"].rest[1:] == [None, 3]


def test_arguments_may_be_containers() -> None:
    program = export(Function(lambda parts, named: parts[0] + named["y"][1]), ([sample(3)], {"y": (None, sample(3))}))
    assert tl.equal(program.module()([tl.ones(3)], {"y": (None, tl.ones(3))}), tl.full((3,), 2.0))


def test_ordered_dicts_become_dicts() -> None:
    def function(named: dict[str, tl.Tensor]) -> Any:
        return OrderedDict(b=named["x"] * 2, a=named["x"])

    module = export(Function(function), (OrderedDict(x=sample(3)),)).module()
    for given in (OrderedDict(x=tl.ones(3)), {"x": tl.ones(3)}):
        assert list(module(given)) == ["b", "a"]
        assert tl.equal(module(given)["b"], tl.full((3,), 2.0))


def test_nan_is_a_constant_like_others() -> None:
    module = export(Function(lambda x, y: (x, y)), (sample(3), float("nan"))).module()
    assert math.isnan(module(sample(3), float("nan"))[1])
    with pytest.raises(ArgumentError, match="was nan in the export, and is 1"):
        module(sample(3), 1.0)


def test_an_argument_that_is_written_to_has_memory_of_its_own() -> None:
    x = sample(4)
    for other in (x, x[1:], x.detach()):
        with pytest.raises(TraceError, match="writes to args_0, which shares its memory with args_1"):
            export(Function(lambda x, y: x.mul_(2).sum() + y), (x, other))
    assert export(Function(lambda x, y: x * y), (x, x)).module()(x, x).shape == (4,)


def test_buffers_are_written_by_the_module_and_not_by_the_export() -> None:
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU())
    before, state = copy.deepcopy(model.state_dict()), tl.get_rng_state()
    x = sample(5, 2, 7)
    program = export(model, (x,))
    assert all(tl.equal(before[name], value) for name, value in model.state_dict().items())
    assert tl.equal(tl.get_rng_state(), state)
    written = ("1.running_mean", "1.running_var", "1.num_batches_tracked")
    assert sorted(program.graph_signature.buffers_to_mutate.values()) == sorted(written)
    expected = copy.deepcopy(model)
    assert tl.equal(program.module()(x), expected(x))
    for name in written:
        assert tl.allclose(model.state_dict()[name], expected.state_dict()[name])


def test_an_argument_that_is_written_to_is_an_output() -> None:
    def function(x: tl.Tensor) -> tl.Tensor:
        x.mul_(3)
        return x + 1

    x = sample(4)
    before = x.clone()
    program = export(Function(function), (x,))
    assert tl.equal(x, before)
    assert program.graph_signature.user_inputs_to_mutate == {"mul": "args_0"}
    assert tl.equal(program.module()(x), before * 3 + 1)
    assert tl.equal(x, before * 3)


def test_tensors_from_before_the_run_are_constants() -> None:
    table = tl.arange(4.0)
    model = Function(lambda x: x * table + model.own)
    model.own = sample(4)
    program = export(model, (sample(4),))
    assert sorted(program.graph_signature.lifted_tensor_constants) == ["lifted_tensor_0", "own"]
    assert tl.equal(program.module()(tl.ones(4)), table + model.own)


def test_tied_parameters_and_buffers_without_state_stay() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight
            self.register_buffer("scale", tl.tensor(2.0), persistent=False)

        def forward(self, ids: tl.Tensor) -> tl.Tensor:
            return self.head(self.embed(ids)) * self.scale

    model = Tied()
    program = export(model, (tl.tensor([1, 2]),))
    module = program.module()
    assert module.head.weight is module.embed.weight
    assert module.state_dict().keys() == model.state_dict().keys()
    assert program.graph_signature.non_persistent_buffers == ("scale",)
    assert program.constants.keys() == {"scale"}


def test_what_each_layer_makes_anew_is_computed_once() -> None:
    def function(x: tl.Tensor) -> tl.Tensor:
        for _ in range(3):
            x = x * tl.arange(4) + tl.rand(4) * 0
        return x

    names = targets(export(Function(function), (sample(4),)))
    assert names.count("arange") == 1
    assert names.count("rand") == 3


def test_dropout_draws_at_each_call() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Dropout2d(0.5, inplace=True))
    module = export(model, (sample(2, 2, 8, 8),)).module()
    x = sample(2, 2, 8, 8)
    for seed in (0, 1):
        tl.manual_seed(seed)
        expected = model(x)
        tl.manual_seed(seed)
        assert tl.equal(module(x), expected)
    assert targets(export(model.eval(), (x,))) == ["linear"]


# ------------------------------------------------------------------------------------------------- writes and views

WRITES: dict[str, Callable[[tl.Tensor], Any]] = {
    "whole": lambda x: x.add_(1).mul_(2),
    "slice": lambda x: x[1:3].mul_(5),
    "step": lambda x: x[::2, 1].add_(1),
    "item": lambda x: x[1].zero_(),
    "assigned": lambda x: x.__setitem__((slice(None), 2), 7.0),
    "assigned tensor": lambda x: x.__setitem__((0, ...), tl.arange(4.0)),
    "mask": lambda x: x.__setitem__(x < 0, 0.0),
    "places": lambda x: x.__setitem__(tl.tensor([0, 2]), tl.ones(4)),
    "accumulated": lambda x: x.index_put_((tl.tensor([0, 0]),), tl.ones(4), accumulate=True),
    "new dim": lambda x: x[None, :, 1].add_(3),
    "ellipsis": lambda x: x[..., -1].neg_(),
    "view": lambda x: x.view(-1)[2:9].mul_(3),
    "reshape": lambda x: x.reshape(2, 6).add_(1),
    "unflatten": lambda x: x.unflatten(1, (2, 2))[:, 1].add_(1),
    "flatten": lambda x: x.flatten().mul_(2),
    "squeeze": lambda x: x[:1].squeeze(0).add_(1),
    "unsqueeze": lambda x: x.unsqueeze(1).mul_(2),
    "transpose": lambda x: x.transpose(0, 1)[1].mul_(4),
    "permute": lambda x: x.permute(1, 0).select(0, 1).add_(1),
    "T": lambda x: x.T[1:].mul_(2),
    "diagonal": lambda x: x.diagonal(1).add_(10),
    "chunk": lambda x: x.chunk(2, 1)[1].mul_(2),
    "split": lambda x: x.split([1, 2], 0)[1].mul_(2),
    "unbind": lambda x: x.unbind(1)[2].add_(1),
    "narrow": lambda x: x.narrow(1, 1, 2).add_(1),
    "detach": lambda x: x.detach().add_(1),
    "data": lambda x: x.data.add_(1),
    "contiguous": lambda x: x.contiguous().add_(1),
    "relu_": lambda x: F.relu_(x[1]),
    "copy_": lambda x: x[0].copy_(x[1]),
    "fill_": lambda x: x[0].fill_(x[1, 1]),
    "masked_fill_": lambda x: x[1:].masked_fill_(x[1:] > 0, 1.0),
    "out": lambda x: tl.add(x[0], 1, out=x[1]),
    "clamp_": lambda x: x[1].clamp_(-0.1, 0.1),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_seen_in_everything_that_shares_the_memory(name: str) -> None:
    def function(x: tl.Tensor) -> Any:
        base = x * 1
        row, flat, column, before = base[1], base.view(-1), base[:, 1], base + 0
        WRITES[name](base)
        return base, row * 2, flat.sum(), column, before, base.T[0]

    program = check(function, sample(3, 4))
    assert not any(node.is_impure() for node in program.graph.nodes if node.op == "call_function")


def test_writes_through_two_views_follow_each_other() -> None:
    def function(x: tl.Tensor) -> Any:
        base = x.clone()
        left, top = base[:, :2], base[:2]
        left.mul_(3)
        top.add_(1)
        left.add_(top[0, 0])
        return base, left, top

    check(function, sample(3, 4))


def test_a_write_in_another_dtype_is_converted() -> None:
    def function(x: tl.Tensor, y: tl.Tensor) -> tl.Tensor:
        half = x.half()
        half += y
        return half

    assert check(function, sample(3), sample(3)).module()(sample(3), sample(3)).dtype is tl.float16


@pytest.mark.cpu("windows of CuPy's arrays are copies")
def test_a_write_to_overlapping_windows_is_refused_by_name() -> None:
    with pytest.raises(TraceError, match=r"a write to what window_view returns cannot be undone \(test_export.py"):
        export(Function(lambda x: x.clone().unfold(0, 2, 2).add_(1)), (sample(4),))


# ------------------------------------------------------------------------------------------------- what is refused


class Decides(nn.Module):
    def __init__(self, how: Callable[[tl.Tensor], Any]) -> None:
        super().__init__()
        self.how = how

    def forward(self, x: tl.Tensor) -> Any:
        return x * 2 if self.how(x.sum()) else x


@pytest.mark.parametrize(
    "how",
    [
        bool,
        int,
        float,
        lambda x: x.item(),
        lambda x: x.tolist(),
        lambda x: x.detach().numpy(),
        lambda x: range(5)[x.long()],
    ],
    ids=["bool", "int", "float", "item", "tolist", "numpy", "index"],
)
def test_a_value_that_decides_is_an_error_that_names_the_line(how: Callable[[tl.Tensor], Any]) -> None:
    with pytest.raises(TraceError, match=r"asks for a value that is not known yet \(test_export.py:\d+, in "):
        export(Decides(how), (sample(3),))


def test_the_value_of_a_constant_may_decide() -> None:
    limit = tl.tensor(2)
    program = check(lambda x: x * limit.item() if bool(tl.ones(2).sum() > 1) else x, sample(3))
    assert targets(program) == ["mul"]


def test_the_value_of_a_parameter_may_not_decide() -> None:
    class Gated(nn.Linear):
        def forward(self, x: tl.Tensor) -> tl.Tensor:
            return x if self.bias[0] > 0 else super().forward(x)

    with pytest.raises(TraceError, match="bool"):
        export(Gated(3, 3), (sample(2, 3),))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[x > 0], "the shape of take_at's result depends on values"),
        (lambda x: x.nonzero(), "the shape of argwhere's result depends on values"),
        (lambda x: x[x.argmax()], "an index of one place asks for a value"),
        (lambda x: tl.from_numpy(x.array * 2), r"\\.array asks for a value"),
        (lambda x: (x * nn.Parameter(tl.ones(4))).sum().backward(), "a backward pass"),
        (lambda x: object(), "the result result is a object"),
        (lambda x: tl.rand(4, generator=tl.Generator()), "a Generator, which a graph cannot hold"),
        (lambda x: x.uniform_(), "without an op"),
        (lambda x: tl.autocast("cpu")(lambda: x[None] @ x[:, None])(), r"turns autocast on or off \(test_export.py"),
    ],
)
def test_what_a_graph_cannot_hold(function: Callable[..., Any], message: str) -> None:
    with pytest.raises((TraceError, UnsupportedError), match=message):
        export(Function(function), (sample(4),))


def test_a_module_that_writes_to_a_parameter_is_refused() -> None:
    class Grows(nn.Linear):
        def forward(self, x: tl.Tensor) -> tl.Tensor:
            with tl.no_grad():
                self.weight.add_(1)
            return super().forward(x)

    model = Grows(2, 2)
    with pytest.raises(TraceError, match="the module writes to weight"):
        export(model, (sample(1, 2),))


def test_wrong_calls() -> None:
    model: Any = nn.Linear(3, 2)
    with pytest.raises(ArgumentError, match="expected a Module"):
        export(lambda x: x, (sample(3),))  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="args must be a tuple"):
        export(model, sample(3))  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="missing a required argument"):
        export(model, ())
    with pytest.raises(UnsupportedError, match="the argument args_0 is a object"):
        export(Function(lambda x: tl.ones(2)), (object(),))
    program = export(model, (sample(4, 3),))
    with pytest.raises(ArgumentError, match="cannot be called"):
        program(sample(4, 3))
    module = program.module()
    with pytest.raises(ShapeError, match="input has size 5 at dim 0, but the export was made for 4"):
        module(sample(5, 3))
    with pytest.raises(DtypeError, match="input was float32 in the export, and is float64"):
        module(sample(4, 3).double())
    with pytest.raises(ArgumentError, match="was a tensor in the export"):
        module(None)


# ------------------------------------------------------------------------------------------------------ whole models

IDS = [[3, 4, 5, 6, 7], [6, 5, 4, 3, 8], [1, 2, 3, 4, 9]]
TEXT_MODELS = "BertModel RobertaModel DistilBertModel ModernBertModel CLIPTextModel GPT2 Llama Mistral Qwen2 Qwen3 "
TEXT_MODELS += "Lfm2 Lfm2Moe Phi3 Gemma Gemma2 Gemma3 Falcon Mixtral Olmoe Qwen2Moe Qwen3Moe "
IMAGE_MODELS = "ViTModel Dinov2Model CLIPVisionModel"


def small(name: str) -> Any:
    cls: Any = getattr(models, name)
    tl.manual_seed(0)
    return cls(cls.config_class.from_entries(ENTRIES[name], "entries")).eval()


def first(result: Any) -> tl.Tensor:
    return result if isinstance(result, tl.Tensor) else result[0]


@pytest.mark.parametrize("name", TEXT_MODELS.split())
def test_models_of_texts_of_any_length(name: str) -> None:
    model = small(name)
    sizes = {0: Dim("batch"), 1: Dim("tokens", max=8)}
    module = export(model, (tl.tensor(IDS),), dynamic_shapes=(sizes,)).module()
    other = tl.tensor([[1, 2, 3, 4, 5, 6, 7], [8, 7, 6, 5, 4, 3, 9]])
    with tl.no_grad():
        assert tl.allclose(first(module(other)), first(model(other)), atol=1e-5)


def test_a_recurrence_over_positions_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="export of a recurrence"):
        export(small("Qwen3_5"), (tl.tensor(IDS),))


@pytest.mark.parametrize("name", IMAGE_MODELS.split())
def test_models_of_images(name: str) -> None:
    model = small(name)
    module = export(model, (sample(3, 3, 8, 8),), dynamic_shapes=({0: Dim("batch")},)).module()
    with tl.no_grad():
        assert tl.allclose(first(module(sample(5, 3, 8, 8))), first(model(sample(5, 3, 8, 8))), atol=1e-5)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_of_any_number_of_steps(name: str) -> None:
    layer = getattr(nn, name)(4, 6, 2, bidirectional=True)
    module = export(layer, (sample(5, 3, 4),), dynamic_shapes=({0: Dim("steps"), 1: Dim("batch")},)).module()
    x = sample(8, 2, 4)
    tl.testing.assert_close(module(x), layer(x))
    module(x)[0].sum().backward()
    assert layer.weight_ih_l0.grad is not None


def test_a_transformer_of_any_length() -> None:
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
    batch, source, target = Dim("batch"), Dim("source"), Dim("target")
    program = export(
        model, (sample(3, 5, 8), sample(3, 4, 8)), dynamic_shapes=({0: batch, 1: source}, {0: batch, 1: target})
    )
    x, y = sample(2, 7, 8), sample(2, 6, 8)
    assert tl.allclose(program.module()(x, y), model(x, y), atol=1e-5)


@pytest.mark.parametrize("name", ["BertModel", "RobertaModel", "DistilBertModel", "ModernBertModel", "CLIPTextModel"])
def test_encoders_of_padded_texts(name: str) -> None:
    model = small(name)
    sizes = {0: Dim("batch"), 1: Dim("tokens", max=8)}
    mask = tl.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])
    program = export(model, (tl.tensor(IDS), mask), dynamic_shapes=(sizes, sizes))
    other = tl.tensor([[1, 2, 3, 4, 5, 6], [8, 7, 6, 5, 4, 3]]), tl.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    with tl.no_grad():
        assert tl.allclose(first(program.module()(*other))[0], first(model(*other))[0], atol=1e-5)


FROM_TEXT = [f"{family}ForConditionalGeneration" for family in ("T5", "Bart", "M2M100")]


@pytest.mark.parametrize("name", [*FROM_TEXT, "MarianMTModel"])
def test_models_from_text_to_text(name: str) -> None:
    model, batch = small(name), Dim("batch")
    texts, starts = {0: batch, 1: Dim("tokens", max=9)}, {0: batch, 1: Dim("out", max=9)}
    program = export(
        model,
        (tl.tensor(IDS), tl.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [1, 1, 1, 1, 0]])),
        {"decoder_input_ids": tl.tensor(IDS)[:, :4]},
        dynamic_shapes={"input_ids": texts, "attention_mask": texts, "decoder_input_ids": starts},
    )
    ids, begun = tl.tensor([[1, 2, 3, 4, 5, 6, 7], [8, 7, 6, 5, 4, 3, 2]]), tl.tensor([[3, 4], [5, 6]])
    mask = tl.tensor([[0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]])
    with tl.no_grad():
        got = program.module()(ids, mask, decoder_input_ids=begun)
        expected = model(ids, mask, decoder_input_ids=begun)
        assert tl.allclose(got.logits, expected.logits, atol=1e-5)


def test_models_of_two_kinds_of_inputs() -> None:
    clip = small("CLIPModel")
    program = export(clip, (tl.tensor(IDS), sample(2, 3, 8, 8)))
    assert program.module()(tl.tensor(IDS), sample(2, 3, 8, 8))._fields
    whisper = small("Whisper")
    mel = sample(2, whisper.config.num_mel_bins, 2 * whisper.config.max_source_positions)
    tokens = tl.tensor([[1, 2, 3], [3, 2, 1]])
    with tl.no_grad():
        assert tl.allclose(export(whisper, (mel, tokens)).module()(mel, tokens), whisper(mel, tokens), atol=1e-4)


def test_a_program_can_ask_whether_it_is_exported() -> None:
    seen: list[bool] = []
    export(Function(lambda x: seen.append(tl.compiler.is_exporting()) or x), (sample(2),))
    assert seen == [True]
    assert not tl.compiler.is_exporting()


def test_the_stand_in_has_it() -> None:
    from tallow.compat import install_torch

    with install_torch(replace=True):
        import torch
        from torch.export import Dim as TorchDim
        from torch.export.graph_signature import InputKind as TorchKind

        program = torch.export.export(nn.Linear(3, 2), (sample(4, 3),), dynamic_shapes=({0: TorchDim("n")},))
    assert isinstance(program, ExportedProgram)
    assert TorchKind is InputKind
