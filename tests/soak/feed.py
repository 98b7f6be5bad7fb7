"""What a soak feeds: streams of every kind of source, written as the clock goes on, and what is
known of them, for the judge.

The i-th element of a stream has the event time BEGIN + i * (ms an element) and the value i, so a
feed is a function of how far it has come. ``Load`` is the heavy one, whose old files are deleted;
the others are light, so that the naive reference can answer for all of them.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from levada.testing.reference_model import Element

BEGIN = 100_000  # ms: what is late has a time, too
LATENESS = 2_000
BEHIND = 30_000  # ms by which late elements are behind
RATE = 5  # elements a second of a light stream
EVERY_LATE, EVERY_BAD = 23, 17  # one in so many is followed by a late element, a bad line
KEYS = 7
XSD = "<http://www.w3.org/2001/XMLSchema#integer>"
IRI = "http://e/{}"
MAPPING = """columns: {n: integer}
triples:
  - <http://e/a{key}> <http://e/p> {n}
"""


def element(i: int, ts: int) -> Element:
    return Element(ts, (f'<http://e/a{i % KEYS}> <http://e/p> "{i}"^^{XSD}',))


def line(i: int, ts: int) -> str:
    return f'<http://e/a{i % KEYS}> <http://e/p> "{i}"^^{XSD} {ts} .\n'


def row(form: str, i: int, ts: int) -> str:
    if form == "csv":
        return f"{i % KEYS},{i},{ts}\n"
    return json.dumps({"key": str(i % KEYS), "n": i, "ts": ts}) + "\n"


def renamed(path: Path, data: bytes) -> None:
    """A file is there whole or not at all."""
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(data)
    beside.rename(path)


@dataclass
class Feed:
    """A light stream: ``kind`` is how it is written. A growing file may have bad and late lines."""

    name: str
    kind: str
    root: Path
    done: int = 0
    bad: int = 0
    late: list[Element] = field(default_factory=list)
    batch: int = 0
    waiting: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.kind in ("gz", "parquet", "ttl"):
            self.path.mkdir(parents=True)
        else:
            self.path.write_text("key,n,ts\n" if self.kind == "csv" else "")

    @property
    def path(self) -> Path:
        folder = self.kind in ("gz", "parquet", "ttl")
        return self.root / self.name if folder else self.root / f"{self.name}.{self.kind}"

    @property
    def options(self) -> dict[str, str]:
        own = {"csv": {"mapping": "map.yaml"}, "ndjson": {"mapping": "map.yaml"},
               "parquet": {"mapping": "map.yaml", "format": "parquet"},
               "ttl": {"format": "ttl", "time": "filename:_([0-9]+)"},
               "gz": {"format": "nt"}}.get(self.kind, {})  # fmt: skip
        own = {k: str(self.root / v) if k == "mapping" else v for k, v in own.items()}
        return {**own, "lateness": f"{LATENESS}ms"}

    def ts(self, i: int) -> int:
        return BEGIN + i * 1000 // RATE

    def elements(self) -> list[Element]:
        """All that was written and is well-formed."""
        return [element(i, self.ts(i)) for i in range(self.done)] + self.late

    def write(self, until: int) -> None:
        """The elements below ``until``."""
        new = range(self.done, until)
        if self.kind in ("nt", "csv", "ndjson"):
            with self.path.open("ab", buffering=0) as file:
                file.write("".join(self._lines(new)).encode())
        elif self.kind == "ttl":
            for i in new:
                text = f"@prefix : <http://e/> . :a{i % KEYS} :p {i} ."
                bad = i % EVERY_BAD == 3
                if bad:
                    renamed(
                        self.path / f"{i:09}b_{self.ts(i)}.ttl", b"@prefix : <http://e/> . :a :p "
                    )
                    self.bad += 1
                renamed(self.path / f"{i:09}a_{self.ts(i)}.ttl", text.encode())
        elif new:
            renamed(
                self.path / f"{new[0]:09}.{'nt.gz' if self.kind == 'gz' else 'parquet'}",
                self._whole(new),
            )
        self.done = max(until, self.done)

    def _lines(self, new: range) -> Iterator[str]:
        for i in new:
            ts = self.ts(i)
            yield line(i, ts) if self.kind == "nt" else row(self.kind, i, ts)
            if i % EVERY_BAD == 3:
                self.bad += 1
                yield {
                    "nt": f"this is no triple {i} .\n",
                    "csv": f"1,{i},noon\n",
                    "ndjson": f'{{"n": {i}\n',
                }[self.kind]
            if i % EVERY_LATE == 7 and self.kind == "nt":
                self.late.append(element(i, ts - BEHIND))
                yield line(i, ts - BEHIND)

    def _whole(self, new: range) -> bytes:
        if self.kind == "gz":
            return gzip.compress("".join(line(i, self.ts(i)) for i in new).encode())
        table = pa.table(
            {"key": [str(i % KEYS) for i in new], "n": list(new), "ts": [self.ts(i) for i in new]}
        )
        out = io.BytesIO()
        pq.write_table(table, out)
        return out.getvalue()


@dataclass
class Load:
    """The heavy stream: a folder of files that grow for ``span`` seconds; ``rate`` lines a
    second.
    """

    root: Path
    rate: int
    span: int = 5
    done: int = 0

    def __post_init__(self) -> None:
        self.path.mkdir()

    @property
    def path(self) -> Path:
        return self.root / "load"

    def ts(self, i: int) -> int:
        return BEGIN + i * 1000 // self.rate

    def write(self, until: int) -> None:
        """The elements below ``until``, each in the file of its time."""
        a_file = self.rate * self.span
        while self.done < until:
            stop = min(until, (self.done // a_file + 1) * a_file)
            with (self.path / f"{self.done // a_file:06}.nt").open("ab", buffering=0) as file:
                file.write("".join(line(i, self.ts(i)) for i in range(self.done, stop)).encode())
            self.done = stop

    def forget(self, ts: int) -> None:
        """Deletes the files all of whose elements are older than this, but for the newest two."""
        for path in sorted(self.path.iterdir())[:-2]:
            if self.ts((int(path.stem) + 1) * self.rate * self.span) < ts:
                os.unlink(path)

    def sums(self, step: int) -> dict[int, dict[str, tuple[int, int]]]:
        """By report of tumbling windows, by key: how many, and their sum."""
        count: Counter[tuple[int, int]] = Counter()
        total: Counter[tuple[int, int]] = Counter()
        for i in range(self.done):
            at = (self.ts(i) // step + 1) * step, i % KEYS
            count[at] += 1
            total[at] += i
        found: dict[int, dict[str, tuple[int, int]]] = {}
        for (report, key), n in count.items():
            found.setdefault(report, {})[f"http://e/a{key}"] = n, total[report, key]
        return found
