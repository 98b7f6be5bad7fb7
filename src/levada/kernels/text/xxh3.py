"""XXH3 over slices of a byte array: the identity of every term, and its group.

Bit-exact with the C library (Yann Collet's xxHash specification, "XXH3 algorithm overview"; the
twin is the package ``xxhash``). Four length classes have four formulas: up to 16 bytes, to 128, to
240, longer. The longer ones use a secret that is derived from the seed; ``schedule`` derives it
once.

An identity is 112 bits under a secret seed, so that an attacker cannot prepare collisions, and
above them the *group bits*: the top 16 of the 64-bit hash with seed 0, which are the same in every
checkpoint and on every machine, so that programs can write files by group
(docs/decisions/0026-groups.md). The pair (0, 0) means "unbound". Cost: 8 to 12 ns for a term of 17
to 128 bytes, and 2 to 4 for its group.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numba import types

from levada.core.array_types import Bytes, Words
from levada.kernels import I64, U8, fuse, kernel, part
from levada.kernels.text.byte_ops import (
    LOW32,
    View,
    W,
    add_stripes,
    byte,
    half,
    product,
    put,
    put_word,
    routine,
    view_of,
    word,
)

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_MASK = 0xFFFFFFFFFFFFFFFF


@lru_cache(maxsize=16)
def schedule(seed: int) -> Bytes:
    """Returns the data that the kernels need for a seed (0 <= seed < 2**64): the 192 bytes of the
    derived secret, the seed's eight, and the secret of seed 0.
    """
    assert 0 <= seed <= _MASK, "a seed has 64 bits"
    derived = bytearray()
    for i in range(0, len(_SECRET), 16):
        low = int.from_bytes(_SECRET[i : i + 8], "little") + seed
        high = int.from_bytes(_SECRET[i + 8 : i + 16], "little") - seed
        derived += (low & _MASK).to_bytes(8, "little") + (high & _MASK).to_bytes(8, "little")
    return np.frombuffer(bytes(derived) + seed.to_bytes(8, "little") + _SECRET, np.uint8)


# The default secret's words at every byte offset: the formulas up to 240 bytes add the seed to
# them.
_S = np.array(
    [int.from_bytes(_SECRET[i : i + 8], "little") for i in range(len(_SECRET) - 7)], np.uint64
)
_P64_1, _P64_2, _P64_3, _P64_4, _P64_5 = (
    W(p)
    for p in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_P32_1, _P32_2, _P32_3 = (W(p) for p in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D))
_MX1, _MX2 = W(0x165667919E3779F9), W(0x9FB21C651E98DF25)
_START = np.array([_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1], np.uint64)

# The secret's words that the short formulas use, combined (specification: bitflip).
_FLIP_1_LOW = W((int(_S[0]) & 0xFFFFFFFF) ^ (int(_S[0]) >> 32))
_FLIP_1_HIGH = W((int(_S[8]) & 0xFFFFFFFF) ^ (int(_S[8]) >> 32))
_FLIP_4 = _S[16] ^ _S[24]
_FLIP_9_LOW, _FLIP_9_HIGH = _S[32] ^ _S[40], _S[48] ^ _S[56]
_FLIP_0_LOW, _FLIP_0_HIGH = _S[64] ^ _S[72], _S[80] ^ _S[88]
# .. and those of the 64-bit hash
_PLAIN_0, _PLAIN_4 = _S[56] ^ _S[64], _S[8] ^ _S[16]
_PLAIN_9_LOW, _PLAIN_9_HIGH = _S[24] ^ _S[32], _S[40] ^ _S[48]

_PUBLIC = W(0xFFFF000000000000)  # of an identity's second half: the group bits
_HIDDEN = W(0x0000FFFFFFFFFFFF)

Pair = tuple[np.uint64, np.uint64]


@part
def _swap32(v: np.uint64) -> np.uint64:
    """The low four bytes in reverse order."""
    v = ((v & W(0x00FF00FF)) << W(8)) | ((v >> W(8)) & W(0x00FF00FF))
    return ((v << W(16)) | (v >> W(16))) & LOW32


@part
def _swap64(v: np.uint64) -> np.uint64:
    """The eight bytes in reverse order."""
    return (_swap32(v & LOW32) << W(32)) | _swap32(v >> W(32))


@part
def _avalanche(h: np.uint64) -> np.uint64:
    h ^= h >> W(37)
    h *= _MX1
    return h ^ (h >> W(32))


@part
def _avalanche_64(h: np.uint64) -> np.uint64:
    """XXH64's finaliser, which the shortest inputs use."""
    h ^= h >> W(33)
    h *= _P64_2
    h ^= h >> W(29)
    h *= _P64_3
    return h ^ (h >> W(32))


@part
def _fold(a: np.uint64, b: np.uint64) -> np.uint64:
    low, high = product(a, b)
    return low ^ high


@routine
def _hash_to_3(a: View, i: int, n: int, seed: np.uint64) -> Pair:
    """Lengths 0 to 3."""
    if n == 0:
        return _avalanche_64(seed ^ _FLIP_0_LOW), _avalanche_64(seed ^ _FLIP_0_HIGH)
    low = (
        (W(byte(a, i)) << W(16))
        | (W(byte(a, i + (n >> 1))) << W(24))
        | W(byte(a, i + n - 1))
        | (W(n) << W(8))
    )
    swapped = _swap32(low)
    high = ((swapped << W(13)) | (swapped >> W(19))) & LOW32
    return _avalanche_64(low ^ (_FLIP_1_LOW + seed)), _avalanche_64(high ^ (_FLIP_1_HIGH - seed))


@part
def _hash_to_8(a: View, i: int, n: int, seed: np.uint64) -> Pair:
    """Lengths 4 to 8."""
    seed ^= _swap32(seed & LOW32) << W(32)
    both = half(a, i) + (half(a, i + n - 4) << W(32))
    low, high = product(both ^ (_FLIP_4 + seed), _P64_1 + (W(n) << W(2)))
    high += low << W(1)
    low ^= high >> W(3)
    low ^= low >> W(35)
    low *= _MX2
    return low ^ (low >> W(28)), _avalanche(high)


@part
def hash_two_words(first: np.uint64, last: np.uint64, n: int, seed: np.uint64) -> Pair:
    """Lengths 9 to 16: of the first eight and the last eight bytes."""
    low, high = product(first ^ last ^ (_FLIP_9_LOW - seed), _P64_1)
    low += W(n - 1) << W(54)
    last ^= _FLIP_9_HIGH + seed
    high += last + (last & LOW32) * (_P32_2 - W(1))
    low ^= _swap64(high)
    out_low, out_high = product(low, _P64_2)
    return _avalanche(out_low), _avalanche(out_high + high * _P64_2)


@part
def _mix(
    low: np.uint64, high: np.uint64, a: View, i: int, j: int, secret: int, seed: np.uint64
) -> Pair:
    """Mixes the 16 bytes at i and the 16 at j into the two accumulators."""
    i0, i1, j0, j1 = word(a, i), word(a, i + 8), word(a, j), word(a, j + 8)
    low = (low + _fold(i0 ^ (_S[secret] + seed), i1 ^ (_S[secret + 8] - seed))) ^ (j0 + j1)
    high = (high + _fold(j0 ^ (_S[secret + 16] + seed), j1 ^ (_S[secret + 24] - seed))) ^ (i0 + i1)
    return low, high


@part
def _finish(low: np.uint64, high: np.uint64, n: int, seed: np.uint64) -> Pair:
    """The end of the formulas for 17 to 240 bytes."""
    mixed = low * _P64_1 + high * _P64_4 + (W(n) - seed) * _P64_2
    return _avalanche(low + high), W(0) - _avalanche(mixed)


@fuse
def _hash_to_128(a: View, i: int, n: int, seed: np.uint64) -> Pair:
    """Lengths 17 to 128: pairs of 16 bytes from both ends inwards, the innermost first."""
    low, high = W(n) * _P64_1, W(0)
    if n > 96:
        low, high = _mix(low, high, a, i + 48, i + n - 64, 96, seed)
    if n > 64:
        low, high = _mix(low, high, a, i + 32, i + n - 48, 64, seed)
    if n > 32:
        low, high = _mix(low, high, a, i + 16, i + n - 32, 32, seed)
    low, high = _mix(low, high, a, i, i + n - 16, 0, seed)
    return _finish(low, high, n, seed)


@routine
def _hash_to_240(a: View, i: int, n: int, seed: np.uint64) -> Pair:
    """Lengths 129 to 240."""
    low, high = W(n) * _P64_1, W(0)
    for k in range(0, 128, 32):
        low, high = _mix(low, high, a, i + k, i + k + 16, k, seed)
    low, high = _avalanche(low), _avalanche(high)
    for k in range(128, n - 31, 32):
        low, high = _mix(low, high, a, i + k, i + k + 16, k - 125, seed)
    low, high = _mix(low, high, a, i + n - 16, i + n - 32, 103, W(0) - seed)
    return _finish(low, high, n, seed)


@routine
def _hash_long(a: View, i: int, n: int, secret: View) -> Pair:
    """Lengths above 240: stripes of 64 bytes, blocks of 16 stripes."""
    acc = _START.copy()
    sums = view_of(acc)
    stripes = (n - 1) // 64
    for k in range(0, stripes, 16):
        add_stripes(sums, a, i + 64 * k, secret, 0, min(16, stripes - k))
        if k + 16 <= stripes:
            for lane in range(8):
                h = acc[lane]
                acc[lane] = (h ^ (h >> W(47)) ^ word(secret, 128 + 8 * lane)) * _P32_1
    add_stripes(sums, a, i + n - 64, secret, 121, 1)
    low, high = W(n) * _P64_1, ~(W(n) * _P64_2)
    for k in range(4):
        left, right = acc[2 * k], acc[2 * k + 1]
        low += _fold(left ^ word(secret, 11 + 16 * k), right ^ word(secret, 19 + 16 * k))
        high += _fold(left ^ word(secret, 117 + 16 * k), right ^ word(secret, 125 + 16 * k))
    return _avalanche(low), _avalanche(high)


@routine
def hash128(a: View, i: int, n: int, secret: View) -> Pair:
    """(low, high) of XXH3_128bits of a[i : i + n] under ``secret = schedule(seed)``."""
    seed = word(secret, 192)
    if n > 16:
        if n <= 128:
            return _hash_to_128(a, i, n, seed)
        if n <= 240:
            return _hash_to_240(a, i, n, seed)
        return _hash_long(a, i, n, secret)
    if n > 8:
        return hash_two_words(word(a, i), word(a, i + n - 8), n, seed)
    if n > 3:
        return _hash_to_8(a, i, n, seed)
    return _hash_to_3(a, i, n, seed)


@part
def _plain_two_words(first: np.uint64, last: np.uint64, n: int) -> np.uint64:
    """The 64-bit hash of 9 to 16 bytes: of the first eight and the last eight bytes."""
    first ^= _PLAIN_9_LOW
    last ^= _PLAIN_9_HIGH
    return _avalanche(W(n) + _swap64(first) + last + _fold(first, last))


@routine
def _plain_to_8(a: View, i: int, n: int) -> np.uint64:
    """The 64-bit hash of 0 to 8 bytes."""
    if n > 3:
        h: np.uint64 = (half(a, i + n - 4) + (half(a, i) << W(32))) ^ _PLAIN_4
        h ^= ((h << W(49)) | (h >> W(15))) ^ ((h << W(24)) | (h >> W(40)))
        h *= _MX2
        h ^= (h >> W(35)) + W(n)
        h *= _MX2
        h ^= h >> W(28)
        return h
    if n == 0:
        return _avalanche_64(_PLAIN_0)
    low, _ = _hash_to_3(a, i, n, W(0))
    return low


@part
def _plain_mix(a: View, i: int, secret: int) -> np.uint64:
    return _fold(word(a, i) ^ _S[secret], word(a, i + 8) ^ _S[secret + 8])


@fuse
def _plain_to_128(a: View, i: int, n: int) -> np.uint64:
    """The 64-bit hash of 17 to 128 bytes."""
    h = W(n) * _P64_1 + _plain_mix(a, i, 0) + _plain_mix(a, i + n - 16, 16)
    if n > 32:
        h += _plain_mix(a, i + 16, 32) + _plain_mix(a, i + n - 32, 48)
    if n > 64:
        h += _plain_mix(a, i + 32, 64) + _plain_mix(a, i + n - 48, 80)
    if n > 96:
        h += _plain_mix(a, i + 48, 96) + _plain_mix(a, i + n - 64, 112)
    return _avalanche(h)


@routine
def _plain_to_240(a: View, i: int, n: int) -> np.uint64:
    """The 64-bit hash of 129 to 240 bytes."""
    h = W(n) * _P64_1
    for k in range(0, 128, 16):
        h += _plain_mix(a, i + k, k)
    h = _avalanche(h)
    for k in range(128, n - 15, 16):
        h += _plain_mix(a, i + k, k - 125)
    return _avalanche(h + _plain_mix(a, i + n - 16, 119))


@routine
def plain64(a: View, i: int, n: int, secret: View) -> np.uint64:
    """XXH3_64bits of a[i : i + n] with seed 0; ``secret`` is any ``schedule``."""
    if n > 16:
        if n <= 128:
            return _plain_to_128(a, i, n)
        if n <= 240:
            return _plain_to_240(a, i, n)
        # the first half of the long hash of 128 bits is that of 64
        low, _ = _hash_long(a, i, n, (secret[0] + 200, secret[1] - 200))
        return low
    if n > 8:
        return _plain_two_words(word(a, i), word(a, i + n - 8), n)
    return _plain_to_8(a, i, n)


@part
def _identity(low: np.uint64, high: np.uint64, plain: np.uint64) -> Pair:
    """An identity of the hash under the seed and the one without: never (0, 0)."""
    y = (high & _HIDDEN) | (plain & _PUBLIC)
    return (W(1) if low == W(0) and y == W(0) else low), y


@routine
def _identity_to_128(a: View, i: int, n: int, seed: np.uint64) -> Pair:
    """Returns both hashes at once, for the length of most terms."""
    low, high = _hash_to_128(a, i, n, seed)
    return _identity(low, high, _plain_to_128(a, i, n))


@part
def identity(a: View, i: int, n: int, secret: View) -> Pair:
    """The identity (x, y) of the text a[i : i + n]."""
    if 16 < n <= 128:
        return _identity_to_128(a, i, n, word(secret, 192))
    low, high = hash128(a, i, n, secret)
    return _identity(low, high, plain64(a, i, n, secret))


_OUT = types.uint64[::1]
_Ints = npt.NDArray[np.int64]


@kernel((U8, I64, I64, U8, _OUT, _OUT))
def identify_slices(
    data: Bytes, start: _Ints, size: _Ints, secret: Bytes, x: Words, y: Words
) -> None:
    """Fills x, y with the identities of the texts data[start : start + size] under ``secret =
    schedule(seed)``.
    """
    a, s = view_of(data), view_of(secret)
    for k in range(start.size):
        x[k], y[k] = identity(a, start[k], size[k], s)


@kernel((I64, types.uint64, types.uint64, _OUT, _OUT))
def identify_tagged(values: _Ints, tag: np.uint64, seed: np.uint64, x: Words, y: Words) -> None:
    """Fills x, y with the identities of the nine bytes (tag, value little-endian)."""
    for k in range(values.size):
        value = W(values[k])
        first = tag | (value << W(8))
        low, high = hash_two_words(first, value, 9, seed)
        x[k], y[k] = _identity(low, high, _plain_two_words(first, value, 9))


@routine
def _copy(to: View, j: int, a: View, i: int, n: int) -> None:
    """Copies n bytes at i to j of another view."""
    whole = n // 8 * 8
    for k in range(0, whole, 8):
        put_word(to, j + k, word(a, i + k))
    for k in range(whole, n):
        put(to, j + k, byte(a, i + k))


@kernel((I64, I64, U8, types.int64, _OUT))
def hash_blocks(at: _Ints, size: _Ints, secret: Bytes, block: int, out: Words) -> None:
    """Fills ``out`` with the 64-bit hashes of the blocks of ``block`` bytes of some pieces of
    memory, one behind the other, from their addresses and sizes; the last block may be shorter.
    ``secret`` is any ``schedule``. The caller keeps the pieces alive.
    """
    s, ends = view_of(secret), np.empty(block, np.uint8)
    open_, filled, n = view_of(ends), 0, 0
    for k in range(at.size):
        a, i = (at[k], size[k]), 0
        while i < size[k]:
            if filled == 0 and size[k] - i >= block:
                out[n] = plain64(a, i, block, s)
                n, i = n + 1, i + block
                continue
            part = min(block - filled, size[k] - i)  # of a block that lies in several pieces
            _copy(open_, filled, a, i, part)
            filled, i = filled + part, i + part
            if filled == block:
                out[n] = plain64(open_, 0, block, s)
                n, filled = n + 1, 0
    if filled:
        out[n] = plain64(open_, 0, filled, s)
    ends[0] = 0  # so that the array lives until here
