"""An immutable mapping with cheap next versions: one large dictionary that many versions share, and
the differences of each.

    base  <-- version 5: gone {"q7"}, new {"one": ..}  <-- version 6: gone {"q7"}, new {.., ".."}

The cost of a version is linear in the changes since the base; a lookup costs two. When the changes
reach ``SHARE`` of the base, the next version becomes a new base.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, ValuesView
from typing import Any, Generic, TypeVar

from levada.core.size_thresholds import register

V = TypeVar("V")
K = TypeVar("K", bound=Hashable)
MIN_COPIED_ENTRIES = register(
    f"{__name__}.MIN_COPIED_ENTRIES", 64
)  # up to this many changed entries are always copied
SHARE = 16


class _Base(dict[str, V], Generic[V]):
    """The entries that versions share; ``kinds``: the number of values of each kind."""

    kinds: dict[object, Counter[Any]]

    def __init__(self, entries: Mapping[str, V]) -> None:
        super().__init__(entries)
        self.kinds = {}


class PersistentMap(Mapping[str, V], Generic[V]):
    """A version of a mapping. ``gone``: keys of the base that it lacks or replaces.

    >>> first = PersistentMap.from_entries({"a": 1, "b": 2})
    >>> dict(first.with_changes({"c": 3}, ["a"])), dict(first)
    ({'b': 2, 'c': 3}, {'a': 1, 'b': 2})
    """

    __slots__ = ("_base", "_gone", "_new")

    def __init__(self, base: _Base[V], new: dict[str, V], gone: frozenset[str]) -> None:
        self._base, self._new, self._gone = base, new, gone

    @staticmethod
    def from_entries(entries: Mapping[str, V]) -> PersistentMap[V]:
        """Copies these entries, unless they are a version already."""
        if isinstance(entries, PersistentMap):
            return entries
        return PersistentMap(_Base(entries), {}, frozenset())

    def with_changes(self, came: Mapping[str, V], went: Collection[str]) -> PersistentMap[V]:
        """Returns the next version. Raises ``LookupError`` if a removed key does not exist."""
        new, gone = dict(self._new), set(self._gone)
        for key in went:
            if new.pop(key, None) is None:
                if key in gone:
                    raise LookupError(key)
                _ = self._base[key]
                gone.add(key)
        new.update(came)
        gone.update([key for key in came if key in self._base])
        successor = PersistentMap(self._base, new, frozenset(gone))
        if (len(new) + len(gone)) * SHARE > len(self._base) + MIN_COPIED_ENTRIES:
            return PersistentMap.from_entries(dict(successor))
        return successor

    def kinds(self, of: Callable[[V], K]) -> Collection[K]:
        """Returns the distinct kinds of the values."""
        counts = self._base.kinds.get(of)
        if counts is None:
            counts = self._base.kinds[of] = Counter(map(of, self._base.values()))
        if self._gone:
            counts = counts - Counter([of(self._base[key]) for key in self._gone])
        return {*counts, *map(of, self._new.values())}

    def __getitem__(self, key: str) -> V:
        if key in self._new:
            return self._new[key]
        if key in self._gone:
            raise KeyError(key)
        return self._base[key]

    def __contains__(self, key: object) -> bool:
        return key in self._new or (key in self._base and key not in self._gone)

    def __iter__(self) -> Iterator[str]:
        gone = self._gone
        yield from (key for key in self._base if key not in gone) if gone else self._base
        yield from self._new

    def __len__(self) -> int:
        return len(self._base) - len(self._gone) + len(self._new)

    def values(self) -> ValuesView[V]:
        """Returns the values without a lookup for each."""
        return _Values(self)

    def values_in_order(self) -> Iterator[V]:
        """Returns the values in the order of the keys."""
        gone, base = self._gone, self._base
        if gone:
            yield from (value for key, value in base.items() if key not in gone)
        else:
            yield from base.values()
        yield from self._new.values()


class _Values(ValuesView[V]):
    def __init__(self, of: PersistentMap[V]) -> None:
        super().__init__(of)
        self._of = of

    def __iter__(self) -> Iterator[V]:
        return self._of.values_in_order()
