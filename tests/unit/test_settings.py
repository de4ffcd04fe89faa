"""PyTorch names besides tensors and layers: settings, backends, devices, older names."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import pytest

import tallow as tl
from tallow.distributed.mpi import world
from tallow.errors import ArgumentError, DeviceError, MissingNameError, UnsupportedError


def test_compile_takes_the_arguments_of_pytorch() -> None:
    def double(x: tl.Tensor) -> tl.Tensor:
        return x * 2

    layer = tl.nn.Linear(2, 2)
    assert tl.compile(layer, mode="max-autotune", fullgraph=True)._orig_mod is layer
    assert tl.compile(double, disable=True) is double
    assert tl.compile(dynamic=True)(double).function is double
    assert tl.compile(double, backend=tl.compiler.list_backends()[0]).function is double
    assert tl.compiler.disable(double) is tl.compiler.disable()(double) is double
    assert not tl.compiler.is_compiling()
    for options, error in (
        ({"backend": "inductr"}, ArgumentError), ({"mode": "max-autotine"}, ArgumentError),
        ({"mode": "default", "options": {}}, ArgumentError), ({"backend": lambda graph, _: graph}, UnsupportedError),
    ):  # fmt: skip
        with pytest.raises(error, match="compile: "):
            tl.compile(double, **options)


def test_flags_of_a_backend_hold_for_a_block() -> None:
    cudnn = tl.backends.cudnn
    before = cudnn.enabled, cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark = not before[1]
    try:
        with pytest.raises(MissingNameError, match="benchmarc"), cudnn.flags(benchmarc=True):
            pass
        with cudnn.flags(deterministic=True):
            assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (False, False, True)
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (before[0], not before[1], before[2])
    finally:
        cudnn.benchmark = before[1]


def test_unavailable_backends() -> None:
    assert not tl.backends.mps.is_available()
    assert not tl.backends.mkldnn.is_available()
    assert tl.backends.cudnn.version() is None
    assert tl.backends.cuda.math_sdp_enabled()
    tl.backends.cuda.enable_flash_sdp(True)
    assert not tl.backends.cuda.flash_sdp_enabled()
    before = tl.backends.cuda.matmul.allow_tf32
    tl.backends.cuda.matmul.allow_tf32 = not before
    assert tl.backends.cuda.matmul.allow_tf32 is not before
    tl.backends.cuda.matmul.allow_tf32 = before


def test_settings_are_checked_and_stored() -> None:
    tl.set_float32_matmul_precision("high")
    assert tl.get_float32_matmul_precision() == "high"
    tl.set_float32_matmul_precision("highest")
    with pytest.raises(ArgumentError, match="low"):
        tl.set_float32_matmul_precision("low")
    tl.use_deterministic_algorithms(True, warn_only=True)
    assert tl.are_deterministic_algorithms_enabled()
    assert tl.is_deterministic_algorithms_warn_only_enabled()
    tl.use_deterministic_algorithms(False)
    assert not tl.is_deterministic_algorithms_warn_only_enabled()
    assert tl.get_num_threads() >= 1
    with pytest.raises(ArgumentError):
        tl.set_num_threads(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without threadpoolctl
        tl.set_num_threads(tl.get_num_threads())
    assert tl.get_num_interop_threads() == 1
    try:
        tl.set_default_tensor_type("torch.DoubleTensor")
        assert tl.zeros(1).dtype is tl.float64
    finally:
        tl.set_default_tensor_type(tl.FloatTensor)
    with pytest.raises(ArgumentError):
        tl.set_default_tensor_type(tl.LongTensor)


@pytest.mark.cpu("the default device is what it is about")
def test_new_tensors_go_to_the_default_device() -> None:
    with tl.device("meta"):
        assert tl.get_default_device() == tl.device("meta")
        values = [tl.zeros(2), tl.ones(2), tl.randn(2), tl.arange(3), tl.tensor([1.0]), tl.nn.Linear(2, 2).weight]
        assert {str(t.device) for t in values} == {"meta"}
        assert tl.zeros(2, device="cpu").device == tl.device("cpu")
        assert tl.from_numpy(tl.zeros(1, device="cpu").numpy()).device == tl.device("cpu")
        with tl.device("cpu"):
            assert tl.zeros(2).device == tl.device("cpu")
    assert tl.zeros(2).device == tl.device("cpu")
    tl.set_default_device("meta")
    try:
        assert tl.empty(2).device == tl.device("meta")
    finally:
        tl.set_default_device(None)
    assert tl.get_default_device() == tl.device("cpu")


def test_classes_named_by_dtype() -> None:
    x = tl.FloatTensor([1, 2])
    assert x.dtype is tl.float32
    assert tl.LongTensor(2, 3).shape == (2, 3)
    assert tl.ByteTensor().shape == (0,)
    assert isinstance(x, tl.FloatTensor)
    assert not isinstance(x, tl.LongTensor)
    assert not isinstance(3, tl.LongTensor)
    assert x.type(tl.LongTensor).tolist() == [1, 2]
    assert x.type("torch.DoubleTensor").dtype is tl.float64
    variable = tl.autograd.Variable(x, requires_grad=True)
    assert isinstance(variable, tl.autograd.Variable)
    assert variable.requires_grad
    assert not x.requires_grad


def test_there_is_no_process_group_before_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    dist = tl.distributed
    assert dist.is_available() == dist.is_mpi_available()
    assert not dist.is_initialized()
    assert not dist.is_torchelastic_launched()
    monkeypatch.setattr("sys.platform", "emscripten")
    monkeypatch.setattr("tallow.distributed.groups.world", world.__wrapped__)  # a test before may have started MPI
    with pytest.raises(DeviceError, match="a browser tab is one process"):
        dist.init_process_group()
    with pytest.raises(ValueError, match="not been initialized"):
        dist.get_rank()
    with pytest.raises(ValueError, match="not been initialized"):
        tl.nn.parallel.DistributedDataParallel(tl.nn.Linear(1, 1))


def test_data_parallel_on_one_device() -> None:
    layer = tl.nn.Linear(2, 1)
    wrapped = tl.nn.DataParallel(layer)
    assert wrapped.module is layer
    assert tl.equal(wrapped(tl.ones(3, 2)), layer(tl.ones(3, 2)))
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(DeviceError, match="2 devices"):
        tl.nn.DataParallel(layer, device_ids=[0, 1])


@pytest.mark.cpu("there is a GPU")
def test_cuda_without_a_gpu() -> None:
    if tl.cuda.is_available():
        pytest.skip("there is a GPU")
    assert tl.cuda.device_count() == tl.cuda.memory_allocated() == tl.cuda.memory_reserved() == 0
    assert not tl.cuda.is_bf16_supported()
    tl.cuda.empty_cache()
    tl.cuda.manual_seed_all(3)
    for call in (tl.cuda.synchronize, tl.cuda.current_device, tl.cuda.get_device_name, tl.cuda.device(0).__enter__):
        with pytest.raises(DeviceError):
            call()
    with pytest.raises(RuntimeError):
        tl.ones(1).cuda()


def test_fork_rng() -> None:
    tl.manual_seed(5)
    first = tl.rand(2).tolist()
    tl.manual_seed(5)
    with tl.random.fork_rng():
        tl.rand(7)
    assert tl.rand(2).tolist() == first


@pytest.mark.cpu("asks whether it is there")
def test_unsupported_kinds_of_tensors() -> None:
    x: Any = tl.ones(2)
    assert x.is_cpu
    assert not any([x.is_sparse, x.is_meta, x.is_quantized, x.is_mps, x.is_nested])
    assert x.pin_memory() is x.to_dense() is x
    assert not x.is_pinned()
    assert x[:, tl.newaxis].shape == (2, 1)
    assert copy.deepcopy(tl.FloatTensor([math.pi])).item() == pytest.approx(math.pi)


def test_poisson_and_binomial_numbers() -> None:
    tl.manual_seed(0)
    samples = tl.poisson(tl.full((20000,), 3.0))
    assert samples.mean().item() == pytest.approx(3, abs=0.1)
    assert samples.var().item() == pytest.approx(3, abs=0.2)
    samples = tl.binomial(tl.full((20000,), 10.0), tl.tensor(0.3))
    assert samples.mean().item() == pytest.approx(3, abs=0.1)
    assert samples.var().item() == pytest.approx(2.1, abs=0.2)
    with pytest.raises(RuntimeError):
        tl.poisson(tl.tensor(-1.0))


def test_batch_norm_of_one_process_is_that_of_all() -> None:
    tl.manual_seed(0)
    model = tl.nn.Sequential(tl.nn.Linear(3, 4), tl.nn.Sequential(tl.nn.BatchNorm1d(4)))
    x = tl.randn(5, 3)
    expected = model(x)
    weight = model[1][0].weight
    converted = tl.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert isinstance(converted[1][0], tl.nn.SyncBatchNorm)
    assert converted[1][0].weight is weight
    assert tl.allclose(converted(x), expected)
    assert int(converted[1][0].num_batches_tracked) == 2
    with pytest.raises(ValueError, match=r"LazyBatchNorm1d has no number of channels yet\n.*call the model once"):
        tl.nn.SyncBatchNorm.convert_sync_batchnorm(tl.nn.Sequential(tl.nn.LazyBatchNorm1d()))


@pytest.mark.cpu("apply_ is for tensors there, as in PyTorch")
def test_tensors_made_after_another_and_changed_by_a_function() -> None:
    x = tl.tensor([[1.0, 2.0]], dtype=tl.float64)
    assert x.new(2, 3).shape == (2, 3)
    assert x.new([1, 2]).dtype is tl.float64
    assert x.new().shape == (0,)
    assert x.apply_(lambda v: v * v + 1).tolist() == [[2, 5]]
