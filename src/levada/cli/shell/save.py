"""``\\save FILE``: the last answer in the format of the file's extension, or the last query's
text.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from levada.cli.shell.session import Session
from levada.connectors.serialization.columnar_tables import arrow_table, table, table_bytes
from levada.connectors.serialization.encode_batch import records
from levada.connectors.serialization.result_formats import (
    HEADED,
    LINES,
    TABLES,
    Format,
    check_fits,
)
from levada.connectors.serialization.serialize import heading
from levada.connectors.serialization.typed_columns import typed_frame
from levada.core.atomic_file import write_atomic
from levada.core.query_model import Form, Output
from levada.core.text_columns import join_lines
from levada.errors import UsageError
from levada.language.dialects.detect import dialect_of_ending

_TEXTS = (".rq", ".sparql")


def save(session: Session, path: Path) -> str:
    """Writes the file; returns a name of its contents. Raises ``UsageError`` and ``SinkError``."""
    if path.suffix in _TEXTS or dialect_of_ending(path.suffix):
        write_atomic(path, session.the_last().text.rstrip().encode() + b"\n")
        return "The query"
    known = {f".{form}": form for form in (*LINES, *TABLES)}
    if path.suffix not in known:
        hint = f"Name a file that ends in {', '.join(known)}; of a query in .rq or .cql."
        raise UsageError(f"{path} does not say a format.", hint=hint)
    write_atomic(path, _content(session, known[path.suffix]))
    return "The answer"


def _content(session: Session, form: Format) -> bytes:
    """Returns the last answer in a format. Raises ``UsageError``."""
    answer = session.answer
    if answer is None:
        raise UsageError(
            "There is no answer to be saved.", hint="Ask a query first; \\follow keeps none."
        )
    batches = answer.batches
    if batches is None:
        hint = "Save the query, and run it with levada run --out DIR."
        raise UsageError(f"The answer has {answer.rows:,} rows, too many to be kept.", hint=hint)
    if not batches:
        raise UsageError("The last answer is empty.")
    first = batches[0]
    output = Output.RSTREAM if first.change is None else Output.RELATION
    check_fits(form, answer.query, first.form, output)
    if form in TABLES:
        frame, types = typed_frame(pl.concat(map(table, batches), how="vertical_relaxed"))
        return table_bytes(form, arrow_table(frame, types, answer.query))
    head = heading(form, answer.variables, first) if form in HEADED else b""
    assert form is not Format.NQ or first.form is Form.CONSTRUCT, "quads are of graphs"
    parts = [join_lines(records(form, answer.query, answer.variables, b)) for b in batches]
    return head + b"".join(parts)
