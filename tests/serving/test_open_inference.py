"""The open inference protocol: tensors in JSON and binary over HTTP, metadata, health, and requests that do not fit."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.onnx_files import encoded_model, node, value
from support.small_server import KEY, Running, connected, get, post, running

import tallow as tl
from tallow.cli import main
from tallow.onnx.protobuf import DataType
from tallow.serving.catalog import Catalog
from tallow.serving.http import open_inference
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.open_inference import HEADER
from tallow.serving.tensors import TensorWorker

LIMIT = 1 << 20


def files() -> dict[str, bytes]:
    words = [value(name, "n", dtype=DataType.STRING) for name in ("x", "y")]
    halves = [value(name, 2, dtype=DataType.FLOAT16) for name in ("x", "y")]
    whole = [value(name, "n", dtype=DataType.INT64) for name in ("x", "y")]
    brains = [value(name, 2, dtype=DataType.BFLOAT16) for name in ("x", "y")]
    pair = [node("Sub", "a", "b", output="y"), node("Add", "a", "b", output="z")]
    return {
        "pair": encoded_model(pair, [value("a", "n", 2), value("b", 2)], [value("y", "n", 2), value("z", "n", 2)]),
        "words": encoded_model([node("Identity", "x")], words[:1], words[1:]),
        "halves": encoded_model([node("Neg", "x")], halves[:1], halves[1:]),
        "whole": encoded_model([node("Neg", "x")], whole[:1], whole[1:]),
        "brains": encoded_model([node("Identity", "x")], brains[:1], brains[1:]),
        "logs": encoded_model([node("Log", "x")], [value("x", "n")], [value("y", "n")]),
    }


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    catalog = Catalog(runners={name: TensorWorker(name, tl.onnx.load(data)) for name, data in files().items()})
    with running(
        make_app(catalog, Access((KEY,), most_bytes=LIMIT, most_json=1 << 10), warmup=True), catalog
    ) as started:
        yield started


def tensor(name: str, datatype: str, shape: list[int], data: Any = None, **parameters: Any) -> dict[str, Any]:
    entry = {"name": name, "datatype": datatype, "shape": shape, "data": data, "parameters": parameters or None}
    return {key: each for key, each in entry.items() if each is not None}


def infer(server: Running, model: str, *inputs: dict[str, Any], **more: Any) -> Any:
    status, answer, _ = post(server, f"/v2/models/{model}/infer", {"inputs": inputs, **more})
    assert status == 200, answer
    return answer


def infer_binary(server: Running, model: str, request: dict[str, Any], tail: bytes) -> tuple[Any, bytes]:
    """Return the JSON of the answer, and the bytes that follow it."""
    head = json.dumps(request).encode()
    headers = {"Authorization": f"Bearer {KEY}", HEADER: str(len(head)), "Content-Type": "application/octet-stream"}
    with connected(server) as connection:
        connection.request("POST", f"/v2/models/{model}/versions/1/infer", head + tail, headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        length = int(answer.getheader(HEADER, len(body)))
        return json.loads(body[:length]), body[length:]


def test_json_flat_and_nested(server: Running) -> None:
    answer = infer(
        server,
        "pair",
        tensor("a", "FP32", [2, 2], [[5, 7], [9, 11.5]]),
        tensor("b", "FP32", [2], [1, 2]),
        id="seven",
    )
    assert answer["id"] == "seven"
    assert answer["model_name"] == "pair"
    assert answer["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": [2, 2], "data": [4, 5, 8, 9.5]},
        {"name": "z", "datatype": "FP32", "shape": [2, 2], "data": [6, 9, 10, 13.5]},
    ]


def test_only_wanted_outputs_are_sent_in_binary_too(server: Running) -> None:
    a, b = np.float32([[5, 7]]), np.float32([1, 2])
    inputs = [tensor("a", "FP32", [1, 2], binary_data_size=8), tensor("b", "FP32", [2], binary_data_size=8)]
    request = {"inputs": inputs, "outputs": [{"name": "z", "parameters": {"binary_data": True}}]}
    answer, tail = infer_binary(server, "pair", request, a.tobytes() + b.tobytes())
    assert [(each["name"], each["parameters"]) for each in answer["outputs"]] == [("z", {"binary_data_size": 8})]
    assert np.frombuffer(tail, "<f4").tolist() == [6, 9]
    everything = {"inputs": inputs, "parameters": {"binary_data_output": True}}
    _, tail = infer_binary(server, "pair", everything, a.tobytes() + b.tobytes())
    assert np.frombuffer(tail, "<f4").tolist() == [4, 5, 6, 9]


def test_other_datatypes(server: Running) -> None:
    assert infer(server, "whole", tensor("x", "INT64", [2], [1, -(2**62)]))["outputs"][0]["data"] == [-1, 2**62]
    assert infer(server, "halves", tensor("x", "FP16", [2], [1.5, 2]))["outputs"][0] == {
        **tensor("y", "FP16", [2], [-1.5, -2.0])
    }
    assert infer(server, "words", tensor("x", "BYTES", [2], ["é", "two"]))["outputs"][0]["data"] == ["é", "two"]
    texts = b"\x02\x00\x00\x00\xc3\xa9\x00\x00\x00\x00"
    request = {
        "inputs": [tensor("x", "BYTES", [2], binary_data_size=len(texts))],
        "parameters": {"binary_data_output": True},
    }
    assert infer_binary(server, "words", request, texts)[1] == texts
    bits = np.array([0x3F80, 0xC000], "<u2").tobytes()  # 1 and -2
    answer, tail = infer_binary(server, "brains", {"inputs": [tensor("x", "BF16", [2], binary_data_size=4)]}, bits)
    assert (answer["outputs"][0]["datatype"], tail) == ("BF16", bits)


def test_metadata_and_health(server: Running) -> None:
    status, found, _ = get(server, "/v2/models/pair")
    assert status == 200
    assert found["inputs"] == [
        {"name": "a", "datatype": "FP32", "shape": [-1, 2]},
        {"name": "b", "datatype": "FP32", "shape": [2]},
    ]
    assert found["versions"] == ["1"]
    assert get(server, "/v2")[1]["extensions"] == ["binary_tensor_data"]
    assert get(server, "/v2/models/words")[1]["inputs"][0]["datatype"] == "BYTES"
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/pair/ready", "/v2/models/pair/versions/1/ready"):
        assert get(server, path)[0] == 200, path
    status, error, _ = get(server, "/v2/models/none")
    assert status == 404
    assert "there is no ONNX model 'none'" in error["error"]
    assert get(server, "/v2/models/pair/versions/2")[0] == 404
    assert {card["id"] for card in get(server, "/v1/models")[1]["data"]} == set(server.catalog.runners)


B = tensor("b", "FP32", [2], [1, 2])


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ([], "inputs"),
        ([tensor("a", "FP32", [1, 2], [[1, 2]])], "b: missing"),
        ([tensor("a", "FP32", [1, 3], [1, 2, 3]), B], "a: shape (1, 3)"),
        ([tensor("a", "INT64", [1, 2], [1, 2]), B], "a: dtype"),
        ([tensor("c", "FP32", [1], [1]), B], "c: no such input"),
        ([B, B], "twice"),
        ([tensor("a", "FP32", [1, 2], [1]), B], "a list of 2 values"),
        ([tensor("a", "FP32", [1, 2], 5), B], "a list of 2 values"),
        ([tensor("a", "FP32", [1, 2], [1, "x"]), B], "values of FP32"),
        ([tensor("a", "FP32", [1 << 39], [1]), B], "values"),
        ([tensor("a", "FP32", [-1, 2], [1, 2]), B], "a list of sizes"),
        ([tensor("a", "FP32", [0, 1 << 39, 1 << 39], []), B], "sizes that an array can have"),
        ([tensor("a", "FP32", [0, 1 << 39, 1 << 39], binary_data_size=0), B], "sizes that an array can have"),
        ([tensor("a", "FP32", [1, 2], [1, 2], shared_memory_region="r"), B], "shared_memory_region is not supported"),
        ([tensor("a", "UINT8", [1], [300]), B], "range of UINT8"),
        ([tensor("a", "INT8", [1], [1.5]), B], "values of INT8"),
        ([tensor("a", "BOOL", [1], [1]), B], "values of BOOL"),
        ([tensor("a", "FP8", [1], [1]), B], "datatype"),
        ([{"name": "a", "shape": [1, 2], "data": [1, 2]}, B], "datatype"),
        ([tensor("a", "FP32", [1, 2], binary_data_size=8), B], "bytes that are left"),
    ],
)
def test_what_does_not_fit_is_named(server: Running, inputs: list[Any], said: str) -> None:
    status, answer, _ = post(server, "/v2/models/pair/infer", {"inputs": inputs})
    assert status == 400, answer
    assert said in answer["error"]


@pytest.mark.parametrize(
    ("headers", "body", "said"),
    [
        ({HEADER: "9999"}, b"{}", HEADER),
        ({HEADER: "-1"}, b"{}", HEADER),
        ({HEADER: "9" * 40}, b"{}", HEADER),
        ({}, b"[" * 100, "body"),
        ({HEADER: "2"}, b"{}junk", "inputs"),
    ],
)
def test_bodies_that_cannot_be_read(server: Running, headers: dict[str, str], body: bytes, said: str) -> None:
    status, answer, _ = post(server, "/v2/models/pair/infer", body, **headers)
    assert status == 400
    assert said in answer["error"]


def test_bytes_after_the_tensors_and_too_large_bodies_are_refused(server: Running) -> None:
    head = json.dumps({"inputs": [tensor("a", "FP32", [1, 2], [1, 2]), B]}).encode()
    status, answer, _ = post(server, "/v2/models/pair/infer", head + b"more", **{HEADER: str(len(head))})
    assert (status, answer) == (400, {"error": "4 bytes follow the last tensor"})
    status, answer, _ = post(server, "/v2/models/pair/infer", bytes(LIMIT + 1))
    assert status == 413
    assert "larger than 1 MiB" in answer["error"]
    assert len(head) + 2000 > 1 << 10  # tensors may exceed the limit of other JSON
    many = {"inputs": [tensor("a", "FP32", [1000, 2], [0.5] * 2000), B]}
    assert len(infer(server, "pair", *many["inputs"])["outputs"][0]["data"]) == 2000


def test_values_that_json_lacks_are_asked_for_in_binary(server: Running) -> None:
    zero = tensor("x", "FP32", [1], [0])
    status, answer, _ = post(server, "/v2/models/logs/infer", {"inputs": [zero]})
    assert status == 500
    assert "binary_data" in answer["error"]
    _, tail = infer_binary(server, "logs", {"inputs": [zero], "parameters": {"binary_data_output": True}}, b"")
    assert np.frombuffer(tail, "<f4").tolist() == [-np.inf]


def test_large_outputs_are_asked_for_in_binary(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_inference, "MOST_IN_JSON", 5)
    inputs = [tensor("a", "FP32", [2, 2], [1, 2, 3, 4]), B]
    status, answer, _ = post(server, "/v2/models/pair/infer", {"inputs": inputs})
    assert (status, answer) == (400, {"error": "outputs of more than 5 values; ask for binary_data"})
    assert infer(server, "pair", *inputs, outputs=[{"name": "y"}])["outputs"][0]["data"] == [0, 0, 2, 2]
    _, tail = infer_binary(server, "pair", {"inputs": inputs, "parameters": {"binary_data_output": True}}, b"")
    assert len(tail) == 32


def test_labels_in_place_of_a_tensor_are_refused(server: Running) -> None:
    request = {
        "inputs": [tensor("x", "FP32", [1], [1])],
        "outputs": [{"name": "y", "parameters": {"classification": 2}}],
    }
    status, answer, _ = post(server, "/v2/models/logs/infer", request)
    assert (status, answer) == (400, {"error": "outputs[0].parameters.classification is not supported"})


def test_nothing_is_ready_before_the_models_have_run(monkeypatch: pytest.MonkeyPatch) -> None:
    may_run = threading.Event()
    worker = TensorWorker("logs", tl.onnx.load(files()["logs"]))
    monkeypatch.setattr(worker, "warm_up", lambda: may_run.wait(60))
    catalog = Catalog(runners={"logs": worker})
    paths = ("/v2/health/ready", "/v2/models/logs/ready", "/v2/models/logs/versions/1/ready")
    with running(make_app(catalog, warmup=True), catalog) as server:
        assert [get(server, path)[0] for path in paths] == [503] * 3
        may_run.set()
        while get(server, "/ready")[0] != 200:
            time.sleep(0.01)
        assert [get(server, path)[0] for path in paths] == [200] * 3


def test_unknown_fields_are_named_and_a_key_is_needed(server: Running) -> None:
    request = {"inputs": [tensor("x", "FP32", [1], [1])], "colour": "red"}
    status, _, headers = post(server, "/v2/models/logs/infer", request)
    assert (status, {name.lower(): text for name, text in headers.items()}["x-tallow-ignored"]) == (200, "colour")
    assert post(server, "/v2/models/logs/infer", request, key="wrong")[0] == 401


@pytest.mark.parametrize("dims", [("n",), (1 << 40,)], ids=["error", "size"])
def test_a_model_that_takes_no_zeros_is_served(dims: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = encoded_model([node("Neg", "x")], [value("x", *dims)], [value("y", *dims)])
    worker = TensorWorker("picky", tl.onnx.load(file))
    monkeypatch.setattr(worker, "answer", lambda requests: requests[len(requests)])
    worker.start()
    try:
        worker.warm_up()
    finally:
        worker.stop()


def test_two_models_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.onnx").write_bytes(files()["logs"])
    option = ("--onnx", f"a={tmp_path / 'net.onnx'}")
    assert main(["serve", "--port", "0", *option, *option]) == 2
    assert "another model has this name" in capsys.readouterr().err


def test_a_run_that_takes_too_long_ends() -> None:
    worker = TensorWorker("logs", tl.onnx.load(files()["logs"]), time_limit_s=1e-9)
    worker.start()
    with pytest.raises(RuntimeError, match="ran for more than"):
        worker.submit({"x": tl.ones(1)}).result()
    worker.stop()
