"""Rules of ops that change shapes, join or index tensors."""

from __future__ import annotations

from typing import Any

from tallow.core.apply import apply
from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.functions.batching.rules import RULES, Call, of_samples, rule
from tallow.functions.batching.tensors import aligned
from tallow.ops import selection
from tallow.ops.dims import as_ints, normalize_dim
from tallow.ops.gather import gather as gather_op


@rule("reshape", "view")
def _reshape(call: Call) -> Any:
    x = call.args[0]
    size = list(as_ints(call.args[1], call.op.name))
    if -1 in size:  # the size of one element decides it
        known = 1
        for n in size:
            known *= n if n != -1 else 1
        if size.count(-1) > 1 or not known or x.numel() % known:
            raise ShapeError(f"{call.op.name}: shape {size} is invalid for input of size {x.numel()}")
        size[size.index(-1)] = x.numel() // known
    return call.run(x.value, (call.level.size, *size))


@rule("ravel")
def _ravel(call: Call) -> Any:
    return call.args[0].value.reshape(call.level.size, -1)


@rule("expand")
def _expand(call: Call) -> Any:
    size = as_ints(call.args[1], "expand")
    return call.run(aligned(call.level, call.args[0], len(size)), (call.level.size, *size))


@rule("repeat")
def _repeat(call: Call) -> Any:
    repeats = as_ints(call.args[1], "repeat")
    return call.run(aligned(call.level, call.args[0], len(repeats)), (1, *repeats))


@rule("permute")
def _permute(call: Call) -> Any:
    x = call.args[0]
    dims = [normalize_dim(d, x.ndim, "permute") + 1 for d in as_ints(call.args[1], "permute")]
    return call.run(x.value, (0, *dims))


@rule("squeeze")
def _squeeze(call: Call) -> Any:
    x = call.args[0]
    if not x.ndim or call.args[1] is not None:
        return RULES["dim"](call)
    return call.run(x.value, tuple([i + 1 for i, n in enumerate(x.shape) if n == 1]))


@rule("flatten")
def _flatten(call: Call) -> Any:
    x = call.args[0]
    return RULES["dim"](call) if x.ndim else x.value.unsqueeze(1)


@rule("unbind", "split", "split_with_sizes", "chunk", "tensor_split")
def _split(call: Call) -> Any:
    return RULES["dim"](call) if call.args[0].ndim else NotImplemented


@rule("roll")
def _roll(call: Call) -> Any:
    x, shifts, dims = call.args
    if dims is None or (isinstance(dims, tuple | list) and not dims):
        return call.run(x.value.reshape(call.level.size, -1), shifts, 1).reshape(call.level.size, *x.shape)
    shifted = [normalize_dim(d, x.ndim, "roll") + 1 for d in as_ints(dims, "roll")]
    return call.run(x.value, shifts, tuple(shifted))


@rule("diag_embed")
def _diag_embed(call: Call) -> Any:
    x, offset, *dims = call.args
    return call.run(x.value, offset, *[normalize_dim(d, x.ndim + 1, "diag_embed") + 1 for d in dims])


@rule("cat")
def _cat(call: Call) -> Any:
    tensors, dim = call.args
    if any(x.ndim == 1 and not x.numel() for x in tensors):  # PyTorch leaves these out, whatever the others' dims
        return NotImplemented
    return call.run([call.full(x) for x in tensors], normalize_dim(dim, tensors[0].ndim, "cat") + 1)


@rule("stack")
def _stack(call: Call) -> Any:
    tensors, dim = call.args
    return call.run([call.full(x) for x in tensors], normalize_dim(dim, tensors[0].ndim + 1, "stack") + 1)


@rule("pad")
def _pad(call: Call) -> Any:
    x, pad, mode, value = call.args
    if not call.first_is_alone:
        return NotImplemented
    if mode == "constant":
        return call.run(x.value, pad, mode, value)
    spatial = len(pad) // 2
    return of_samples(x.value, x.ndim - spatial, lambda y: call.run(y, pad, mode, value))


@rule("median_of_all", "nanmedian_of_all")
def _median(call: Call) -> Any:
    if not call.args[0].numel():
        return NotImplemented
    flat = call.args[0].value.reshape(call.level.size, -1)
    return getattr(flat, call.op.name.removesuffix("_of_all"))(1)[0]


@rule("quantile", "nanquantile")
def _quantile(call: Call) -> Any:
    x, q, dim = call.args[:3]
    if not call.first_is_alone or not x.ndim or (dim is None and call["keepdim"]):
        return NotImplemented
    value = x.value.flatten(1) if dim is None else x.value
    dim = 1 if dim is None else normalize_dim(dim, x.ndim, call.op.name) + 1
    y = call.run(value, q, dim, *call.args[3:])
    return y.movedim(1, 0) if isinstance(q, Tensor) and q.ndim else y


@rule("searchsorted")
def _searchsorted(call: Call) -> Any:
    """Search the values of all elements in one sequence, or those of each in its own."""
    sequence, values = call.args
    sorter = call.kwargs.get("sorter")
    if not isinstance(values, Tensor) or sorter is not None:
        return NotImplemented
    if not call.is_batched(sequence) and sequence.ndim == 1:
        return call.run(sequence, values.value)
    if sequence.ndim == 1:
        flat = call.run(sequence.value, call.full(values).reshape(call.level.size, -1))
        return flat.reshape(call.level.size, *values.shape)
    return call.run(call.full(sequence), call.full(values))


@rule("masked_fill")
def _masked_fill(call: Call) -> Any:
    x, mask, value = call.args
    if call.is_batched(value):
        return call.compose(lambda: apply(selection.where, mask, value.to(x.dtype), x))
    return RULES["elementwise"](call)


# ------------------------------------------------------------------------------------------------------------ indices


@rule("getitem")
def _getitem(call: Call) -> Any:
    x, index = call.args
    return call.run(x.value, (slice(None), *index)) if call.first_is_alone else NotImplemented


@rule("take_at")
def _take_at(call: Call) -> Any:
    """Index with arrays for the dims of one element: those in a batch go with the number of the element."""
    x, arrays = call.args
    places = [i for i, a in enumerate(arrays) if a is not None]
    masks = [i for i in places if _is_mask(arrays[i])]
    if any(call.is_batched(arrays[i]) for i in masks):
        return NotImplemented  # the number of places may differ between the elements
    is_adjacent = places == list(range(places[0], places[-1] + 1))
    before = places[0] if is_adjacent else 0  # dims of the result before those of the index
    if not any(call.is_batched(a) for a in arrays):
        rank = max([arrays[i].ndim for i in places if i not in masks], default=1)
        result = call.run(x.value, (None, *arrays))
        return result if is_adjacent else result.movedim(rank, 0)
    if masks:
        return NotImplemented
    rank = max(arrays[i].ndim for i in places)
    index = [None if a is None else aligned(call.level, a, rank) for a in arrays]
    if not call.is_batched(x):
        return call.run(x, tuple(index)).movedim(before, 0)
    elements = arange(call.level.size, device=x.device).reshape(call.level.size, *[1] * rank)
    result = call.run(x.value, (elements, *index))
    # The array of elements stands first. If a dim taken in full separates it from the others, the index comes first.
    for _ in range(before):
        result = result.movedim(rank + before, 1)
    return result


def _is_mask(index: Any) -> bool:
    return bool(getattr(index, "array", index).dtype == bool)


@rule("gather", "scatter", "scatter_add", "scatter_reduce")
def _gather(call: Call) -> Any:
    """Let each tensor have the batch dim, and shift `dim`."""
    x, dim, *others = call.args
    if not x.ndim or any(t.ndim != x.ndim for t in others if isinstance(t, Tensor)):
        return NotImplemented
    tensors = [call.full(t) if isinstance(t, Tensor) else t for t in others]
    return call.run(call.full(x), normalize_dim(dim, x.ndim, call.op.name) + 1, *tensors)


@rule("index_select")
def _index_select(call: Call) -> Any:
    x, dim, index = call.args
    if not x.ndim:
        return NotImplemented
    dim = normalize_dim(dim, x.ndim, "index_select")
    if call.first_is_alone:
        return call.run(x.value, dim + 1, index)
    shape = list(x.shape)
    shape[dim] = index.numel()

    def by_gather() -> Tensor:
        places = index.reshape([-1 if i == dim else 1 for i in range(x.ndim)])
        result: Tensor = apply(gather_op, x, dim, places.expand(shape).long())
        return result

    return call.compose(by_gather)


@rule("index_put")
def _index_put(call: Call) -> Any:
    x, arrays, values, accumulate = call.args
    places = [i for i, a in enumerate(arrays) if a is not None]
    is_adjacent = places == list(range(places[0], places[-1] + 1))
    if not is_adjacent or any(_is_mask(arrays[i]) for i in places):
        return NotImplemented
    rank = max(arrays[i].ndim for i in places)
    first: Any = None
    index = list(arrays)
    if any(call.is_batched(arrays[i]) for i in places):
        if places[0]:
            return NotImplemented
        first = arange(call.level.size, device=x.device).reshape(call.level.size, *[1] * rank)
        index = [None if a is None else aligned(call.level, a, rank) for a in arrays]
    values = aligned(call.level, values, x.ndim - len(places) + rank)
    return call.run(call.full(x), (first, *index), values, accumulate)


@rule("take")
def _take(call: Call) -> Any:
    x, index = call.args
    return call.compose(lambda: x.reshape(-1)[index])


@rule("index_add", "index_copy", "index_fill")
def _index_add(call: Call) -> Any:
    """Shift `dim`; places that differ between the elements go to `scatter`."""
    x, dim, index, source = call.args
    if not x.ndim or index.ndim != 1 or (call.op.name == "index_fill" and call.is_batched(source)):
        return NotImplemented
    dim = normalize_dim(dim, x.ndim, call.op.name)
    if not call.is_batched(index):
        source = source if call.op.name == "index_fill" else call.full(source)
        return call.run(call.full(x), dim + 1, index, source)
    if call.op.name == "index_fill" or source.ndim != x.ndim:
        return NotImplemented
    places = index.reshape([-1 if i == dim else 1 for i in range(x.ndim)]).expand(source.shape).long()
    if call.op.name == "index_copy":
        return call.compose(lambda: x.scatter(dim, places, source))
    return call.compose(lambda: x.scatter_add(dim, places, source * call["alpha"]))


@rule("embedding")
def _embedding(call: Call) -> Any:
    """Look the places of all elements up in one table, or in the tables of all elements, joined."""
    places, weight, padding = call.args
    if call.kwargs.get("scale_grad_by_freq"):
        return NotImplemented
    if not call.is_batched(weight):
        return call.run(places.value, weight, padding)
    rows, width = weight.shape
    if padding is not None:  # this row gets no gradient
        is_row = (arange(rows, device=weight.device) == padding % rows).unsqueeze(1)
        weight = apply(selection.where, is_row, weight.detach(), weight)
    first = (arange(call.level.size, device=weight.device) * rows).reshape(call.level.size, *[1] * places.ndim)
    return call.run(call.full(places) + first, weight.value.reshape(-1, width))
