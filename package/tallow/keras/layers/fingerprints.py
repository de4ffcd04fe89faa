"""String hashes that are the same on every machine and equal to Keras' (TensorFlow's).

`fingerprint` is FarmHash's Fingerprint64; `siphash` is SipHash-2-4.

Source:  Pike & Alakuijala 2014, FarmHash, farmhashna.cc; Aumasson & Bernstein 2012, SipHash
"""

from __future__ import annotations

MASK = 2**64 - 1
K0, K1, K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
CAT = 0xC6A4A7935BD1E995


def _rotate(x: int, by: int) -> int:
    """Rotate 64 bits to the right."""
    x &= MASK
    return (x >> by | x << (64 - by)) & MASK


def _shift_mix(x: int) -> int:
    x &= MASK
    return x ^ x >> 47


def _mix(u: int, v: int, mul: int) -> int:
    a = _shift_mix((u ^ v) * mul)
    b = _shift_mix((v & MASK ^ a) * mul)
    return b * mul & MASK


def _word(s: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(s[at : at + size], "little")


def fingerprint(s: bytes) -> int:
    """Return FarmHash's 64-bit fingerprint of a byte string."""
    n = len(s)
    if n > 64:
        return _fingerprint_long(s)
    mul = K2 + 2 * n
    if n >= 17:
        a, b = _word(s, 0) * (K1 if n <= 32 else K2) & MASK, _word(s, 8)
        c, d = _word(s, n - 8) * mul & MASK, _word(s, n - 16) * K2 & MASK
        y = _rotate(a + b, 43) + _rotate(c, 30) + d & MASK
        z = _mix(y, a + _rotate(b + K2, 18) + c & MASK, mul)
        if n <= 32:
            return z
        e, f = _word(s, 16) * mul & MASK, _word(s, 24)
        g, h = (y + _word(s, n - 32)) * mul & MASK, (z + _word(s, n - 24)) * mul & MASK
        return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h & MASK, e + _rotate(f + a, 18) + g & MASK, mul)
    if n >= 8:
        a, b = _word(s, 0) + K2 & MASK, _word(s, n - 8)
        return _mix(_rotate(b, 37) * mul + a & MASK, (_rotate(a, 25) + b) * mul & MASK, mul)
    if n >= 4:
        return _mix(n + (_word(s, 0, 4) << 3), _word(s, n - 4, 4), mul)
    if n:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[-1] << 2)
        return _shift_mix(y * K2 & MASK ^ z * K0 & MASK) * K2 & MASK
    return K2


def _pair(s: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(s, at + 8 * i) for i in range(4))
    a = a + w & MASK
    b = _rotate(b + a + z, 21)
    c, a = a, a + x + y & MASK
    return a + z & MASK, b + _rotate(a, 44) + c & MASK


def _fingerprint_long(s: bytes) -> int:
    seed = 81
    x, y = seed * K2 + _word(s, 0) & MASK, seed * K1 + 113 & MASK
    z = _shift_mix(y * K2 + 113) * K2 & MASK
    v, w = (0, 0), (0, 0)
    end = (len(s) - 1) // 64 * 64
    starts = [*range(0, end, 64), len(s) - 64]
    mul = K1
    for at in starts:
        factor = 1
        if at == starts[-1]:
            mul, factor = K1 + ((z & 0xFF) << 1), 9
            first = w[0] + (len(s) - 1 & 63) & MASK
            v = (v[0] + first & MASK, v[1])
            w = (first + v[0] & MASK, w[1])
        x = _rotate(x + y + v[0] + _word(s, at + 8), 37) * mul & MASK
        y = _rotate(y + v[1] + _word(s, at + 48), 42) * mul & MASK
        x ^= w[1] * factor & MASK
        y = y + v[0] * factor + _word(s, at + 40) & MASK
        z = _rotate(z + w[0], 33) * mul & MASK
        v = _pair(s, at, v[1] * mul, x + w[0])
        w = _pair(s, at + 32, z + w[1], y + _word(s, at + 16))
        z, x = x, z
    return _mix(_mix(v[0], w[0], mul) + _shift_mix(y) * K0 + z & MASK, _mix(v[1], w[1], mul) + x & MASK, mul)


def combine(first: int, second: int) -> int:
    """Combine two fingerprints, in order, into one."""
    result = first ^ CAT ^ (_shift_mix(second * CAT) * CAT & MASK)
    result = _shift_mix(result * CAT) * CAT & MASK
    return _shift_mix(result)


def siphash(s: bytes, key: tuple[int, int]) -> int:
    """Return the 64-bit SipHash-2-4 of a byte string; hashes are unpredictable without the key."""
    k0, k1 = (part & MASK for part in key)
    a, b, c, d = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rotate_left(x: int, by: int) -> int:
        return _rotate(x, 64 - by)

    def sip_round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
        a, c = a + b & MASK, c + d & MASK
        b, d = rotate_left(b, 13) ^ a, rotate_left(d, 16) ^ c
        a, c = rotate_left(a, 32) + d & MASK, c + b & MASK
        b, d = rotate_left(b, 17) ^ c, rotate_left(d, 21) ^ a
        return a, b, rotate_left(c, 32), d

    full = len(s) // 8 * 8
    words = [_word(s, at) for at in range(0, full, 8)] + [_word(s, full) | (len(s) & 0xFF) << 56]
    for word in words:
        d ^= word
        a, b, c, d = sip_round(*sip_round(a, b, c, d))
        a ^= word
    c ^= 0xFF
    for _ in range(4):
        a, b, c, d = sip_round(a, b, c, d)
    return a ^ b ^ c ^ d
