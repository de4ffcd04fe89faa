"""Files of YOLO models, which name classes of a package that is not here: read without it, computed as by PyTorch.

The modules below are those of the package in PyTorch, by the names in its files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tallow as tl
from tallow.cli import main
from tallow.errors import ArgumentError, CheckpointError, NumericError
from tallow.models import ObjectDetector
from tallow.models.vision.finders import _masks
from tallow.models.vision.yolo import Yolo
from tallow.models.vision.yolo_file import read_model
from tallow.vision import box_convert, decode_rle, letterbox

PIXELS = np.random.default_rng(0).random((2, 3, 96, 64)).astype(np.float32)


class Conv(nn.Module):
    home = "conv"

    def __init__(self, before: int, after: int, size: int = 1, stride: int = 1, groups: int = 1, act: bool = True):
        super().__init__()
        self.conv = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(after, eps=1e-3)
        self.act = nn.SiLU() if act else nn.Identity()

    def forward(self, x: Any) -> Any:
        return self.act(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    home = "block"

    def __init__(self, width: int, add: bool):
        super().__init__()
        self.cv1, self.cv2, self.add = Conv(width, width, 3), Conv(width, width, 3), add

    def forward(self, x: Any) -> Any:
        return x + self.cv2(self.cv1(x)) if self.add else self.cv2(self.cv1(x))


class C3k(nn.Module):
    home = "block"

    def __init__(self, width: int):
        super().__init__()
        self.cv1, self.cv2, self.cv3 = Conv(width, 2), Conv(width, 2), Conv(4, width)
        self.m = nn.Sequential(Bottleneck(2, True), Bottleneck(2, True))

    def forward(self, x: Any) -> Any:
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), 1))


class C2f(nn.Module):
    home = "block"

    def __init__(self, before: int, after: int, *blocks: Any):
        super().__init__()
        self.c = after // 2
        self.cv1, self.cv2 = Conv(before, after), Conv((2 + len(blocks)) * self.c, after)
        self.m = nn.ModuleList(blocks)

    def forward(self, x: Any) -> Any:
        maps = [*self.cv1(x).split(self.c, 1)]
        for block in self.m:
            maps.append(block(maps[-1]))
        return self.cv2(torch.cat(maps, 1))


class C3k2(C2f):
    pass


class SPPF(nn.Module):
    home = "block"

    def __init__(self, width: int):
        super().__init__()
        self.cv1, self.cv2 = Conv(width, width // 2, act=False), Conv(2 * width, width)
        self.m = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Any) -> Any:
        maps = [self.cv1(x)]
        for _ in range(3):
            maps.append(self.m(maps[-1]))
        return self.cv2(torch.cat(maps, 1))


class Attention(nn.Module):
    home = "block"

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.num_heads, self.head_dim, self.key_dim = heads, width // heads, width // heads // 2
        self.scale = self.key_dim**-0.5
        self.qkv = Conv(width, 2 * width, act=False)
        self.proj, self.pe = Conv(width, width, act=False), Conv(width, width, 3, groups=width, act=False)

    def forward(self, x: Any) -> Any:
        batch, width, rows, columns = x.shape
        parts = self.qkv(x).view(batch, self.num_heads, -1, rows * columns)
        q, k, v = parts.split([self.key_dim, self.key_dim, self.head_dim], 2)
        weights = ((q.transpose(-2, -1) @ k) * self.scale).softmax(-1)
        seen = (v @ weights.transpose(-2, -1)).view(batch, width, rows, columns)
        return self.proj(seen + self.pe(v.reshape(batch, width, rows, columns)))


class PSABlock(nn.Module):
    home = "block"

    def __init__(self, width: int):
        super().__init__()
        self.attn, self.add = Attention(width, 2), True
        self.ffn = nn.Sequential(Conv(width, 2 * width), Conv(2 * width, width, act=False))

    def forward(self, x: Any) -> Any:
        x = x + self.attn(x)
        return x + self.ffn(x)


class C2PSA(nn.Module):
    home = "block"

    def __init__(self, width: int):
        super().__init__()
        self.cv1, self.cv2, self.m = Conv(width, width), Conv(width, width), nn.Sequential(PSABlock(width // 2))

    def forward(self, x: Any) -> Any:
        one, two = self.cv1(x).chunk(2, 1)
        return self.cv2(torch.cat((one, self.m(two)), 1))


class Concat(nn.Module):
    home = "conv"

    def __init__(self) -> None:
        super().__init__()
        self.d = 1

    def forward(self, maps: Any) -> Any:
        return torch.cat(maps, self.d)


class Proto(nn.Module):
    home = "block"

    def __init__(self, width: int):
        super().__init__()
        self.cv1, self.upsample = Conv(width, 4, 3), nn.ConvTranspose2d(4, 4, 2, 2)
        self.cv2, self.cv3 = Conv(4, 4, 3), Conv(4, 6)

    def forward(self, x: Any) -> Any:
        return self.cv3(self.cv2(self.upsample(self.cv1(x))))


class DFL(nn.Module):
    home = "block"

    def __init__(self, count: int):
        super().__init__()
        self.conv = nn.Conv2d(count, 1, 1, bias=False).requires_grad_(False)
        self.conv.weight.data[:] = torch.arange(count).view(1, count, 1, 1)


class Detect(nn.Module):
    home = "head"

    def __init__(self, *widths: int):
        super().__init__()
        self.nc, self.reg_max = 3, 16
        self.cv2 = nn.ModuleList(nn.Sequential(Conv(each, 8, 3), nn.Conv2d(8, 64, 1)) for each in widths)
        self.cv3 = nn.ModuleList(
            nn.Sequential(nn.Sequential(Conv(each, each, 3, groups=each), Conv(each, 8)), nn.Conv2d(8, 3, 1))
            for each in widths
        )
        self.dfl = DFL(16)
        self.stride = torch.tensor([8.0, 16.0])

    def forward(self, maps: Any) -> Any:
        found = []
        for box, label, x, stride in zip(self.cv2, self.cv3, maps, self.stride, strict=True):
            rows, columns = torch.meshgrid(*map(torch.arange, x.shape[2:]), indexing="ij")
            centres = torch.stack((columns, rows)).flatten(1) + 0.5
            chances = box(x).flatten(2).unflatten(1, (4, 16)).softmax(2)
            low, high = self.dfl.conv(chances.transpose(1, 2)).view(len(x), 4, -1).chunk(2, 1)
            low, high = centres - low, centres + high
            boxes = torch.cat(((low + high) / 2, high - low), 1) * stride
            found.append(torch.cat((boxes, label(x).sigmoid().flatten(2)), 1))
        return torch.cat(found, 2)


class Segment(Detect):
    def __init__(self, *widths: int):
        super().__init__(*widths)
        self.proto = Proto(widths[0])
        self.cv4 = nn.ModuleList(nn.Sequential(Conv(each, 4, 3), nn.Conv2d(4, 6, 1)) for each in widths)

    def forward(self, maps: Any) -> Any:
        weights = [part(x).flatten(2) for part, x in zip(self.cv4, maps, strict=True)]
        return super().forward(maps), torch.cat(weights, 2), self.proto(maps[0])


class DetectionModel(nn.Module):
    def __init__(self, head: Any):
        super().__init__()
        layers = [
            (-1, Conv(3, 4, 3, 2)),
            (-1, Conv(4, 6, 3, 2)),
            (-1, C2f(6, 8, Bottleneck(4, True), Bottleneck(4, True))),
            (-1, Conv(8, 8, 3, 2)),
            (-1, C3k2(8, 8, C3k(4))),
            (-1, Conv(8, 16, 3, 2)),
            (-1, SPPF(16)),
            (-1, C2PSA(16)),
            (-1, nn.Upsample(None, 2.0, "nearest")),
            ([-1, 4], Concat()),
            (-1, C2f(24, 8, Bottleneck(4, False))),
            ([10, 7], head),
        ]
        for i, (source, layer) in enumerate(layers):
            layer.f, layer.i = source, i
        self.model = nn.Sequential(*(layer for _, layer in layers))
        self.names = {0: "cat", 1: "dog", 2: "bird"}

    def forward(self, x: Any) -> Any:
        found: list[Any] = []
        for layer in self.model:
            x = x if layer.f == -1 else [x if each == -1 else found[each] for each in layer.f]
            found.append(x := layer(x))
        return x


class SegmentationModel(DetectionModel):
    pass


class Unknown(DetectionModel):
    pass


PARTS = (Conv, Bottleneck, C3k, C2f, C3k2, SPPF, Attention, PSABlock, C2PSA, Concat, Proto, DFL, Detect, Segment)
MODELS = (DetectionModel, SegmentationModel, Unknown)
KINDS = {"boxes": (DetectionModel, Detect), "masks": (SegmentationModel, Segment)}


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files name the classes as the package does."""
    for kind in (*PARTS, *MODELS):
        home = "ultralytics.nn.tasks" if kind in MODELS else f"ultralytics.nn.modules.{kind.home}"
        monkeypatch.setattr(kind, "__module__", home)
        for end in range(1, home.count(".") + 2):
            name = ".".join(home.split(".")[:end])
            if name not in sys.modules:
                monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.setattr(sys.modules[home], kind.__name__, kind, raising=False)


def written(kind: str, path: Path) -> Any:
    """Write a file of a model with random weights, and return the model."""
    model_class, head = KINDS[kind]
    torch.manual_seed(0)
    model = model_class(head(8, 16)).eval()
    for name, value in model.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 1.5)
        elif value.is_floating_point() and "dfl" not in name:
            value += 0.3 * torch.randn(value.shape)
    torch.save({"epoch": -1, "model": model, "ema": None, "train_args": {"imgsz": 640}}, path)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_models_compute_as_in_pytorch(kind: str, tmp_path: Path) -> None:
    theirs = written(kind, tmp_path / "yolo.pt")
    model = Yolo(read_model(tmp_path / "yolo.pt"))
    assert model.labels == ("cat", "dog", "bird")
    with torch.no_grad():
        expected = theirs(torch.tensor(PIXELS))
    with tl.no_grad():
        found = model(tl.tensor(PIXELS))
    rows, *masks = expected if kind == "masks" else (expected,)
    rows = rows.mT.numpy()
    assert rows[..., 4:].std() > 0.01
    np.testing.assert_allclose(found.boxes.numpy(), box_convert(rows[..., :4], "cxcywh", "xyxy"), atol=1e-3)
    np.testing.assert_allclose(found.scores.numpy(), rows[..., 4:], atol=1e-4)
    if kind == "masks":
        weights, maps = masks
        np.testing.assert_allclose(found.coefficients.numpy(), weights.mT.numpy(), atol=1e-4)
        np.testing.assert_allclose(found.prototypes.numpy(), maps.numpy(), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_objects_lie_in_the_picture(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    written(kind, tmp_path / "yolo.pt")
    detector = ObjectDetector.from_pretrained(tmp_path / "yolo.pt")
    detector.finder.side = 96  # type: ignore[attr-defined]
    picture = np.random.default_rng(2).integers(0, 256, (50, 80, 3), np.uint8)
    (found,) = detector.detect(picture, 0.3)
    assert 1 < len(found) <= 300
    for _, score, (left, top, right, bottom), mask in found:
        assert score > 0.3
        assert 0 <= left <= right <= 80
        assert 0 <= top <= bottom <= 50
        assert (mask is None) == (kind == "boxes")
        if mask is not None:
            assert mask.shape == (50, 80)
            assert not mask[:, : int(left)].any()
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


def test_masks_are_prototypes_resized_as_in_pytorch() -> None:
    pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(3)
    boxed = letterbox(np.zeros((33, 64, 3), np.uint8), (64, 128))
    maps, weights = rng.normal(size=(4, 16, 32)).astype(np.float32), rng.normal(size=(3, 4)).astype(np.float32)
    boxes = np.array([[0, 0, 64, 33], [10.5, 3.2, 40.1, 20.9], [7, 7, 7, 9]])
    logits = torch.tensor(np.tensordot(weights, maps, 1))[None]
    assert (boxed.left, boxed.top, boxed.scale) == (2, 0, 64 / 33)
    x = (torch.arange(64) + 0.5) * (124 / 64 / 4) + 0.5  # in cells of the map, after the margin of 2 pixels
    y = (torch.arange(33) + 0.5) * (64 / 33 / 4)
    grid = torch.stack(torch.meshgrid(y / 8 - 1, x / 16 - 1, indexing="ij")[::-1], -1)[None].float()
    whole = nn.functional.grid_sample(logits, grid, padding_mode="border", align_corners=False)[0].numpy()
    found = _masks(weights, maps, boxed, boxes)
    for own, values, (left, top, right, bottom) in zip(found, whole, boxes, strict=True):
        inside = np.zeros((33, 64), bool)
        inside[int(top) : int(np.ceil(bottom)), int(left) : int(np.ceil(right))] = right > left
        sure = np.abs(values) > 1e-3
        np.testing.assert_array_equal(own[sure], ((values > 0) & inside)[sure])


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "yolo.pt"
    torch.save({"model": {"a": torch.ones(2)}}, path)
    with pytest.raises(CheckpointError, match="no YOLO model"):
        ObjectDetector.from_pretrained(path)
    torch.save({"model": Unknown(Detect(8, 16))}, path)
    with pytest.raises(CheckpointError, match="Unknown"):
        ObjectDetector.from_pretrained(path)
    torch.save({"model": DetectionModel(nn.Conv2d(1, 1, 1))}, path)
    with pytest.raises(CheckpointError, match="finds no objects"):
        ObjectDetector.from_pretrained(path)
    model = written("boxes", path)
    model.model[-1].stride = "eight"
    torch.save({"model": model}, path)
    with pytest.raises(CheckpointError, match="do not fit"):
        ObjectDetector.from_pretrained(path)
    written("boxes", path)
    with pytest.raises(ArgumentError, match="quant"):
        ObjectDetector.from_pretrained(path, quant="int8")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(CheckpointError):
        ObjectDetector.from_pretrained(path)


def endless(model: Any) -> None:
    model.model[4].m[0] = nn.Sequential()
    model.model[4].m[0].add_module("0", model.model[4].m[0])


def doubled(model: Any) -> None:
    part: Any = nn.Sequential(nn.SiLU())
    for _ in range(30):
        part = nn.Sequential(part, part)
    model.model[4].m[0] = part


def deep(model: Any) -> None:
    part: Any = nn.Sequential(nn.SiLU())
    for _ in range(40):
        part = nn.Sequential(part)
    model.model[4].m[0] = part


def swapped(model: Any) -> None:
    model.model[4], model.model[5] = model.model[5], model.model[4]


def with_setting(value: Any, *path: Any) -> Any:
    def damage(model: Any) -> None:
        *way, last = path
        for name in way:
            model = model[name] if isinstance(name, int) else getattr(model, name)
        setattr(model, last, value)

    return damage


DAMAGES = {
    "endless": endless,
    "doubled": doubled,
    "deep": deep,
    "swapped": swapped,
    "stride of 0": with_setting(torch.tensor([0.0, 0.0]), "model", -1, "stride"),
    "stride of NaN": with_setting(torch.tensor([8.0, float("nan")]), "model", -1, "stride"),
    "endless stride": with_setting(torch.tensor([8.0, 1e9]), "model", -1, "stride"),
    "one stride": with_setting(torch.tensor(8.0), "model", -1, "stride"),
    "source": with_setting([99, 7], "model", -1, "f"),
    "source of text": with_setting("one", "model", 1, "f"),
    "few names": with_setting({0: "cat"}, "names"),
    "padding": with_setting((1 << 30, 1 << 30), "model", 0, "conv", "padding"),
    "step of 0": with_setting((0, 0), "model", 0, "conv", "stride"),
    "poolings": with_setting(1 << 40, "model", 6, "n"),
    "factor": with_setting(1e6, "model", 8, "scale_factor"),
    "factor of text": with_setting("two", "model", 8, "scale_factor"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_models_are_refused_when_they_are_loaded(damage: str, tmp_path: Path) -> None:
    model = written("boxes", tmp_path / "yolo.pt")
    DAMAGES[damage](model)
    torch.save({"model": model}, tmp_path / "yolo.pt")
    with pytest.raises(CheckpointError):
        ObjectDetector.from_pretrained(tmp_path / "yolo.pt")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", ["cv2", "cv3"])
def test_results_that_are_not_finite_are_an_error(kind: str, head: str, tmp_path: Path) -> None:
    model = written(kind, tmp_path / "yolo.pt")
    with torch.no_grad():
        getattr(model.model[-1], head)[0][-1].bias.fill_(float("nan"))
    torch.save({"model": model}, tmp_path / "yolo.pt")
    detector = ObjectDetector.from_pretrained(tmp_path / "yolo.pt")
    with pytest.raises(NumericError, match="NaN"):
        detector.detect(np.zeros((32, 32, 3), np.uint8), 0.1)


def test_the_command_prints_and_draws_objects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    written("masks", tmp_path / "yolo.pt")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    image.fromarray(np.full((30, 40, 3), 90, np.uint8)).save(pictures / "grey.png")
    (pictures / "broken.jpg").write_bytes(b"no picture")
    command = ["detect", "pictures", "--model", "yolo.pt", "--threshold", "0.3"]
    assert main([*command, "--json", "--save", "out"]) == 1
    output = capsys.readouterr()
    assert "broken.jpg" in output.err
    (line,) = output.out.splitlines()
    entry = json.loads(line)
    assert entry["image"] == str(Path("pictures", "grey.png"))
    assert [*entry["objects"][0]] == ["label", "score", "box", "mask"]
    assert decode_rle(entry["objects"][0]["mask"]).shape == (30, 40)
    drawn = np.asarray(image.open(tmp_path / "out" / "grey.png"))
    assert drawn.shape == (30, 40, 3)
    assert (drawn != 90).any()
    assert main([*command[:4], "--threshold", "1"]) == 1
    assert "no objects" in capsys.readouterr().out
    assert main(["detect", "pictures", "--model", "yolo.pt", "--save", "pictures"]) == 2
    assert "would replace" in capsys.readouterr().err
    assert main(["detect", "yolo.pt", "--model", "none.pt"]) == 2
