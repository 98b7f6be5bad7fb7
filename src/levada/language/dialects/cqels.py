"""CQELS-QL as data, version 1 and version 2: each clause and its meaning in docs/semantics.md.

    CQELS-QL 1
    STREAM <s> [RANGE a SLIDE b] {}     RANGE a STEP b, on content change; TUMBLING for SLIDE a
    STREAM <s> [RANGE a] {}             each element for a
    STREAM <s> [TRIPLES n | NOW | ALL] {}
    STREAM ?s [..] {}                   over each of the streams in turn
    GRAPH <g> {}, and patterns outside  static data; FROM NAMED <g> alone does not empty the default
                                        graph

    CQELS-QL 2, what it has beside that
    FROM STREAM <s> [..], STREAM <s> {}    the window beside FROM; a word alone may name a stream
    FROM NAMED WINDOW <w> ON <s> [..], WINDOW <w> {}    as in RSP-QL
    [RANGE a]                           it tumbles
    [SLIDE a STEP b]                    RANGE a STEP b
    REGISTER QUERY q AS
    one FROM STREAM, no FROM beside it, no STREAM {}    all patterns read that stream

Both write what is new (IStream) and report on content change, also where a window has a step. Two
STREAM clauses of the same stream and brackets are one window: its content is the same. Source:
Le-Phuoc, Dao-Tran, Parreira, Hauswirth, "A native and adaptive approach for unified processing of
linked streams and linked data" (ISWC 2011); the texts of CityBench, CSRBench, LSBench; for version
2 its published language description.
"""

from __future__ import annotations

from levada.language.dialects.dialect import Dialect

CQELS = Dialect(
    "cqels",
    "CQELS-QL",
    ("register.lark", "stream.lark"),
    (".cqels", ".cqelsql"),
    output="ISTREAM",
    report="change",
    named_beside=True,
)
CQELS2 = Dialect(
    "cqels2",
    "CQELS-QL 2",
    ("register_query.lark", "from_stream.lark", "named_window.lark", "stream.lark", "cqels2.lark"),
    (".cqels2",),
    output="ISTREAM",
    report="change",
    named_beside=True,
    tumbling_range=True,
)
