"""``levada graph``: send graphs in other formats, and as a picture."""

from __future__ import annotations

import sys
from pathlib import Path

from levada.cli.placement.group_by_operator import by_operator
from levada.engine.placement.measured_send_graph import read_group_send_graph, read_send_graph
from levada.errors import UsageError
from levada.placement import placement_file as placements
from levada.placement import sankey as chart
from levada.placement.formats import FORMATS, format_of, read_graph


def export(
    file: Path,
    format_: str | None,
    out: Path | None,
    slice_: str | None = None,
    groups: int | None = None,
) -> None:
    """Writes a send graph in the format ``format_``, else in that of the extension of ``out``.

    ``file`` may be a checkpoint: then the measured graph is written, as JSON by default. ``groups``
    makes tasks of that many groups of keys. Raises ``UsageError``.
    """
    if file.is_dir():
        name = format_ or ("json" if out is None else format_of(out))
        graph = (
            read_group_send_graph(file, slice_, groups) if groups else read_send_graph(file, slice_)
        )
        _write(FORMATS[name].write(graph), out)
        return
    if not file.exists():
        raise UsageError(f"{file} cannot be read: there is no such file, and no such checkpoint.")
    for option, value in (("--slice", slice_), ("--groups", groups)):
        if value is not None:
            hint = f"Leave {option} out."
            raise UsageError(f"{option} is for a checkpoint, and {file} is none.", hint=hint)
    if format_ is None and out is None:
        raise UsageError("No format is said.", hint="Say --format metis or graphml, or --out FILE.")
    name = format_ or format_of(out or file)
    _write(FORMATS[name].write(read_graph(file, "json")), out)


def import_(file: Path, format_: str | None, out: Path | None) -> None:
    """Writes a graph of any format as JSON. Raises ``UsageError``."""
    _write(FORMATS["json"].write(read_graph(file, format_)), out)


def sankey(
    file: Path, placement: Path | None, machines: int, out: Path | None, by: str = "task"
) -> None:
    """Writes the picture of tasks or of operators (``by``). Raises ``UsageError``."""
    if by == "operator" and placement is not None:
        raise UsageError(
            "Operators have no machine, their tasks have.", hint="Leave out --placement or --by."
        )
    graph = read_graph(file)
    if not graph.rows.sum():
        raise UsageError(f"{file} has no messages, so there is nothing to draw.")
    place, missing = (None, 0) if placement is None else placements.read(placement, graph, machines)
    if missing:
        raise UsageError(f"{placement} has no machine for {missing} of the graph's tasks.")
    _write(chart.page(by_operator(graph) if by == "operator" else graph, place), out)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}.") from error
