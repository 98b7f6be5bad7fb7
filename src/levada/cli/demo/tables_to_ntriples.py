"""The conversion of tables to N-Triples, by expressions over whole columns.

    <http://levada.example/airline/UA> <https://schema.org/name> "United Air Lines Inc." .
    <http://levada.example/flight/UA1545-20130101T1015Z> <http://levada.example/air#departureDelay>
        "2"^^<http://www.w3.org/2001/XMLSchema#integer> 1357035300000 .     (one line, in a stream)

A ``Shape`` describes the triples of a row: its subject, and for each predicate the object's
canonical text, or null. The triples of a row are consecutive, so that in a stream they are one
element (``element=subject``). With ``time`` each line ends with the row's event time. Invariants:
rows keep their order; texts have no line break, so a line is a triple. Cost: two seconds on two
cores for a year of flights, 2.7 million triples.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


@dataclass(frozen=True)
class Shape:
    """The triples of a row. ``subject`` and the objects are expressions of N-Triples texts;
    ``time`` of integer ms, or None.
    """

    subject: pl.Expr
    kind: str
    objects: tuple[tuple[str, pl.Expr], ...]
    time: pl.Expr | None = None

    @property
    def predicates(self) -> tuple[str, ...]:
        """Returns the IRIs of all predicates, in the order of the lines."""
        return (RDF_TYPE, *(predicate for predicate, _ in self.objects))

    def element(self) -> pl.Expr:
        """Returns the lines of a row as one text, without the last line break."""
        end = (
            [pl.lit(" .")]
            if self.time is None
            else [pl.lit(" "), self.time.cast(pl.String), pl.lit(" .")]
        )
        kind = pl.concat_str(pl.lit(f" <{RDF_TYPE}> <{self.kind}>"), *end)
        others = [pl.concat_str(pl.lit(f" <{name}> "), value, *end) for name, value in self.objects]
        lines = [pl.concat_str(self.subject, rest) for rest in (kind, *others)]
        return pl.concat_str(lines, separator="\n", ignore_nulls=True)

    def triples(self, table: pl.DataFrame) -> int:
        """Returns the number of triples of a table."""
        there = table.select(
            pl.sum_horizontal(value.is_not_null().sum() for _, value in self.objects)
        )
        return table.height + int(there.item())


def write(table: pl.DataFrame, shape: Shape, path: Path) -> None:
    """Writes the triples of a table, row by row in its order."""
    lines = table.lazy().select(shape.element())
    lines.sink_csv(
        path, include_header=False, quote_style="never", separator="\t", line_terminator="\n"
    )


def iri(start: str, *parts: pl.Expr) -> pl.Expr:
    """Returns IRIs that begin with ``start``. The parts must not contain characters that an IRI
    forbids.

    >>> made = pl.DataFrame({"k": ["UA", None]}).select(iri("http://e/", pl.col("k")))
    >>> made.to_series().to_list()
    ['<http://e/UA>', None]
    """
    return pl.concat_str(pl.lit(f"<{start}"), *parts, pl.lit(">"))


def string(value: pl.Expr) -> pl.Expr:
    r"""Returns plain literals.

    >>> pl.DataFrame({"k": ['a "b"']}).select(string(pl.col("k"))).item()
    '"a \\"b\\""'
    """
    text = value.cast(pl.String)
    for raw, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.str.replace_all(raw, escaped, literal=True)
    return pl.concat_str(pl.lit('"'), text, pl.lit('"'))


def typed_literal(value: pl.Expr, datatype: str) -> pl.Expr:
    """Returns literals of a type of XML Schema, from numbers or from lexical forms.

    >>> column = pl.DataFrame({"k": [-2, None]})
    >>> column.select(typed_literal(pl.col("k"), "integer")).to_series().to_list()
    ['"-2"^^<http://www.w3.org/2001/XMLSchema#integer>', None]
    """
    return pl.concat_str(pl.lit('"'), value.cast(pl.String), pl.lit(f'"^^<{XSD}{datatype}>'))


def date_time(ms: pl.Expr) -> pl.Expr:
    """Returns instants in ms as xsd:dateTime, in UTC.

    >>> pl.DataFrame({"t": [0]}).select(date_time(pl.col("t"))).item()
    '"1970-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    """
    return typed_literal(
        pl.from_epoch(ms, time_unit="ms").dt.strftime("%Y-%m-%dT%H:%M:%SZ"), "dateTime"
    )


def stamp(ms: pl.Expr) -> pl.Expr:
    """Returns instants in ms to the minute, as in IRIs.

    >>> pl.DataFrame({"t": [0]}).select(stamp(pl.col("t"))).item()
    '19700101T0000Z'
    """
    return pl.from_epoch(ms, time_unit="ms").dt.strftime("%Y%m%dT%H%MZ")
