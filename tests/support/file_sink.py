"""A target of outputs in a file, for tests: what an output has had, and how far it is, in one
writing. It needs no server, and has all that one has: a place of its own for the position, a
transaction, times when it is away.

    lines://PATH    a line a row, as ``--format ndjson``
    PATH.away       while it is there: the target does not answer
    PATH.wrong      while it is there: the target refuses
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from levada.connectors.config.secret_reference import password_place
from levada.connectors.serialization.serialize import ndjson
from levada.connectors.sinks.transactional_sink import Piece, Position
from levada.core.durable_files import replace_file
from levada.core.query_model import Form, Output
from levada.errors import SinkError, TargetAwayError, UsageError

SCHEME = "lines://"


class Held(msgspec.Struct):
    """What the file holds."""

    position: Position | None = None
    lines: list[str] = []


@dataclass
class FileTarget:
    """The file of one query."""

    OPTIONS: ClassVar[tuple[str, ...]] = ("password",)

    path: Path
    skips: bool = False
    whole: bool = False
    interval_ms: int = 0
    unwritable: list[Any] = field(default_factory=list)

    @classmethod
    def from_url(cls, query: str, url: str, options: Mapping[str, Any], owner: str) -> FileTarget:
        if "password" in options:
            try:
                password_place(options["password"])
            except UsageError as error:
                raise UsageError(f"The output of {query}: {error.message}") from None
        return cls(Path(url.removeprefix(SCHEME)))

    @property
    def name(self) -> str:
        return f"{SCHEME}{self.path}"

    def check(self, query: str, form: Form, output: Output, variables: tuple[str, ...]) -> None:
        if form is Form.ASK:
            raise UsageError(f"The output of {query}: ASK has no rows.")

    def open(self, known: Position | None) -> Position | None:
        self._answers()
        return held(self.path).position or known

    def write(self, piece: Piece) -> None:
        self._answers()
        found, query = held(self.path), piece.query
        lines = ndjson(query.name, query.variables, piece.batch).decode().splitlines()
        replace_file(self.path, msgspec.json.encode(Held(piece.position, found.lines + lines)))

    def _answers(self) -> None:
        if self.path.with_name(f"{self.path.name}.away").exists():
            raise TargetAwayError(f"{self.name} is away.")
        if self.path.with_name(f"{self.path.name}.wrong").exists():
            raise SinkError(f"{self.name} is wrong.")

    def close(self) -> None:
        pass


def held(path: Path) -> Held:
    """What a file of a target holds."""
    return msgspec.json.decode(path.read_bytes(), type=Held) if path.exists() else Held()
