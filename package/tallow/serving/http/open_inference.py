"""The open inference protocol, version 2: `/v2/models/NAME/infer`, metadata and health, with tensors in JSON or binary.

Source:  https://kserve.github.io/website/docs/concepts/architecture/data-plane/v2-protocol, with its binary tensor data
         extension: the JSON comes first, its length is in a header, and the bytes of the tensors follow
"""

from __future__ import annotations

import re
import struct
from asyncio import wrap_future
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from starlette.requests import Request
from starlette.responses import Response

from tallow import dtypes
from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.errors import NumericError, TallowError
from tallow.onnx.signature import ValueInfo
from tallow.onnx.tensors import MOST_ELEMENTS
from tallow.serving.http.clients import client_of, in_turn
from tallow.serving.http.errors import FAILED, ApiError, api_error
from tallow.serving.http.fields import Fields, as_integer
from tallow.serving.http.known_fields import EMPTY, Table, refused, within
from tallow.serving.http.large_json import pieces
from tallow.serving.http.running import Answer, unless_gone
from tallow.serving.queue import Busy, Closed
from tallow.serving.tensors import TensorWorker

PATH = re.compile(r"/v2/models/[^/]+(/versions/[^/]+)?/infer")
LABEL = "/v2/models/NAME/infer"  # in metrics and the log
HEADER = "Inference-Header-Content-Length"
VERSION = "1"
RUNNERS = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
GETS = ("/v2", "/v2/health/live", "/v2/health/ready", *RUNNERS, *(f"{path}/ready" for path in RUNNERS))
EXAMPLE = {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1]}]}
FIELDS = {
    "inputs": {
        "type": "array",
        "items": {"type": "object"},
        "description": "tensors: `name`, `shape`, `datatype`, and `data`, or `parameters.binary_data_size`",
    },
    "outputs": {
        "type": "array",
        "items": {"type": "object"},
        "description": "`name` of those that are wanted, and `parameters.binary_data`; all by default",
    },
    "parameters": {"type": "object", "description": "`binary_data_output`: send outputs as bytes"},
    "id": {"type": "string", "description": "repeated in the answer"},
}
TABLE = Table(  # extensions of Triton
    {
        **within("inputs.parameters", refused("shared_memory_region", values=EMPTY)),
        **within("outputs.parameters", refused("shared_memory_region", values=EMPTY)),
        **within("outputs.parameters", refused("classification", values=(0,))),
    },
    frozenset(),
    {},
)
EXTENSIONS = ["binary_tensor_data"]
PLATFORM = "onnx_tallow"
MOST_TENSORS, MOST_RANK = 256, 32
MOST_TEXTS = 1 << 20
MOST_IN_JSON = 1 << 24  # values of an answer, which take some 40 bytes each until it is written

DATATYPES: dict[str, npt.DTypeLike] = {
    "BOOL": "?",
    "UINT8": "u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}
BF16, BYTES = "BF16", "BYTES"
NAMES = {
    **{dtype: name.upper() for name, dtype in vars(dtypes).items() if re.fullmatch(r"bool|u?int\d+", name)},
    dtypes.float16: "FP16",
    dtypes.float32: "FP32",
    dtypes.float64: "FP64",
    dtypes.bfloat16: BF16,
}


def read(body: bytes, header: str | None, worker: TensorWorker) -> tuple[Answer, list[str]]:
    """Return what answers a request for inference, and its unknown fields.

    Args:    header: how long the JSON is; None if it is the whole body
    Raises:  ApiError; the answer also ClientGone
    """
    fields, wanted, values = _read(body, header)
    number = fields.text("id")

    async def answer(request: Request) -> Response:
        async def run() -> dict[str, Any]:
            return await wrap_future(worker.submit(values, client_of(request)))

        try:
            outputs = await unless_gone(request, run())
        except (Busy, Closed, NumericError) as error:
            raise api_error(error) from error
        except TallowError as error:  # the module's own check has named the tensor that does not fit
            raise ApiError(str(error), "inputs") from error
        return await in_turn(request, lambda: _answer(number, wanted, outputs, worker.name))

    return answer, TABLE.unknown(fields)


def metadata(worker: TensorWorker) -> dict[str, Any]:
    """Return what `/v2/models/NAME` says."""
    model = worker.model
    return {
        "name": worker.name,
        "versions": [VERSION],
        "platform": PLATFORM,
        "inputs": [_described(info) for info in model.inputs()],
        "outputs": [_described(info) for info in model.outputs()],
    }


def _described(info: ValueInfo) -> dict[str, Any]:
    datatype = BYTES if info.kind == "string" else NAMES.get(info.dtype, "") if info.dtype is not None else ""
    return {
        "name": info.name,
        "datatype": datatype,
        "shape": [dim if isinstance(dim, int) else -1 for dim in info.shape or ()],
    }


# ------------------------------------------------------------------------------------------------------------ requests


def _read(body: bytes, header: str | None) -> tuple[Fields, dict[str, bool] | bool, dict[str, Any]]:
    """Return the fields, which outputs are wanted in binary, and the tensors by name.  Raises: ApiError"""
    length = len(body)
    if header is not None:
        if not header.isdecimal() or int(header[:20]) > len(body):
            raise ApiError(f"{HEADER}: {header!r:.40} is not the length of a part of the body", HEADER)
        length = int(header[:20])
    fields = Fields.parse(body[:length])
    rest = memoryview(body)[length:]
    values: dict[str, Any] = {}
    for entry in fields.objects("inputs", MOST_TENSORS, least=1):
        name = entry.required_text("name")
        if name in values:
            raise ApiError(f"inputs: {name!r:.80} is there twice", "inputs")
        values[name], taken = _tensor(entry, rest)
        rest = rest[taken:]
    if len(rest):
        raise ApiError(f"{len(rest)} bytes follow the last tensor", "inputs")
    return fields, _wanted(fields), values


def _wanted(fields: Fields) -> dict[str, bool] | bool:
    """Return the outputs that are asked for, and whether in binary; or that alone if all are."""
    parameters = fields.inner("parameters")
    all_binary = parameters.flag("binary_data_output") if parameters is not None else False
    outputs = fields.objects("outputs", MOST_TENSORS)
    wanted = {}
    for entry in outputs:
        own = entry.inner("parameters")
        wanted[entry.required_text("name")] = own.flag("binary_data", all_binary) if own is not None else all_binary
    return wanted or all_binary


def _tensor(entry: Fields, rest: memoryview) -> tuple[Any, int]:
    """Return a tensor, and how many bytes of `rest` it took.  Raises: ApiError"""
    datatype = entry.choice("datatype", ("FP32", *(name for name in DATATYPES if name != "FP32"), BF16, BYTES))
    if entry.get("datatype") is None:
        raise entry.wrong("datatype", f"one of {', '.join(DATATYPES)}, {BF16}, {BYTES}")
    sizes = [as_integer(size) for size in entry.items("shape", MOST_RANK)]
    if not all(size is not None and 0 <= size < 1 << 40 for size in sizes):
        raise entry.wrong("shape", "a list of sizes")
    shape = [size or 0 for size in sizes]
    if prod(max(size, 1) for size in shape) >= MOST_ELEMENTS:
        raise entry.wrong("shape", "sizes that an array can have")
    parameters = entry.inner("parameters")
    taken = parameters.integer("binary_data_size", 0) if parameters is not None else None
    if taken is None:
        return _from_json(entry, datatype, shape), 0
    if taken > len(rest):
        raise entry.wrong("parameters", f"binary_data_size of at most {len(rest)}, the bytes that are left")
    return _from_bytes(entry, datatype, shape, rest[:taken]), taken


def _from_json(entry: Fields, datatype: str, shape: list[int]) -> Any:
    data = entry.get("data")
    flat: list[Any] = []
    waiting = [data]
    while waiting:  # row by row: the data may be nested as the shape is, or flat
        item = waiting.pop()
        if isinstance(item, list):
            waiting += reversed(item)
        else:
            flat.append(item)
    if not isinstance(data, list) or len(flat) != prod(shape):
        raise entry.wrong("data", f"a list of {prod(shape)} values, by the shape")
    if datatype == BYTES:
        if not all(isinstance(each, str) for each in flat):
            raise entry.wrong("data", "a list of strings")
        return _texts(flat, shape)
    if datatype == BF16:
        raise entry.wrong("data", "binary data: JSON has no bfloat16")
    dtype = np.dtype(DATATYPES[datatype])
    kinds = {"b": bool, "u": int, "i": int}.get(dtype.kind, (int, float))
    if not all(isinstance(each, kinds) and (dtype.kind == "b" or not isinstance(each, bool)) for each in flat):
        raise entry.wrong("data", f"values of {datatype}")
    try:
        return tensor(np.array(flat, dtype).reshape(shape))
    except OverflowError as error:
        raise entry.wrong("data", f"values in the range of {datatype}") from error


def _from_bytes(entry: Fields, datatype: str, shape: list[int], data: memoryview) -> Any:
    if datatype == BYTES:
        return _texts(_split(entry, data, prod(shape)), shape)
    dtype = np.dtype("<u2" if datatype == BF16 else DATATYPES[datatype])
    if len(data) != prod(shape) * dtype.itemsize:
        raise entry.wrong("parameters", f"binary_data_size {prod(shape) * dtype.itemsize}, by shape and datatype")
    array = np.frombuffer(data, dtype)
    if dtype.kind == "b":
        array = np.frombuffer(data, np.uint8) != 0  # another byte than 0 and 1 is no bool of NumPy's
    value = tensor(array.reshape(shape))
    return value.view(dtypes.bfloat16) if datatype == BF16 else value


def _split(entry: Fields, data: memoryview, count: int) -> list[str]:
    """Return texts that each follow their length, in four bytes."""
    texts: list[str] = []
    at = 0
    while at < len(data) and len(texts) < MOST_TEXTS:
        length = struct.unpack_from("<I", data, at)[0] if at + 4 <= len(data) else len(data)
        if at + 4 + length > len(data):
            raise entry.wrong("parameters", "lengths of texts that fit the bytes")
        try:
            texts.append(bytes(data[at + 4 : at + 4 + length]).decode())
        except UnicodeDecodeError as error:
            raise entry.wrong("parameters", "texts in UTF-8") from error
        at += 4 + length
    if len(texts) != count or at != len(data):
        raise entry.wrong("shape", f"{len(texts)} texts, as there are")
    return texts


def _texts(texts: list[str], shape: list[int]) -> npt.NDArray[np.object_]:
    return np.array(texts, dtype=object).reshape(shape)


# ------------------------------------------------------------------------------------------------------------- answers


def _answer(number: str | None, wanted: dict[str, bool] | bool, outputs: Mapping[str, Any], name: str) -> Response:
    """Return the answer with the outputs that are wanted.  Raises: ApiError"""
    chosen = dict.fromkeys(outputs, wanted) if isinstance(wanted, bool) else wanted
    entries: list[dict[str, Any]] = []
    tail: list[bytes] = []
    count = 0
    for each, binary in chosen.items():
        if each not in outputs:
            raise ApiError(f"outputs: the model has no {each!r:.80}; it has {', '.join(outputs)}", "outputs")
        datatype, array = _plain(each, outputs[each])
        entry: dict[str, Any] = {"name": each, "datatype": datatype, "shape": list(array.shape)}
        if binary or datatype == BF16:
            data = _bytes(array)
            tail.append(data)
            entry["parameters"] = {"binary_data_size": len(data)}
        else:
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ApiError(f"{each} has values that JSON does not have; ask for binary_data", status=FAILED)
            count += array.size
            if count > MOST_IN_JSON:
                raise ApiError(f"outputs of more than {MOST_IN_JSON:,} values; ask for binary_data", "outputs")
            entry["data"] = array.reshape(-1).tolist()
        entries.append(entry)
    head: dict[str, Any] = {"model_name": name, "model_version": VERSION}
    if number is not None:
        head["id"] = number
    text = b"".join(pieces(head | {"outputs": entries}))
    if not tail:
        return Response(text, media_type="application/json")
    return Response(b"".join([text, *tail]), media_type="application/octet-stream", headers={HEADER: str(len(text))})


def _plain(name: str, value: Any) -> tuple[str, npt.NDArray[Any]]:
    """Return an output's datatype and its values; bfloat16 as the bits.  Raises: ApiError for what is no tensor"""
    if isinstance(value, np.ndarray):
        return BYTES, value
    datatype = NAMES.get(value.dtype) if isinstance(value, Tensor) else None
    if datatype is None:
        raise ApiError(f"the output {name} is no tensor of a dtype of the protocol", status=FAILED)
    value = value.detach().to("cpu")
    return datatype, (value.view(dtypes.uint16) if datatype == BF16 else value).numpy()


def _bytes(array: npt.NDArray[Any]) -> bytes:
    if array.dtype == object:
        texts = [str(text).encode() for text in array.reshape(-1)]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
