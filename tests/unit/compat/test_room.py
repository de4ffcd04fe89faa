"""Names of PyTorch that only the stand-in has: trees, handles, weights from URLs, names that raise in use."""

from __future__ import annotations

import hashlib
import importlib
import subprocess
import sys
import typing
import zipfile
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tallow as tl
from tallow.compat import install_torch
from tallow.errors import UnsupportedError
from tallow.hub import in_browser

Pair = namedtuple("Pair", "x y")


@pytest.fixture
def torch() -> Iterator[Any]:
    with install_torch(replace=True):
        yield importlib.import_module("torch")


def tree() -> Any:
    pair = Pair(3, {"z": deque([4], maxlen=3)})
    return {"a": [1, (2, None)], "b": pair, "c": OrderedDict(q=defaultdict(list, {1: 5}))}


def test_a_browser_downloads_weights_by_the_page(torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [in_browser.Answer(200, b"abc"), in_browser.Answer(404, b""), in_browser.Answer(0, b"")]
    monkeypatch.setattr("tallow.compat.torch.hub.IN_BROWSER", True)
    monkeypatch.setattr(in_browser, "PAUSES_S", ())
    monkeypatch.setattr(in_browser, "request", lambda url, part, token: answers.pop(0))
    digits = hashlib.sha256(b"abc").hexdigest()[:8]
    torch.hub.download_url_to_file("https://example.org/a.pth", tmp_path / "a.pth", digits, progress=False)
    assert (tmp_path / "a.pth").read_bytes() == b"abc"
    for reason in ("status 404", "CORS"):
        with pytest.raises(OSError, match=reason):
            torch.hub.download_url_to_file("https://example.org/a.pth", tmp_path / "b.pth", progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.pth"]


def test_a_folder_lists_its_functions(torch: Any, tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text(
        "from math import sqrt\ndef net(n=2):\n    'A net.'\n    return n\n_own = len\n"
    )
    assert torch.hub.list(tmp_path, source="local") == ["sqrt", "net"]
    assert torch.hub.help(tmp_path, "net", source="local") == "A net."
    assert torch.hub.load(tmp_path, "net", 3, source="local") == 3
    with pytest.raises(RuntimeError, match="Cannot find callable none"):
        torch.hub.help(tmp_path, "none", source="local")
    with pytest.raises(ValueError, match=r"hub.list: source='github'"):
        torch.hub.list("pytorch/vision")


def test_a_tree_is_its_leaves_and_its_structure(torch: Any) -> None:
    pytree = torch.utils._pytree
    leaves, spec = pytree.tree_flatten(tree())
    assert leaves == [1, 2, None, 3, 4, 5]
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (6, 14, 3)
    assert spec == pytree.tree_structure(tree())
    assert spec.unflatten(leaves) == tree()
    assert pytree.keystr(pytree.tree_leaves_with_path(tree())[4][0]) == "['b'].y['z'][0]"
    with pytest.raises(ValueError, match="length 1"):
        pytree.tree_unflatten([1], spec)


def test_a_function_of_several_trees(torch: Any) -> None:
    pytree = torch.utils._pytree
    assert pytree.tree_map(lambda x, y: (x, y), [1, {"a": 2}], [[5], {"a": 6}]) == [(1, [5]), {"a": (2, 6)}]
    assert pytree.tree_map_only(int, lambda x: x + 1, [1, "a"]) == [2, "a"]
    spec = pytree.tree_structure([(1, 2), 3])
    assert pytree._broadcast_to_and_flatten([7, 8], spec) == [7, 7, 8]
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="arity"):
        pytree.tree_map(max, [1, 2], [1])


def test_a_class_can_be_a_node(torch: Any) -> None:
    class Box:
        def __init__(self, content: Any) -> None:
            self.content = content

    pytree = torch.utils._pytree
    pytree.register_pytree_node(Box, lambda box: ([box.content], None), lambda children, _: Box(*children))
    assert pytree.tree_map(lambda x: x + 1, [Box(1)])[0].content == 2
    pytree._deregister_pytree_node(Box)


def test_a_handle_removes_its_hook_from_each_dict(torch: Any) -> None:
    hooks: Any = OrderedDict()
    extra: Any = {}
    with torch.utils.hooks.RemovableHandle(hooks, extra_dict=extra) as handle:
        hooks[handle.id] = extra[handle.id] = print
    assert not hooks
    assert not extra


@pytest.mark.native
def test_weights_come_from_a_url(torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    source = tmp_path / "net-00000000.pt"
    tl.save({"w": tl.ones(2)}, source)
    loaded = torch.hub.load_state_dict_from_url(source.as_uri(), progress=False)
    assert loaded["w"].tolist() == [1.0, 1.0]
    assert (tmp_path / "hub" / "checkpoints" / source.name).exists()
    with pytest.raises(RuntimeError, match='expected "00000000"'):
        torch.utils.model_zoo.load_url(source.as_uri(), str(tmp_path / "new"), check_hash=True, progress=False)
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.native
def test_weights_are_unpacked_into_their_folder_alone(torch: Any, tmp_path: Path) -> None:
    packed, weights = tmp_path / "net.zip", tmp_path / "weights.pt"
    tl.save({"w": tl.ones(2)}, weights)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo(str(weights)), weights.read_bytes())
    weights.unlink()
    loaded = torch.hub.load_state_dict_from_url(packed.as_uri(), str(tmp_path / "inside"), progress=False)
    assert loaded["w"].tolist() == [1.0, 1.0]
    assert not weights.exists()


def test_files_of_a_whole_model_are_read_where_its_classes_are_permitted(torch: Any, tmp_path: Path) -> None:
    attention, path = torch.nn.MultiheadAttention(4, 2), tmp_path / "model.pt"
    linear = torch.nn.modules.linear.NonDynamicallyQuantizableLinear
    assert type(attention.out_proj) is linear
    torch.save(attention, path)
    with torch.serialization.safe_globals([torch.nn.MultiheadAttention, linear]):
        assert torch.load(path).out_proj.weight.equal(attention.out_proj.weight)


ABSENT = ["onnx.dynamo_export", "ao.quantization.prepare", "onnx.symbolic_opset9.softmax"]


@pytest.mark.parametrize("path", ABSENT)
def test_a_name_without_a_meaning_raises_where_it_is_used(torch: Any, path: str) -> None:
    value = torch
    for name in path.split("."):
        value = getattr(value, name)
    with pytest.raises(UnsupportedError, match=r"torch\..*has no such feature\n  hint: "):
        value(1, key=2)


def test_onnx_export_is_tallows(torch: Any) -> None:
    import tallow

    assert torch.onnx.export is tallow.onnx.export


@pytest.mark.native
def test_the_parts_of_a_printed_tensor_make_its_text(torch: Any) -> None:
    parts, x = importlib.import_module("torch._tensor_str"), torch.arange(30.0).view(2, 15) / 7
    text = parts._add_suffixes("tensor(" + parts._tensor_str(x, 7), ["grad_fn=<MulBackward0>"], 7, force_newline=False)
    assert text == repr(x * x.new_ones((), requires_grad=True))
    with parts.printoptions(precision=1):
        assert repr(x[0, 1]) == "tensor(0.1)"


def test_a_function_for_remote_calls_raises_where_it_is_used(torch: Any) -> None:
    api = importlib.import_module("torch.distributed.rpc.api")
    remote = api._require_initialized(lambda: 1)
    with pytest.raises(UnsupportedError, match="no such feature"):
        remote()


@pytest.mark.native
def test_nothing_of_the_room_is_imported_without_the_stand_in() -> None:
    code = "import sys, tallow.nn, tallow.optim, tallow.compat; print([m for m in sys.modules if '.compat.torch' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("cpu",), (tl.device("cpu"), None, False, None)),
        ((tl.float64,), (None, tl.float64, False, None)),
        (("cpu", tl.float16, True), (tl.device("cpu"), tl.float16, True, None)),
        ((tl.ones(1, device="cpu"),), (tl.device("cpu"), tl.float32, False, None)),
    ],
    ids=["device", "dtype", "both", "other"],
)
def test_arguments_of_to(torch: Any, arguments: Any, expected: Any) -> None:
    assert torch._C._nn._parse_to(*arguments) == expected


def test_a_device_has_a_module(torch: Any) -> None:
    assert torch.get_device_module("cpu") is torch.cpu
    assert torch.cpu.is_available()
    with torch.cpu.stream(torch.cpu.current_stream()):
        torch.get_device_module("cpu").synchronize()
    with pytest.raises(RuntimeError, match="does not have a corresponding module"):
        torch.get_device_module("meta")
    assert torch.Stream is torch.cuda.Stream


def test_annotations_of_classes_are_objects(torch: Any) -> None:
    for cls in (torch.nn.MSELoss, torch.nn.Linear, torch.nn.Embedding):
        assert all(not isinstance(hint, str) for hint in cls.__annotations__.values())
    loss = torch.nn.CrossEntropyLoss()
    assert typing.get_type_hints(loss, globalns={})["weight"] == (tl.Tensor | None)


def test_weak_keys_are_compared_by_identity(torch: Any) -> None:
    x, y = torch.ones(2), torch.ones(2)
    known = torch.utils.weak.WeakIdKeyDictionary()
    known[x] = 1
    known[y] = 2
    assert (known[x], known[y], len(known), torch.zeros(1) in known) == (1, 2, 2, False)
    del x
    assert [key is y for key in known] == [True]
    assert len(known) == 1


def test_an_iterator_of_another_loader(torch: Any) -> None:
    dataloader = torch.utils.data.dataloader
    loader = SimpleNamespace(
        dataset=[1, 2], _dataset_kind=dataloader._DatasetKind.Iterable, _index_sampler=[0, 0], _auto_collation=False,
        collate_fn=lambda x: x * 10, drop_last=False, generator=None, pin_memory=False,
    )  # fmt: skip
    iterator = dataloader._SingleProcessDataLoaderIter(loader)
    assert list(iterator) == [10, 20]
    assert isinstance(iterator, dataloader._SingleProcessDataLoaderIter)


def test_a_context_decorates(torch: Any) -> None:
    entered = []

    class Note(torch.utils._contextlib._NoParamDecoratorContextManager):  # type: ignore[misc,name-defined]
        def __enter__(self) -> None:
            entered.append(1)

        def __exit__(self, *exc_info: object) -> None:
            entered.append(-1)

    @Note
    def f(x: int) -> int:
        return x + sum(entered)

    @Note()
    def steps() -> Iterator[int]:
        yield sum(entered)
        yield sum(entered)

    assert (f(3), Note()(f)(1), sum(entered)) == (4, 3, 0)
    assert [(inside, sum(entered)) for inside in steps()] == [(1, 0), (1, 0)]


def test_convolution_by_its_core_op(torch: Any) -> None:
    x, w = torch.randn(1, 2, 5), torch.randn(3, 2, 3)
    y = torch.ops.aten.convolution(x, w, None, [1], [1], [1], False, [0], 1)
    assert torch.equal(y, torch.nn.functional.conv1d(x, w, padding=1))
    assert torch._C._is_alias_of(x, x[0, 1, 2:])
    functorch = importlib.import_module("torch._C._functorch")
    assert not functorch.is_batchedtensor(x)
    assert torch.vmap(lambda row: row * functorch.is_batchedtensor(row))(x).tolist() == x.tolist()


def test_a_subclass_computes_the_factor_of_a_normal_distribution_late(torch: Any) -> None:
    class Late(torch.distributions.MultivariateNormal):  # type: ignore[misc,name-defined]
        def __init__(self, loc: Any, matrix: Any) -> None:
            self.loc, self.matrix = loc, matrix
            torch.distributions.Distribution.__init__(self, loc.shape[:-1], loc.shape[-1:], validate_args=False)

        @property
        def _unbroadcasted_scale_tril(self) -> Any:
            return torch.linalg.cholesky(self.matrix)

    loc, matrix = torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    usual = torch.distributions.MultivariateNormal(loc, matrix)
    assert torch.equal(Late(loc, matrix).log_prob(torch.ones(2)), usual.log_prob(torch.ones(2)))
    assert torch.equal(Late(loc, matrix).scale_tril, usual.scale_tril)


def test_a_function_may_write_into_its_input(torch: Any) -> None:
    class Double(torch.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g

    x = torch.ones(2, requires_grad=True)
    Double.apply(x * 1).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert (x.is_xla, x.is_mtia, x.is_vulkan) == (False, False, False)
    with pytest.raises(torch.AcceleratorError):
        x.to("mtia")
