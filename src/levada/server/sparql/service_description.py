"""The description of ``/sparql`` for programs: SPARQL 1.1 Service Description
(https://www.w3.org/TR/sparql11-service-description/).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyoxigraph as ox

_SD = "http://www.w3.org/ns/sparql-service-description#"
_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_FORMATS = "http://www.w3.org/ns/formats/"
_NAMES = {
    "application/sparql-results+json": "SPARQL_Results_JSON",
    "application/sparql-results+xml": "SPARQL_Results_XML",
    "text/csv": "SPARQL_Results_CSV",
    "text/tab-separated-values": "SPARQL_Results_TSV",
    "text/turtle": "Turtle",
    "application/n-triples": "N-Triples",
    "application/rdf+xml": "RDF_XML",
    "application/ld+json": "JSON-LD",
}
_WRITTEN = {
    "ttl": ox.RdfFormat.TURTLE,
    "nt": ox.RdfFormat.N_TRIPLES,
    "rdf": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}


def description(endpoint: str, graphs: Sequence[str], gives: Sequence[str], form: str) -> bytes:
    """Describes a service over these named graphs, serialized as ``form``. ``gives``: its media
    types.

    >>> text = description("http://e/sparql", ["http://e/g"], ["text/csv"], "nt").decode()
    >>> "<http://www.w3.org/ns/formats/SPARQL_Results_CSV>" in text, "<http://e/g>" in text
    (True, True)
    """
    service, dataset, default = (ox.BlankNode(name) for name in ("service", "dataset", "default"))
    triples = [
        ox.Triple(service, _TYPE, _sd("Service")),
        ox.Triple(service, _sd("endpoint"), ox.NamedNode(endpoint)),
        ox.Triple(service, _sd("supportedLanguage"), _sd("SPARQL11Query")),
        ox.Triple(service, _sd("defaultDataset"), dataset),
        ox.Triple(dataset, _TYPE, _sd("Dataset")),
        ox.Triple(dataset, _sd("defaultGraph"), default),
        ox.Triple(default, _TYPE, _sd("Graph")),
    ]
    for media in gives:
        if media in _NAMES:
            name = ox.NamedNode(_FORMATS + _NAMES[media])
            triples.append(ox.Triple(service, _sd("resultFormat"), name))
    for at, graph in enumerate(graphs):
        node = ox.BlankNode(f"graph{at}")
        triples += [
            ox.Triple(dataset, _sd("namedGraph"), node),
            ox.Triple(node, _TYPE, _sd("NamedGraph")),
            ox.Triple(node, _sd("name"), ox.NamedNode(graph)),
        ]
    return ox.serialize(triples, format=_WRITTEN[form]) or b""


def _sd(name: str) -> ox.NamedNode:
    return ox.NamedNode(_SD + name)
