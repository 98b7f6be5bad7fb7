"""C-SPARQL as data: each clause and its meaning in docs/semantics.md.

    FROM STREAM <s> [..]             a window that is part of the default graph: every pattern reads
                                     the RDF merge of all of them and of the static default graph
                                     (that of FROM, if any); a triple in two counts once
    FROM NAMED STREAM <s> [..]       a window that GRAPH <s> {} reads
    [RANGE a STEP b], [RANGE a TUMBLING], [RANGE a]    as in RSP-QL
    [TRIPLES n], [RANGE TRIPLES n]   the last n triples, after each n-th: it tumbles
    REGISTER QUERY q AS              RStream;  REGISTER STREAM <s> AS makes a stream of the results
    COMPUTED EVERY p                 periodic reports
    f:timestamp(..)                  the latest time at which a triple, or the triples that bind a
                                     variable, came
                                     (docs/decisions/0012-latest-coming.md)

Source: Barbieri, Braga, Ceri, Della Valle, Grossniklaus, "C-SPARQL: a continuous query language for
RDF data streams" (Int. J. Semantic Computing 4(1), 2010).
"""

from __future__ import annotations

from levada.language.dialects.dialect import Dialect

CSPARQL = Dialect(
    "csparql",
    "C-SPARQL",
    ("from_stream.lark", "register_query.lark"),
    (".csparql",),
    merged=True,
    tumbling_triples=True,
)

TIMESTAMP = "http://larkc.eu/csparql/sparql/jena/ext#timestamp"
"""The extension function f:timestamp."""
