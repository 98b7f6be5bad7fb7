"""Columns: how all values of one field are written, by the field's type.

Values of one class are written together, field by field. What a field's type says decides the
column, and is not in the file: numbers, texts, enumerations and tuples of them as they are; values
of classes by their numbers; tuples of these as their lengths and one column of all elements; arrays
as their shapes and one array of all elements. A column of equal values is written as one of them.

Reading trusts nothing: a column that is not of its type, a number that is none of a value written
before, a value of another class is a ``ValueError``, a ``TypeError``, a ``LookupError`` or
msgspec's. Cost: the loops over values are msgspec's, NumPy's and ``map``'s; only arrays take some
0.5 µs each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import IntFlag
from functools import reduce
from itertools import accumulate, chain, islice, pairwise, repeat
from math import prod
from operator import eq, is_, itemgetter, or_
from typing import Annotated, Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

_ONCE = (int, str, tuple[int, ...], tuple[str, ...])
MOST_REPEATED = 1 << 20  # values that stand as one: a small file is never a huge plan
Number = Annotated[int, msgspec.Meta(ge=0)]
_NUMBERS = msgspec.msgpack.Decoder(list[Number])
_OPTIONAL = msgspec.msgpack.Decoder(list[Number | None])
_SHAPES = msgspec.msgpack.Decoder(tuple[Number, list[tuple[Number, ...]]])
_PARTS = msgspec.msgpack.Decoder(list[msgspec.Raw])


class Written(Protocol):
    """What columns need of the document that is being written."""

    def number(self, value: Any) -> int:
        """The number of a value that has been written."""

    def add_array(self, array: npt.NDArray[Any]) -> int:
        """Keeps an array; its number."""


class Given(Protocol):
    """What columns need of the document being read: values and arrays so far, by number."""

    values: list[Any]
    arrays: list[npt.NDArray[Any]]
    once: dict[Any, Any]  # one of equal numbers and texts, and of equal tuples of these


class Column(ABC):
    """A field's type, as what writes and reads all values of that field."""

    def children(self, values: Sequence[Any]) -> Iterable[Any]:
        """The values of classes in these, which must be written before."""
        return ()

    @abstractmethod
    def put(self, values: Sequence[Any], to: Written) -> Any:
        """The column, as msgpack can write it."""

    @abstractmethod
    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
        """So many values from their column."""


class Plain(Column):
    """What msgspec writes and checks by itself."""

    def __init__(self, hint: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(list[hint])
        self._once = hint in _ONCE

    def put(self, values: Sequence[Any], to: Written) -> Any:
        """The values."""
        return _fold(values)

    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
        """The values."""
        values = self._decoder.decode(raw)
        if self._once and len(values) > 1:
            values = list(map(document.once.setdefault, values, values))
        return unfold(values, count)


class Flags(Column):
    """Sets of flags, as numbers."""

    def __init__(self, kind: type[IntFlag]) -> None:
        self._kind = kind
        self._all = int(reduce(or_, kind))

    def put(self, values: Sequence[Any], to: Written) -> Any:
        """The numbers."""
        return _fold(list(map(int, values)))

    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
        """The sets, none with a flag that does not exist."""
        numbers = _NUMBERS.decode(raw)
        if any(number & ~self._all for number in numbers):
            raise ValueError("a flag that does not exist")
        return unfold(list(map(self._kind, numbers)), count)


class Sets(Column):
    """Frozen sets, in an order that is the same in every process."""

    def __init__(self, hint: Any) -> None:
        self._sorted = Plain(hint)

    def put(self, values: Sequence[Any], to: Written) -> Any:
        """The elements of each, sorted."""
        return self._sorted.put([sorted(value, key=repr) for value in values], to)

    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
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

    def put(self, values: Sequence[Any], to: Written) -> Any:
        """The numbers."""
        if self._optional:
            return _fold([None if v is None else to.number(v) for v in values])
        return _fold(list(map(to.number, values)))

    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
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
        """Those of all elements."""
        return self._inner.children(list(chain.from_iterable(values)))

    def put(self, values: Sequence[Any], to: Written) -> Any:
        """Lengths and elements."""
        elements = list(chain.from_iterable(values))
        return [_fold(list(map(len, values))), self._inner.put(elements, to)]

    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
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
        """Those of all places."""
        return chain.from_iterable(
            column.children(self._at(values, i)) for i, column in enumerate(self._inner)
        )

    def put(self, values: Sequence[Any], to: Written) -> Any:
        """The columns."""
        return [column.put(self._at(values, i), to) for i, column in enumerate(self._inner)]

    @staticmethod
    def _at(values: Sequence[Any], place: int) -> list[Any]:
        return list(map(itemgetter(place), values))

    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
        """The tuples."""
        parts = _parts(raw, len(self._inner))
        columns = [c.get(p, count, document) for c, p in zip(self._inner, parts, strict=True)]
        return list(zip(*columns, strict=True))


class Mappings(Column):
    """Dictionaries in their order: columns of keys and of values."""

    def __init__(self, keys: Column, values: Column) -> None:
        self._keys, self._values = Sequences(tuple, keys), Sequences(tuple, values)

    def children(self, values: Sequence[Any]) -> Iterable[Any]:
        """Those of all values."""
        return self._values.children([m.values() for m in values])

    def put(self, values: Sequence[Any], to: Written) -> Any:
        """The columns."""
        keys, held = [list(m) for m in values], [list(m.values()) for m in values]
        return [self._keys.put(keys, to), self._values.put(held, to)]

    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
        """The dictionaries."""
        first, second = _parts(raw, 2)
        keys, held = (
            self._keys.get(first, count, document),
            self._values.get(second, count, document),
        )
        return [dict(zip(k, v, strict=True)) for k, v in zip(keys, held, strict=True)]


class Arrays(Column):
    """Arrays of one dtype: the shapes, and one array of all elements, of which each is a view."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype

    def put(self, values: Sequence[Any], to: Written) -> Any:
        """The number of the array, and the shapes."""
        assert all(a.dtype == self._dtype for a in values), "an array has the dtype of its field"
        flat = [np.empty(0, self._dtype), *(a.ravel() for a in values)]
        return [to.add_array(np.concatenate(flat)), _fold([a.shape for a in values])]

    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
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
    """None, or what another column holds: which are there, and a column of these."""

    def __init__(self, inner: Column) -> None:
        self._there, self._inner = Plain(bool), inner

    def children(self, values: Sequence[Any]) -> Iterable[Any]:
        """Those of the values that are there."""
        return self._inner.children([v for v in values if v is not None])

    def put(self, values: Sequence[Any], to: Written) -> Any:
        """Which are there, and these."""
        there = [v is not None for v in values]
        return [
            self._there.put(there, to),
            self._inner.put([v for v in values if v is not None], to),
        ]

    def get(self, raw: msgspec.Raw, count: int, document: Given) -> list[Any]:
        """The values."""
        first, second = _parts(raw, 2)
        there = self._there.get(first, count, document)
        rest = iter(self._inner.get(second, sum(there), document))
        return [next(rest) if is_present else None for is_present in there]


def _merge_equal_neighbours(tuples: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The tuples, of those that stand beside each other and are of the same elements one."""
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
    """One value in place of many equal ones."""
    if 1 < len(values) <= MOST_REPEATED and all(map(eq, values, repeat(values[0]))):
        return values[:1]
    return values


def unfold(values: list[Any], count: int) -> list[Any]:
    """So many values, of which equal ones may stand as one."""
    if len(values) == count:
        return values
    if len(values) != 1 or count > MOST_REPEATED:
        raise ValueError("a column of another length")
    return values * count
