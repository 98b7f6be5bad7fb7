"""Lists the formats of results: the queries that each can represent, and how it separates reports.

    record   ndjson csv tsv      a line, or a line a solution, with the report time
             json                a flat object a solution (``flat_rows``)
             nq trig             (CONSTRUCT) each report is a graph, named by ``graph_iris``
    report   srj srx nt          a file a report, named by its time: these have no place for it
    whole    jsonld jelly        (CONSTRUCT) as nq, and a file is one document
    table    arrow parquet       columns: report (ms), then the variables

A CONSTRUCT in a table, and in csv and tsv, is its triples: subject, predicate, object. ``srj`` and
``srx`` have no place for the sign of a relation's changes. Specifications: SPARQL 1.1 Query Results
JSON, XML, CSV and TSV; RDF 1.1; JSON-LD 1.1; Jelly 1.1.
"""

from __future__ import annotations

from enum import StrEnum

from levada.core.query_model import Form, Output
from levada.errors import UsageError, near


class Format(StrEnum):
    """A result format; its value is the extension of files and the word of ``--format``."""

    NDJSON = "ndjson"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"
    SRJ = "srj"
    SRX = "srx"
    NT = "nt"
    NQ = "nq"
    TRIG = "trig"
    JSONLD = "jsonld"
    JELLY = "jelly"
    ARROW = "arrow"
    PARQUET = "parquet"


REPORTS = (Format.SRJ, Format.SRX, Format.NT)
WHOLE = (Format.JSONLD, Format.JELLY)
TABLES = (Format.ARROW, Format.PARQUET)
HEADED = (Format.CSV, Format.TSV)
LINES = (Format.NDJSON, Format.JSON, *HEADED, Format.NQ, Format.TRIG)
SHAPES = ("changes", "state")
"""The contents of a relation's files: its changes, or its present rows."""
_SOLUTIONS = (Format.SRJ, Format.SRX)
_GRAPHS = (Format.NT, Format.NQ, Format.TRIG, *WHOLE)
_ANY = (Format.NDJSON, Format.JSON, *HEADED, *TABLES)


_MEANT = {
    "jsonl": "it is called ndjson here",
    "xml": "srx has SPARQL's XML results, a file a report",
    "ttl": "nt and trig are Turtle, too",
    "turtle": "nt and trig are Turtle, too",
    "json-ld": "it is called jsonld here",
    "feather": "it is called arrow here",
}


def meant(word: str) -> str:
    """Suggests a format for an unknown word.

    >>> meant("jsonl"), meant("cvs")
    ('It is called ndjson here.', 'Did you mean csv?')
    """
    said = _MEANT.get(word.lower())
    if said is None:
        return near(word.lower(), map(str, Format))
    return f"{said[0].upper() if said.startswith('it ') else said[0]}{said[1:]}."


def fitting(form: Form, output: Output) -> tuple[Format, ...]:
    """Returns the formats that can represent the results of such a query.

    >>> [str(f) for f in fitting(Form.SELECT, Output.RELATION)]
    ['ndjson', 'json', 'csv', 'tsv', 'arrow', 'parquet']
    """
    if form is Form.CONSTRUCT:
        return _ANY + _GRAPHS
    return _ANY if output is Output.RELATION else _ANY + _SOLUTIONS


def check_fits(chosen: Format, query: str, form: Form, output: Output) -> None:
    """Raises ``UsageError`` with the suitable formats if the format cannot represent the query's
    results.
    """
    able = fitting(form, output)
    if chosen not in able:
        what = (
            "a relation, whose changes have signs"
            if output is Output.RELATION
            else f"of the form {form.name}"
        )
        hint = "Say --format " + ", ".join(able[:-1]) + f" or {able[-1]}."
        raise UsageError(
            f"{chosen} cannot hold the results of the query {query}, which is {what}.", hint=hint
        )


def check_state(form: Format, query: str, output: Output) -> None:
    """Raises ``UsageError`` if a query has no state, or the format cannot represent it."""
    if output is not Output.RELATION:
        raise UsageError(
            f"The results of the query {query} are no relation ({output}): they have no state.",
            hint="Leave --as state out, or ask for the relation: CQL without Istream, Dstream "
            "or Rstream.",
        )
    if form not in _ANY:
        able = ", ".join(_ANY[:-1])
        raise UsageError(
            f"{form} cannot hold the state of the query {query}.",
            hint=f"Say --format {able} or {_ANY[-1]}.",
        )


def check_stdout(chosen: Format, queries: int) -> None:
    """Raises ``UsageError`` if the results of so many queries cannot follow each other on one
    stream in this format.
    """
    if chosen not in LINES:
        hint = "Say --out DIR, or --format " + ", ".join(LINES[:-1]) + f" or {LINES[-1]}."
        raise UsageError(f"{chosen} is for files, not for standard output.", hint=hint)
    if chosen in HEADED and queries > 1:
        message = f"{chosen} on standard output is for one query, these are {queries}."
        raise UsageError(message, hint="Say --out DIR or --format ndjson.")
