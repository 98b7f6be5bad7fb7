"""Registers the classes that can be encoded, each by a tag, and the columns of their fields.

A class is written by its tag, never by its name or module, so it may be renamed and moved. Fields
are written in order, and the file has their names beside the tag. A file whose tag has other fields
than the current class is refused.

*Values* are compared, and equal ones are written once. *Records* are written one by one: they have
arrays or mappings and so no hash, or are seldom equal and expensive to hash.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntFlag
from functools import partial
from operator import attrgetter, itemgetter
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from levada.plan.encoding import columns as c

_SCALARS = (bool, int, float, str, NoneType)


class Fields(NamedTuple):
    """The encoding of a class. ``build`` makes so many values from their columns; ``shared``: equal
    values are written once.
    """

    tag: str
    names: tuple[str, ...]
    columns: tuple[c.Column, ...]
    getters: tuple[Callable[[Any], Any], ...]
    build: Callable[[Sequence[list[Any]], int], list[Any]]
    shared: bool

    def split(self, values: Sequence[Any]) -> list[list[Any]]:
        """Returns the columns of values."""
        return [list(map(get, values)) for get in self.getters]


class Registry:
    """Classes by their tags. ``unseen``: classes that a module imports only for type checkers."""

    def __init__(
        self,
        values: Mapping[str, type],
        records: Mapping[str, type],
        unseen: Mapping[str, type] | None = None,
    ) -> None:
        assert not values.keys() & records.keys(), "a tag is of one class"
        self.classes: dict[str, type] = {**values, **records}
        self.tags = {cls: tag for tag, cls in self.classes.items()}
        assert len(self.tags) == len(self.classes), "a class has one tag"
        self._shared = frozenset(values.values())
        self._unseen = dict(unseen or {})
        self._fields: dict[type, Fields] = {}

    def fields(self, cls: type) -> Fields:
        """Returns the encoding of a class, computed at the first call."""
        if cls not in self._fields:
            self._fields[cls] = self._describe(cls)
        return self._fields[cls]

    def _describe(self, cls: type) -> Fields:
        assert cls in self.tags, f"{cls.__qualname__} has no tag by which it could be written"
        if issubclass(cls, Enum):
            column, get = self.column(str), attrgetter("value")
            return Fields(self.tags[cls], ("value",), (column,), (get,), partial(_build, cls), True)
        hints = get_type_hints(cls, localns=self._unseen or None)
        names = field_names(cls)
        columns = tuple(self.column(hints[name]) for name in names)
        row = issubclass(cls, tuple)
        build = partial(_build_rows if row else _build, cls)
        getters = tuple(itemgetter(i) if row else attrgetter(n) for i, n in enumerate(names))
        return Fields(self.tags[cls], names, columns, getters, build, cls in self._shared)

    def column(self, hint: Any) -> c.Column:
        """Returns the column of values of this type."""
        origin, args = get_origin(hint), get_args(hint)
        if is_plain(hint):
            return c.Sets(hint) if origin is frozenset else c.Plain(hint)
        if hint in self.tags or origin in self.tags:
            return c.References((origin or hint,), optional=False)
        if isinstance(hint, TypeVar):  # of a generic class
            return c.References(self.tags, optional=False)
        if origin in (Union, UnionType):
            classes = [a for a in args if a is not NoneType]
            if len(classes) == 1 and classes[0] not in self.tags:
                return c.Optional(self.column(classes[0]))
            assert self.tags.keys() >= set(classes), f"of {hint} not all have tags"
            return c.References(classes, optional=NoneType in args)
        if origin is list or (origin is tuple and args[-1] is Ellipsis):
            return c.Sequences(origin, self.column(args[0]))
        if origin is tuple:
            return c.Places([self.column(a) for a in args])
        if origin is not None and issubclass(origin, Mapping):
            return c.Mappings(self.column(args[0]), self.column(args[1]))
        if origin is np.ndarray:
            return c.Arrays(np.dtype(get_args(args[1])[0]))
        assert isinstance(hint, type) and issubclass(hint, IntFlag), f"{hint} cannot be written"
        return c.Flags(hint)


def field_names(cls: type) -> tuple[str, ...]:
    """Returns the names of a class' fields, in order."""
    if issubclass(cls, tuple):
        return tuple(cls._fields)  # type: ignore[attr-defined]
    assert dataclasses.is_dataclass(cls), f"{cls.__qualname__} has no fields that can be written"
    return tuple(field.name for field in dataclasses.fields(cls))


def is_plain(hint: Any) -> bool:
    """Whether msgspec encodes and validates values of this type itself."""
    if isinstance(hint, type) and get_origin(hint) is None:
        return hint in _SCALARS or (issubclass(hint, Enum) and not issubclass(hint, IntFlag))
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return True
    simple = origin in (Union, UnionType, tuple, list, frozenset)
    return simple and all(a is Ellipsis or is_plain(a) for a in args)


def _build_rows(cls: type, columns: Sequence[list[Any]], count: int) -> list[Any]:
    return list(map(partial(tuple.__new__, cls), zip(*columns, strict=True)))


def _build(cls: type, columns: Sequence[list[Any]], count: int) -> list[Any]:
    return list(map(cls, *columns)) if columns else c.unfold([cls()], count)
