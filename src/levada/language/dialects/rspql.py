"""RSP-QL as data, in which others are said: each clause and its meaning in docs/semantics.md.

    REGISTER ISTREAM <o> AS                        the output
    REGISTER STREAM <o> AS CONSTRUCT ISTREAM       the same, as the community group's draft has it;
                                                   SELECT likewise
    FROM NAMED WINDOW <w> ON [STREAM] <s> [..]     a window that WINDOW <w> {} reads
    REGISTER .. UNDER ENTAILMENT REGIME <r> AS     the option entailment
    FROM WINDOW <w> ON <s> [..]                    a window in the default graph
    FROM GRAPH <g>, FROM NAMED GRAPH <g>           FROM <g>, FROM NAMED <g>
    [RANGE a STEP b], SLIDE for STEP               RANGE a STEP b;  TUMBLING for STEP a; also with
                                                   a comma
    [TUMBLING a]                                   RANGE a STEP a
    [RANGE a]                                      each element for a
    [FROM NOW-x TO NOW-y STEP b]                   a window in the past; FROM and STEP may be left
                                                   out
    [TRIPLES n], [RANGE n TRIPLES]                 the last n triples; STEP m, SLIDE m: after each
                                                   m-th; TUMBLING: after each n-th
    [ELEMENTS n STEP m], ITEMS                     the same
    [SESSION g], [NOW], [ALL]
    T0 1000, T0 "1970-01-01T00:00:01Z"             where windows start
    REPORT ON_WINDOW_CLOSE | ON_CONTENT_CHANGE     the report policy; NON_EMPTY_CONTENT and
                                                   PERIODIC d beside it, with commas
    TICK TIME_DRIVEN | BATCH_DRIVEN                nothing: results do not depend on when an engine
                                                   looks

A length is an ISO 8601 duration, or is written as in C-SPARQL and CQELS-QL (10s, 1h30m); a number
alone counts seconds, as in CQL (the samples of RSP4J have none). Source: Dell'Aglio, Della Valle,
Calbimonte, Corcho, "RSP-QL semantics" (IJSWIS 10(4), 2014), RSP4J's texts, and the drafts of W3C's
RSP community group.
"""

from __future__ import annotations

from levada.language.dialects.dialect import Dialect

RSPQL = Dialect(
    "rspql",
    "RSP-QL",
    (
        "register.lark",
        "register_stream.lark",
        "output.lark",
        "named_window.lark",
        "reporting.lark",
        "rspql.lark",
    ),
    (".rspql",),
)
