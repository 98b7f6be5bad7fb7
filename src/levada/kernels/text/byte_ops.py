"""Bytes under numba: checked views, little-endian loads at any index, 64 x 64 -> 128 bit products,
byte classes.

A *view* of a byte array is the pair (address, size) of plain integers. Passing an array to an inner
function costs numba two atomic reference counts a call, which is more than hashing a term; passing
a view costs nothing. NumPy has no unaligned load and no wide product either, so LLVM intrinsics
provide them. With ``NUMBA_BOUNDSCHECK=1`` every access through a view is checked like an index;
with ``NUMBA_DISABLE_JIT=1`` plain Python does the same.

Invariants: an access of k bytes at i touches bytes i to i + k - 1 only; the code that makes a view
keeps its array alive. Cost: one machine load, store or multiplication.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from levada.kernels import OPTIONS, inline_functions, part

View = tuple[int, int]  # address, size
VIEW = types.UniTuple(types.int64, 2)

W = np.uint64
PAD = (
    64  # newlines that must follow the last byte of a chunk: no load of the kernels reaches further
)
# Bytes that one loop counts, in a byte. numba takes a negative index from the end; in a loop of
# just so many LLVM sees that none is negative, and loads whole registers. Where the loop's end was
# computed, it loaded byte by byte for registers of 64 bytes, which takes twenty times as long.
COUNTED = 128
CHECKED = bool(config.BOUNDSCHECK)
JIT = bool(not config.DISABLE_JIT)
LOW32 = W(0xFFFFFFFF)


def parsing_room(size: int) -> int:
    """How many bytes behind a chunk of ``size`` bytes the parser wants at first: padding, and texts
    that it writes anew.
    """
    return PAD + size // 8 + 4096


F = TypeVar("F", bound=Callable[..., Any])


def routine(function: F) -> F:
    """A part of a kernel that is worth a call: bigger, or used in many places."""
    return inline_functions.make_part(function, OPTIONS)


def _loader(bits: int) -> Any:
    """An intrinsic: the ``bits`` bits at an address, as a number (uint64; a byte as int64)."""

    @intrinsic
    def load(_context: Any, address: Any) -> Any:
        def generate(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
            value = builder.load(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()))
            value.align = 1
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return (types.int64 if bits == 8 else types.uint64)(types.int64), generate

    return load


def _storer(bits: int) -> Any:
    """An intrinsic: writes the low ``bits`` bits of an int64 to an address."""

    @intrinsic
    def store(_context: Any, address: Any, value: Any) -> Any:
        def generate(target: Any, builder: Any, _signature: Any, args: Any) -> Any:
            narrow = ir.IntType(bits)
            value = args[1] if bits == 64 else builder.trunc(args[1], narrow)
            builder.store(value, builder.inttoptr(args[0], narrow.as_pointer())).align = 1
            return target.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return store


@intrinsic
def _product(_context: Any, a: Any, b: Any) -> Any:
    """The 128-bit product as (low, high)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide, narrow = ir.IntType(128), ir.IntType(64)
        both = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        low, high = (
            builder.trunc(both, narrow),
            builder.trunc(builder.lshr(both, ir.Constant(wide, 64)), narrow),
        )
        return context.make_tuple(builder, signature.return_type, (low, high))

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


@intrinsic
def _mix_stripes(_context: Any, sums: Any, data: Any, keys: Any, count: Any) -> Any:
    """The inner loop of XXH3 over ``count`` stripes, with the eight sums in one vector, which numba
    would not make of a loop over eight words.
    """

    def generate(target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(64), 8)
        pointer = vector.as_pointer()
        word = ir.Constant(ir.IntType(64), 64)

        def load(address: Any) -> Any:
            value = builder.load(builder.inttoptr(address, pointer))
            value.align = 1
            return value

        def splat(value: int) -> Any:
            return ir.Constant(vector, [value] * 8)

        total = cgutils.alloca_once_value(builder, load(args[0]))
        with cgutils.for_range(builder, args[3]) as loop:
            values = load(builder.add(args[1], builder.mul(loop.index, word)))
            secret = load(builder.add(args[2], builder.shl(loop.index, ir.Constant(word.type, 3))))
            keyed = builder.xor(values, secret)
            low, high = builder.and_(keyed, splat(0xFFFFFFFF)), builder.lshr(keyed, splat(32))
            turned = ir.Constant(ir.VectorType(ir.IntType(32), 8), [k ^ 1 for k in range(8)])
            swapped = builder.shuffle_vector(values, ir.Constant(vector, ir.Undefined), turned)
            added = builder.add(swapped, builder.mul(low, high))
            builder.store(builder.add(builder.load(total), added), total)
        builder.store(builder.load(total), builder.inttoptr(args[0], pointer)).align = 1
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


_load8, _load32, _load64, _store8, _store64 = (
    _loader(8),
    _loader(32),
    _loader(64),
    _storer(8),
    _storer(64),
)


@part
def _inside(view: View, i: int, size: int) -> int:
    """The address of byte i of a view; ``size`` bytes are touched there."""
    if CHECKED:
        assert i >= 0 and i + size <= view[1], "an access stays inside its array"
    return view[0] + i


if JIT:

    @part
    def view_of(a: npt.NDArray[Any]) -> View:
        """The view of a contiguous array, which must outlive it."""
        return a.ctypes.data, a.size * a.itemsize

    @part
    def byte(view: View, i: int) -> int:
        """Byte i."""
        return _load8(_inside(view, i, 1))  # type: ignore[no-any-return]

    @part
    def half(view: View, i: int) -> np.uint64:
        """Four bytes from i as a little-endian number."""
        return _load32(_inside(view, i, 4))  # type: ignore[no-any-return]

    @part
    def word(view: View, i: int) -> np.uint64:
        """Eight bytes from i as a little-endian number."""
        return _load64(_inside(view, i, 8))  # type: ignore[no-any-return]

    @part
    def put(view: View, i: int, value: int) -> None:
        """Writes byte i."""
        _store8(_inside(view, i, 1), value)

    @part
    def put_word(view: View, i: int, value: np.uint64) -> None:
        """Writes eight bytes from i."""
        _store64(_inside(view, i, 8), value)

    @part
    def get_number(view: View, k: int) -> int:
        """The k-th int64 of a view."""
        return np.int64(_load64(_inside(view, 8 * k, 8)))  # type: ignore[return-value]

    @part
    def set_number(view: View, k: int, value: int) -> None:
        """Writes the k-th int64 of a view."""
        _store64(_inside(view, 8 * k, 8), value)

    @part
    def product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
        """The 128-bit product of two words as (low, high)."""
        return _product(a, b)  # type: ignore[no-any-return]

    @part
    def add_stripes(sums: View, a: View, i: int, secret: View, s: int, count: int) -> None:
        """Adds ``count`` stripes of 64 bytes from i to the eight sums of XXH3, the k-th with the
        64 bytes of the secret at s + 8 k.
        """
        if count > 0:
            data, keys = _inside(a, i, 64 * count), _inside(secret, s, 56 + 8 * count)
            _mix_stripes(_inside(sums, 0, 64), data, keys, count)

else:  # the same meaning in plain Python

    def view_of(a: npt.NDArray[Any]) -> View:
        """The view of a contiguous array, which must outlive it."""
        return a.ctypes.data, a.size * a.itemsize

    def _number(view: View, i: int, size: int) -> int:
        assert i >= 0 and i + size <= view[1], "an access stays inside its array"
        return int.from_bytes(ctypes.string_at(int(view[0] + i), size), "little")

    def byte(view: View, i: int) -> int:
        """Byte i."""
        return _number(view, i, 1)

    def half(view: View, i: int) -> np.uint64:
        """Four bytes from i as a little-endian number."""
        return W(_number(view, i, 4))

    def word(view: View, i: int) -> np.uint64:
        """Eight bytes from i as a little-endian number."""
        return W(_number(view, i, 8))

    def put(view: View, i: int, value: int) -> None:
        """Writes byte i."""
        assert 0 <= i < view[1], "an access stays inside its array"
        ctypes.memset(int(view[0] + i), int(value) & 0xFF, 1)

    def put_word(view: View, i: int, value: np.uint64) -> None:
        """Writes eight bytes from i."""
        assert i >= 0 and i + 8 <= view[1], "an access stays inside its array"
        ctypes.memmove(int(view[0] + i), int(value).to_bytes(8, "little"), 8)

    def get_number(view: View, k: int) -> int:
        """The k-th int64 of a view."""
        value = _number(view, 8 * k, 8)
        return value - (value >> 63 << 64)

    def set_number(view: View, k: int, value: int) -> None:
        """Writes the k-th int64 of a view."""
        assert k >= 0 and 8 * k + 8 <= view[1], "an access stays inside its array"
        ctypes.memmove(int(view[0] + 8 * k), int(value).to_bytes(8, "little", signed=True), 8)

    def product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
        """The 128-bit product of two words as (low, high)."""
        both = int(a) * int(b)
        return W(both & 0xFFFFFFFFFFFFFFFF), W(both >> 64)

    def add_stripes(sums: View, a: View, i: int, secret: View, s: int, count: int) -> None:
        """Adds ``count`` stripes of 64 bytes from i to the eight sums of XXH3, the k-th with the
        64 bytes of the secret at s + 8 k.
        """
        lane_sums = [_number(sums, 8 * lane, 8) for lane in range(8)]
        for k in range(int(count)):
            for lane in range(8):
                value = _number(a, i + 64 * k + 8 * lane, 8)
                keyed = value ^ _number(secret, s + 8 * (k + lane), 8)
                lane_sums[lane ^ 1] += value
                lane_sums[lane] += (keyed & 0xFFFFFFFF) * (keyed >> 32)
        for lane, total in enumerate(lane_sums):
            ctypes.memmove(sums[0] + 8 * lane, (total % 2**64).to_bytes(8, "little"), 8)


@part
def as_int(value: np.uint64) -> int:
    """Returns a word as int64 with the same bits: never mix the two, numba would make a double of
    them.
    """
    return np.int64(value)  # type: ignore[return-value]


@part
def number(view: View, k: int) -> int:
    """The k-th int64 of a view."""
    return as_int(word(view, 8 * k))


@part
def first_bytes(value: np.uint64, count: int) -> np.uint64:
    """The first ``count`` bytes (0 to 8) of a word, the others zero."""
    if count <= 0:
        return W(0)
    if count >= 8:
        return value
    return value & ((W(1) << W(8 * count)) - W(1))


@part
def equal(view: View, i: int, j: int, n: int) -> bool:
    """Whether the n >= 1 bytes at i and at j are the same; eight bytes can be read at both."""
    if n < 8:
        return bool(first_bytes(word(view, i) ^ word(view, j), n) == W(0))
    for k in range(0, n - 8, 8):
        if word(view, i + k) != word(view, j + k):
            return False
    return bool(word(view, i + n - 8) == word(view, j + n - 8))


# Byte classes: one table, one bit a class.
ALPHA, DIGIT, HEX, SCHEME, LABEL, IN_IRI, IN_HOST, IN_STRING, SPACE, ALNUM, UPPER = (
    1 << k for k in range(11)
)


def _classes() -> npt.NDArray[np.uint16]:
    """The class bits of every byte (RFC 3987 for IRIs, N-Triples 1.1 for the rest; ASCII only)."""
    table = np.zeros(256, np.uint16)
    for code in range(128):
        c = chr(code)
        plain = 0x20 < code < 0x7F and c not in '"#%<>[\\]^`{|}'
        members = {
            ALPHA: c.isalpha(),
            DIGIT: c.isdigit(),
            HEX: c in "0123456789abcdefABCDEF",
            SCHEME: c.isalnum() or c in "+-.",
            LABEL: c.isalnum() or c in "_-.",
            IN_IRI: plain,
            IN_HOST: plain and c not in "/?:@",
            IN_STRING: 0x20 <= code < 0x7F and c not in '"\\',
            SPACE: c in " \t",
            ALNUM: c.isalnum(),
            UPPER: c.isupper(),
        }
        table[code] = sum(bit for bit, member in members.items() if member)
    return table


CLASS = _classes()


@part
def is_in(c: int, classes: int) -> bool:
    """Whether byte ``c`` is in one of the classes."""
    return bool(CLASS[c] & classes)
