"""The query texts that others published, by suite, in the dialects in which they wrote them; and
which of them are faulty, and how.

They lie in ``../shared/data`` and are read, never copied.
"""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MISSING = f"The published queries are not there: {DATA}"

SUITES = {
    "citybench/cqels_query/*.txt": "cqels",
    "citybench/csparql_query/*.txt": "csparql",
    "rsp4j/csparql2/src/test/resources/**/*.rspql": "rspql",
    "srbench/*.sparql": "sparqlstream",
    "lsbench/queries-cqelsql/*.cqels": "cqels",
    "lsbench/queries-cqelsplus-variants/*.txt": "cqels",
    "lsbench/queries-rspql-wukongs/query[1-6]*": "csparql",
}

_WUKONG = "poststream|photostream"
FAULTY = {
    "citybench/q12.rspql": r"\?p is neither a key of GROUP BY nor within an aggregate",
    # HAVING without GROUP BY
    "srbench/q5.sparql": r"\?sensor is neither a key of GROUP BY nor within an aggregate",
    # Hints of an execution order in place of dots, prefixes that are not declared, FROM without
    # STREAM:
    **{
        f"queries-rspql-wukongs/query{n}": rf"({_WUKONG}) cannot stand here"
        for n in ("1", "2", "3", "4", "4_alias", "5", "6")
    },
}
"""What is no text of its language, and the error that says so."""


def available() -> bool:
    """Whether the texts are there."""
    return (DATA / "citybench").is_dir()


def texts() -> list[tuple[str, str, Path]]:
    """Each text: its name (folder and file), its dialect, its place."""
    found = [
        ("/".join(p.parts[-2:]), dialect, p)
        for glob, dialect in SUITES.items()
        for p in sorted(DATA.glob(glob))
    ]
    return [entry for entry in found if entry[2].is_file()]
