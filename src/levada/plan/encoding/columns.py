"""Columns: the encodings of all values of one field, chosen by the field's type.

The values of one class are written together, field by field. The field's type decides the column
and is not in the file. Numbers, texts, enumerations and tuples of them are written as they are.
Values of registered classes are written as their numbers, and tuples of these as lengths and one
column of all elements. Arrays are written as their shapes and one array of all elements. A column
of equal values is written as one value.

Decoding validates everything. A column of another type, a number that does not refer to an earlier
value, or a value of another class raises ``ValueError``, ``TypeError``, ``LookupError`` or an error
of msgspec. Cost: loops over values run in msgspec, NumPy and ``map``; only an array takes some 0.5
µs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from functools import reduce
from itertools import accumulate, chain, islice, pairwise, repeat
from math import prod
from operator import eq, is_, itemgetter, or_
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

_ONCE = (int, str, tuple[int, ...], tuple[str, ...])
MOST_REPEATED = (
    1 << 20
)  # the longest column that one value may represent: limits the plan size of a small file
Number = Annotated[int, msgspec.Meta(ge=0)]
_NUMBERS = msgspec.msgpack.Decoder(list[Number])
_OPTIONAL = msgspec.msgpack.Decoder(list[Number | None])
_SHAPES = msgspec.msgpack.Decoder(tuple[Number, list[tuple[Number, ...]]])
_PARTS = msgspec.msgpack.Decoder(list[msgspec.Raw])


@dataclass
class EncodedValues:
    """The state of an encoded document that columns use: values by their ids, and arrays."""

    numbers: dict[int, int] = field(default_factory=dict)
    arrays: list[npt.NDArray[Any]] = field(default_factory=list)

    def number(self, value: Any) -> int:
        """Returns the number of a value that has been written."""
        return self.numbers[id(value)]

    def add_array(self, array: npt.NDArray[Any]) -> int:
        """Adds an array and returns its number."""
        self.arrays.append(array)
        return len(self.arrays) - 1


@dataclass
class DecodedValues:
    """The state of a decoded document that columns use: values and arrays so far, by number."""

    arrays: list[npt.NDArray[Any]]
    values: list[Any] = field(default_factory=list)
    once: dict[Any, Any] = field(default_factory=dict)
    """Equal numbers, texts and tuples of these, as one object each."""


class Column(ABC):
    """The encoder and decoder of a field's type."""

    def children(self, values: Sequence[Any]) -> Iterable[Any]:
        """Returns the values of registered classes among these, which must be written first."""
        return ()

    @abstractmethod
    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """Returns the column as a value for msgpack."""

    @abstractmethod
    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """Returns so many values of a column."""


class Plain(Column):
    """Values that msgspec encodes and validates itself."""

    def __init__(self, hint: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(list[hint])
        self._once = hint in _ONCE

    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """Returns the values."""
        return _fold(values)

    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """Returns the values."""
        values = self._decoder.decode(raw)
        if self._once and len(values) > 1:
            values = list(map(document.once.setdefault, values, values))
        return unfold(values, count)


class Flags(Column):
    """Sets of flags, as numbers."""

    def __init__(self, kind: type[IntFlag]) -> None:
        self._kind = kind
        self._all = int(reduce(or_, kind))

    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """The numbers."""
        return _fold(list(map(int, values)))

    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """Returns the sets; a flag that does not exist is an error."""
        numbers = _NUMBERS.decode(raw)
        if any(number & ~self._all for number in numbers):
            raise ValueError("a flag that does not exist")
        return unfold(list(map(self._kind, numbers)), count)


class Sets(Column):
    """Frozen sets, in an order that is equal in all processes."""

    def __init__(self, hint: Any) -> None:
        self._sorted = Plain(hint)

    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """Returns the sorted elements of each set."""
        return self._sorted.put([sorted(value, key=repr) for value in values], to)

    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """The sets."""
        return self._sorted.get(raw, count, document)


class References(Column):
    """Values of some classes, or None, by their numbers."""

    def __init__(self, classes: Iterable[type], *, optional: bool) -> None:
        self._classes = frozenset(classes)
        self._optional = optional

    def children(self, values: Sequence[Any]) -> Iterable[Any]:
        """The values."""
        return (v for v in values if v is not None) if self._optional else values

    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """The numbers."""
        if self._optional:
            return _fold([None if v is None else to.number(v) for v in values])
        return _fold(list(map(to.number, values)))

    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """The values, each of one of the classes."""
        known = document.values
        if self._optional:
            values = [None if n is None else known[n] for n in _OPTIONAL.decode(raw)]
        else:
            values = list(map(known.__getitem__, _NUMBERS.decode(raw)))
        if not set(map(type, self.children(values))) <= self._classes:
            raise ValueError("a value of another class")
        return unfold(values, count)


class Sequences(Column):
    """Tuples or lists of any length: the lengths, and a column of all elements."""

    def __init__(self, kind: type, inner: Column) -> None:
        self._kind, self._inner = kind, inner

    def children(self, values: Sequence[Any]) -> Iterable[Any]:
        """Returns the children of all elements."""
        return self._inner.children(list(chain.from_iterable(values)))

    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """Lengths and elements."""
        elements = list(chain.from_iterable(values))
        return [_fold(list(map(len, values))), self._inner.put(elements, to)]

    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """The sequences."""
        first, second = _parts(raw, 2)
        stored = _NUMBERS.decode(first)
        lengths = unfold(stored, count)
        elements = self._inner.get(second, sum(lengths), document)
        if len(stored) == 1 and stored[0] and self._kind is tuple:
            return _merge_equal_neighbours(zip(*[iter(elements)] * stored[0], strict=True))
        rest = iter(elements)
        return [self._kind(islice(rest, length)) for length in lengths]


class Places(Column):
    """Tuples of fixed length: a column for each place."""

    def __init__(self, inner: Sequence[Column]) -> None:
        self._inner = inner

    def children(self, values: Sequence[Any]) -> Iterable[Any]:
        """Returns the children of all places."""
        return chain.from_iterable(
            column.children(self._at(values, i)) for i, column in enumerate(self._inner)
        )

    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """The columns."""
        return [column.put(self._at(values, i), to) for i, column in enumerate(self._inner)]

    @staticmethod
    def _at(values: Sequence[Any], place: int) -> list[Any]:
        return list(map(itemgetter(place), values))

    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """The tuples."""
        parts = _parts(raw, len(self._inner))
        columns = [c.get(p, count, document) for c, p in zip(self._inner, parts, strict=True)]
        return list(zip(*columns, strict=True))


class Mappings(Column):
    """Dictionaries in their order: columns of keys and of values."""

    def __init__(self, keys: Column, values: Column) -> None:
        self._keys, self._values = Sequences(tuple, keys), Sequences(tuple, values)

    def children(self, values: Sequence[Any]) -> Iterable[Any]:
        """Returns the children of all keys and values."""
        return self._values.children([m.values() for m in values])

    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """The columns."""
        keys, held = [list(m) for m in values], [list(m.values()) for m in values]
        return [self._keys.put(keys, to), self._values.put(held, to)]

    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """The dictionaries."""
        first, second = _parts(raw, 2)
        keys, held = (
            self._keys.get(first, count, document),
            self._values.get(second, count, document),
        )
        return [dict(zip(k, v, strict=True)) for k, v in zip(keys, held, strict=True)]


class Arrays(Column):
    """Arrays of one dtype: the shapes, and one array of all elements; each array is a
    view of it.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype

    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """The number of the array, and the shapes."""
        assert all(a.dtype == self._dtype for a in values), "an array has the dtype of its field"
        flat = [np.empty(0, self._dtype), *(a.ravel() for a in values)]
        return [to.add_array(np.concatenate(flat)), _fold([a.shape for a in values])]

    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """The views."""
        number, stored = _SHAPES.decode(raw)
        shapes, flat = unfold(stored, count), document.arrays[number]
        ends = list(accumulate(map(prod, shapes), initial=0))
        if flat.dtype != self._dtype or ends[-1] != len(flat):
            raise ValueError("an array of another size")
        return [
            flat[a:b] if len(s) == 1 else flat[a:b].reshape(s)
            for (a, b), s in zip(pairwise(ends), shapes, strict=True)
        ]


class Optional(Column):
    """Values that may be None: a column of flags, and a column of the other values."""

    def __init__(self, inner: Column) -> None:
        self._there, self._inner = Plain(bool), inner

    def children(self, values: Sequence[Any]) -> Iterable[Any]:
        """Returns the children of the values that are not None."""
        return self._inner.children([v for v in values if v is not None])

    def put(self, values: Sequence[Any], to: EncodedValues) -> Any:
        """Returns the flags and the values."""
        there = [v is not None for v in values]
        return [
            self._there.put(there, to),
            self._inner.put([v for v in values if v is not None], to),
        ]

    def get(self, raw: msgspec.Raw, count: int, document: DecodedValues) -> list[Any]:
        """The values."""
        first, second = _parts(raw, 2)
        there = self._there.get(first, count, document)
        rest = iter(self._inner.get(second, sum(there), document))
        return [next(rest) if is_present else None for is_present in there]


def _merge_equal_neighbours(tuples: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Replaces tuples by the previous tuple if both have identical elements."""
    distinct: list[tuple[Any, ...]] = []
    last: tuple[Any, ...] = ()
    for one in tuples:
        if not last or not all(map(is_, one, last)):
            last = one
        distinct.append(last)
    return distinct


def _parts(raw: msgspec.Raw, count: int) -> list[msgspec.Raw]:
    parts = _PARTS.decode(raw)
    if len(parts) != count:
        raise ValueError("a column of another form")
    return parts


def _fold(values: Sequence[Any]) -> Sequence[Any]:
    """Returns one value in place of many equal ones."""
    if 1 < len(values) <= MOST_REPEATED and all(map(eq, values, repeat(values[0]))):
        return values[:1]
    return values


def unfold(values: list[Any], count: int) -> list[Any]:
    """Returns so many values from a column in which one value may represent all."""
    if len(values) == count:
        return values
    if len(values) != 1 or count > MOST_REPEATED:
        raise ValueError("a column of another length")
    return values * count
