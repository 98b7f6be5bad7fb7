"""SPARQLstream as data: each clause and its meaning in docs/semantics.md.

    FROM NAMED STREAM <s> [..]                   a window that patterns read without naming it: as
                                                 C-SPARQL's FROM STREAM; FROM STREAM <s> is the
                                                 same
    [NOW - 10 MINUTES TO NOW - 5 MINUTES SLIDE 3 MINUTES]
                                                 a window in the past; STEP for SLIDE
    [FROM NOW - 10 S TO NOW STEP 10 S]           RANGE a STEP b
    [NOW - 10 S TO NOW]                          RANGE a
    [RANGE 1h STEP], [RANGE 1h TUMBLING]         RANGE a STEP a: a bare STEP tumbles
    SELECT RSTREAM .., CONSTRUCT ISTREAM {..}    the output

Source: Calbimonte, Corcho, Gray, "Enabling ontology-based access to streaming data sources" (ISWC
2010); SRBench's queries.
"""

from __future__ import annotations

from levada.language.dialects.dialect import Dialect

SPARQLSTREAM = Dialect(
    "sparqlstream",
    "SPARQLstream",
    ("register.lark", "from_stream.lark", "output.lark", "sparqlstream.lark"),
    (".sparqlstream",),
    merged=True,
)
