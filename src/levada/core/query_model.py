"""The query model of both paths: query form, output, patterns, windows on streams."""

from __future__ import annotations

from enum import StrEnum

from levada.core.event_time import Window
from levada.core.expressions import Var
from levada.core.frozen import frozen
from levada.core.rdf_terms import Term


@frozen
class TriplePattern:
    """Three positions, each a variable or a term. Blank nodes of the query text are variables named
    ``_:label``.

    https://www.w3.org/TR/sparql11-query/#defn_TriplePattern
    """

    subject: Var | Term
    predicate: Var | Term
    object: Var | Term

    @property
    def positions(self) -> tuple[Var | Term, Var | Term, Var | Term]:
        """Subject, predicate, object."""
        return (self.subject, self.predicate, self.object)


class Form(StrEnum):
    """The query form."""

    SELECT = "SELECT"
    ASK = "ASK"
    CONSTRUCT = "CONSTRUCT"


class Output(StrEnum):
    """The relation-to-stream operator; RELATION is CQL's plain one: changes with both signs."""

    RSTREAM = "RSTREAM"
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RELATION = "RELATION"


@frozen
class StreamWindow:
    """A window of a query: its name (an IRI; CQL: the alias), its stream, its parameters.

    ``beneath``: for a window over a query within the query (``SubQuery``), all windows below it;
    ``stream`` is one of theirs.
    """

    name: str
    stream: str
    window: Window
    beneath: tuple[int, ...] = ()
