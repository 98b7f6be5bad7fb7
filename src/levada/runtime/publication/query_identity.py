"""What makes registered queries the same when they come again, said when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol


class Identified(Protocol):
    """A query as it was registered."""

    @property
    def identity(self) -> str:
        """What makes it the same query when it is registered again."""


@dataclass(frozen=True)
class Identities(Mapping[str, str]):
    """The identities of queries: texts with their options, so none is kept."""

    queries: Mapping[str, Identified]

    def __getitem__(self, name: str) -> str:
        return self.queries[name].identity

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)
