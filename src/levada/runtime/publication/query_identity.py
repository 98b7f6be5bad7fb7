"""Identifies registered queries across runs; the identity is computed on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol


class Identified(Protocol):
    """A registered query."""

    @property
    def identity(self) -> str:
        """Returns the identity of the query: equal if it is registered again unchanged."""


@dataclass(frozen=True)
class Identities(Mapping[str, str]):
    """Computes the identities of queries on demand: texts with their options, so none is stored."""

    queries: Mapping[str, Identified]

    def __getitem__(self, name: str) -> str:
        return self.queries[name].identity

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)
