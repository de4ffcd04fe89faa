import numpy as np

from cases import booleans, case, integers, normal

case("to_dtype", lambda m, x: x.to(m.float64), normal(2, 3))
case("to_dtype", lambda m, x: x.to(m.float32), normal(2, 3), rtol=1e-6, grad=False)
case("to_dtype", lambda m, x: (x.double(), x.type(m.float64), x.to(dtype=m.float64), x.to("cpu", m.double)), normal(3))
case("to_dtype", lambda m, x: x.type_as(m.zeros(1, dtype=m.float64)), normal(3))
case("to_dtype", lambda m, x: x.to(m.zeros(1, dtype=m.float64)), normal(3))
case("to_dtype", lambda m, x: (x.long(), x.int(), x.short(), x.char(), x.bool()), normal(20) * 5, grad=False)
case("to_dtype", lambda m, x: (x.float(), x.double(), x.byte(), x.bool(), x.char()), integers(20), grad=False)
case("to_dtype", lambda m, x: (x.char(), x.byte(), x.short()), np.array([300, -1, 70000, 128]), grad=False)
case("to_dtype", lambda m, x: (x.half().float(), x.bfloat16().float()), integers(20), grad=False)
case("to_dtype", lambda m, x: (x.int(), x.float()), booleans(5), grad=False)
case("to_dtype", lambda m, x: x.type(), normal(3), grad=False)
case("to_device", lambda m, x: x.to("meta").dtype, normal(3), grad=False)
case("clone", lambda m, x: x.clone(), normal(2, 3))
case("clone", lambda m, x: m.clone(x), integers(2, 3), grad=False)
case("clone", lambda m, x: x.t().contiguous(), normal(2, 3))
case("clone", lambda m, x: x.t().contiguous().stride(), normal(2, 3), grad=False)
case("clone", lambda m, x: [y.stride() for y in (
    x.contiguous(memory_format=m.channels_last),
    x.clone(memory_format=m.channels_last),
    x.to(memory_format=m.channels_last),
    x.to(m.float64, memory_format=m.channels_last),
    x.contiguous(memory_format=m.channels_last).contiguous(),
    x.contiguous(memory_format=m.channels_last).clone(),
    m.zeros_like(x.contiguous(memory_format=m.channels_last)),
    m.zeros_like(x.contiguous(memory_format=m.channels_last), memory_format=m.contiguous_format),
)], normal(2, 3, 4, 5), grad=False)  # fmt: skip
case("clone", lambda m, x: x.contiguous(memory_format=m.channels_last), normal(2, 3, 4, 5))
case("clone", lambda m, x: x.clone(memory_format=m.channels_last_3d), normal(2, 3, 4, 2, 2))
case("clone", lambda m, x: x.t().clone(memory_format=m.contiguous_format).stride(), normal(2, 3), grad=False)
