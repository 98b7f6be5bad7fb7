"""The ontology of an engine's queries: its files, or without files the schema triples of all static
data.

All graphs have one schema: a class hierarchy in a named graph also holds for streams and for the
default graph. The triples of an ontology file are in no graph. To query them, load the file as
static data, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from levada.connectors.ingest.static_files import StaticFile, static_source
from levada.errors import UsageError
from levada.plan.logical.ontology_schema import Regime, Schema, Statement, UnusedAxioms

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Ontology:
    """The schemas by regime, each read once. ``files``: the files of the ontology or of static
    data.

    >>> from levada.plan.logical.ontology_schema import SUB_CLASS
    >>> from levada.core.rdf_terms import Iri
    >>> ontology = Ontology([static_source([f"<e:A> {SUB_CLASS} <e:B>"])])
    >>> sorted(map(str, ontology.schema(Regime.RDFS).superclasses(Iri("e:A"))))
    ['<e:A>', '<e:B>']
    """

    def __init__(self, files: Sequence[StaticFile]) -> None:
        self._files = [file for file in files if file.path or file.lines]
        self._schemas: dict[Regime, Schema] = {}
        self._unused: dict[Regime, tuple[UnusedAxioms, ...]] = {}

    def schema(self, regime: Regime) -> Schema:
        """Returns the schema under a regime. Raises ``UsageError``, ``SourceError``."""
        if regime not in self._schemas:
            statements, self._unused[regime] = self._read(regime)
            self._schemas[regime] = Schema.from_triples(statements, regime)
        return self._schemas[regime]

    def unused_axioms(self, regime: Regime) -> tuple[UnusedAxioms, ...]:
        """Returns the axioms that entail nothing under a regime, by file. Raises as ``schema``
        does.
        """
        self.schema(regime)
        return self._unused[regime]

    def _read(self, regime: Regime) -> tuple[list[Statement], tuple[UnusedAxioms, ...]]:
        if not self._files:
            hint = "Name one: --ontology FILE, or Engine(ontology=FILE); or give static data."
            raise UsageError(
                f"Entailment {regime} needs an ontology, and there is none.", hint=hint
            )
        # here: the import loads the parsers
        from levada.engine.ontology_files import read_ontology

        return read_ontology(self._files, regime)


def ontology_files(sources: Paths) -> list[StaticFile]:
    """Returns the files of an ontology from one path or several. Raises ``UsageError``,
    ``SourceError``.
    """
    paths = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"There is no ontology file {os.fspath(path)}.")
    return [static_source(path) for path in paths]
