import numpy as np

from cases import booleans, case, integers, normal

bits, others = integers(2, 3, low=-50, high=50), integers(3, low=0, high=20)
small = integers(3, high=200).astype(np.uint8)

case("bitwise_and", lambda m, a, b: (a & b, m.bitwise_and(a, b), a & 6, 6 & a), bits, others, grad=False)
case("bitwise_or", lambda m, a, b: (a | b, m.bitwise_or(a, b), a | 6, 6 | a), bits, others, grad=False)
case("bitwise_xor", lambda m, a, b: (a ^ b, m.bitwise_xor(a, b), a ^ 6, 6 ^ a), bits, others, grad=False)
case("bitwise_not", lambda m, a: (~a, m.bitwise_not(a), a.bitwise_not()), bits, grad=False)
case("bitwise_not", lambda m, a: ~a, small, grad=False)
case("bitwise_and", lambda m, a, b: (a & b, a | b, a ^ b, ~a), booleans(3, 4), booleans(4), grad=False)
case("bitwise_and", lambda m, a, b: (a & b, a | b), bits, booleans(3), grad=False)
case("bitwise_and", lambda m, a, b: a.clone().bitwise_and_(b), bits, others, grad=False)
case("bitwise_or", lambda m, a, b: a.clone().bitwise_or_(b), bits, others, grad=False)
case("bitwise_xor", lambda m, a, b: a.clone().bitwise_xor_(b), bits, others, grad=False)
case("bitwise_not", lambda m, a: a.clone().bitwise_not_(), bits, grad=False)
case("bitwise_left_shift", lambda m, a, b: (a << b, m.bitwise_left_shift(a, b), a << 2), bits, others, grad=False)
case("bitwise_left_shift", lambda m, a: (a << 3, 1 << a % 8), small, grad=False)
case("bitwise_left_shift", lambda m, a, b: a.clone().bitwise_left_shift_(b), bits, others, grad=False)
case("bitwise_left_shift", lambda m, a: (a << 64, a >> 64, a >> 100), bits, grad=False)
case("bitwise_right_shift", lambda m, a, b: (a >> b, m.bitwise_right_shift(a, b), a >> 2), bits, others, grad=False)
case("bitwise_right_shift", lambda m, a, b: a.clone().bitwise_right_shift_(b), bits, others, grad=False)
case("hash_tensor", lambda m, a: (m.hash_tensor(a), m.hash_tensor(a, 1, keepdim=True)), bits, grad=False)
case("hash_tensor", lambda m, a: m.hash_tensor(a, dim=(0, -1)), normal(3, 4, 5), grad=False)
case("hash_tensor", lambda m, a: (m.hash_tensor(a.to(m.bfloat16), 0), m.hash_tensor(a > 0)), normal(), grad=False)
