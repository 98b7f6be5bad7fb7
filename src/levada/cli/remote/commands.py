"""The commands that talk to a running engine, with their options. Each module of this folder is
loaded when its command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from levada.cli import options as o
from levada.cli.placement import options as w

Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FOLDER]",
        show_default=False,
        help="Where to look; else below here, and at engines on temporary checkpoints.",
    ),
]
Files = Annotated[list[str], typer.Argument(metavar="QUERY...", help="Query files.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of queries.")]
NewStreams = Annotated[
    list[str],
    typer.Argument(metavar="NAME=PATH[,key=value...]", help="Streams, as of run --stream."),
]
StreamNames = Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of streams.")]
SomeNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME...]", show_default=False, help="Names of queries; else all."),
]
Name = Annotated[
    str | None, typer.Option("--name", help="The query's name, else that of its file.")
]
LineFormat = Annotated[
    Literal["ndjson", "csv", "tsv", "nq", "trig"],
    typer.Option("--format", help="How results are written."),
]
FromStart = Annotated[
    bool, typer.Option("--from-start", help="Begin with what the checkpoint still holds.")
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Go on where no engine runs, until Ctrl-C: one may start.")
]
QueryName = Annotated[str, typer.Argument(metavar="QUERY", help="The name of a query.")]
TableFormat = Annotated[
    Literal["arrow", "parquet"], typer.Option("--as", help="The format of the table.")
]
TableOut = Annotated[
    str,
    typer.Option("--out", metavar="FILE|FOLDER", help="Where to write; - is standard output."),
]
Follow = Annotated[
    bool,
    typer.Option("--follow", help="Write a file for each report into --out, also of later ones."),
]
FirstReport = Annotated[
    str, typer.Option("--from", metavar="TIME", help="The first report time: ISO or ms.")
]
LastReport = Annotated[
    str, typer.Option("--until", metavar="TIME", help="The last report time: ISO or ms.")
]
Columns = Annotated[
    str,
    typer.Option(
        "--columns", metavar="NAME[ TYPE],...", help="Variables, each with a type if you name one."
    ),
]
Datatypes = Annotated[
    bool, typer.Option("--datatypes", help="Add the datatype of each variable as a column.")
]
Lost = Annotated[
    Literal["stop", "skip"],
    typer.Option("--lost", help="What to do about reports that are not kept any more."),
]
Live = Annotated[
    bool, typer.Option("--watch", help="Show it anew whenever it changes, until Ctrl-C.")
]

Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--to",
        metavar="[QUERY=]URL[,key=value...]",
        help="Take a query's reports to Kafka, PostgreSQL or a Delta table; repeatable.",
    ),
]
To = Annotated[
    int | None,
    typer.Option("--to", metavar="EPOCH", help="The epoch that is meant; else the one before."),
]


def _ps(folder: Folder = None, as_json: o.AsJson = False, debug: o.Debug = False) -> None:
    """List the running engines, and the checkpoints below a folder."""
    from levada.cli.remote.ps import ps

    ps(folder, as_json=as_json)


def _add(
    checkpoint: o.CheckpointFolder,
    queries: Files,
    name: Name = None,
    dialect: o.Dialect = None,
    bounds: o.Bounds = None,
    t0: o.T0 = None,
    report: o.Report = None,
    empty_reports: o.EmptyReports = False,
    until: o.Until = None,
    lifetime: o.Lifetime = None,
    entailment: o.Entailment = None,
    region: w.Region = None,
    to: Outputs = None,
    debug: o.Debug = False,
) -> None:
    """Add queries to the engine that runs on a checkpoint, all of them or none. Exit codes are
    those of check.
    """
    from levada.cli.remote.add_drop import add, parse_options

    words = {"bounds": bounds, "t0": t0, "report": report, "entailment": entailment}
    life = {"until": until, "lifetime": lifetime, "region": region}
    said = parse_options({**words, **life}, empty_reports=empty_reports)
    add(checkpoint, queries, name=name, dialect=dialect, said=said, to=to or ())


def _drop(checkpoint: o.CheckpointFolder, names: Names, debug: o.Debug = False) -> None:
    """Remove queries from the engine that runs on a checkpoint."""
    from levada.cli.remote.add_drop import drop

    drop(checkpoint, names)


def _add_stream(
    checkpoint: o.CheckpointFolder, streams: NewStreams, debug: o.Debug = False
) -> None:
    """Add streams to the engine that runs on a checkpoint, for queries that are added later."""
    from levada.cli.remote.add_drop_streams import add_streams

    add_streams(checkpoint, streams)


def _drop_stream(
    checkpoint: o.CheckpointFolder, names: StreamNames, debug: o.Debug = False
) -> None:
    """Remove streams, which no query may read, from the engine that runs on a checkpoint."""
    from levada.cli.remote.add_drop_streams import drop_streams

    drop_streams(checkpoint, names)


def _tail(
    checkpoint: o.CheckpointFolder,
    names: SomeNames = None,
    result_format: LineFormat = "ndjson",
    from_start: FromStart = False,
    wait: Wait = False,
    times: o.Times = None,
    debug: o.Debug = False,
) -> None:
    """Write the results of the engine that runs on a checkpoint to standard output, as they arrive.

    Ends with the engine, or with the queries that are named.
    """
    from levada.cli.remote.tail import tail
    from levada.connectors.serialization.result_formats import Format
    from levada.connectors.sinks.stdout_sink import shows_iso

    form = Format(result_format)
    iso = shows_iso(times, form)
    tail(checkpoint, names or (), form, from_start=from_start, wait=wait, iso=iso)


def _results(
    checkpoint: o.CheckpointFolder,
    query: QueryName,
    table_format: TableFormat = "parquet",
    out: TableOut = "-",
    follow: Follow = False,
    wait: Wait = False,
    first: FirstReport = "",
    last: LastReport = "",
    columns: Columns = "",
    datatypes: Datatypes = False,
    lost: Lost = "stop",
    debug: o.Debug = False,
) -> None:
    """Write the reports of a query that a checkpoint keeps as a table with typed columns.

    --follow writes a file for each report into a folder, until the engine ends.
    """
    from levada.cli.remote.results import ResultsRequest, write_results
    from levada.connectors.serialization.result_formats import Format

    request = ResultsRequest(
        checkpoint, query, Format(table_format), out, follow, wait, first, last, columns,
        datatypes, lost,
    )  # fmt: skip
    write_results(request)


def add_commands(app: typer.Typer) -> None:
    """Adds these commands to the command line."""
    app.command("ps", epilog="[bold]Example[/bold]\n\nlevada ps")(_ps)
    app.command("add", epilog="[bold]Example[/bold]\n\nlevada add state warm.rq")(_add)
    app.command("drop", epilog="[bold]Example[/bold]\n\nlevada drop state warm")(_drop)
    example = (
        "[bold]Example[/bold]\n\nlevada add-stream state obs=push: rooms=rooms.csv,schema=auto"
    )
    app.command("add-stream", epilog=example)(_add_stream)
    app.command("drop-stream", epilog="[bold]Example[/bold]\n\nlevada drop-stream state obs")(
        _drop_stream
    )
    app.command("tail", epilog="[bold]Example[/bold]\n\nlevada tail state hot --format csv")(_tail)
    example = "[bold]Example[/bold]\n\nlevada results state warm --as parquet --out warm.parquet"
    app.command("results", epilog=example)(_results)
