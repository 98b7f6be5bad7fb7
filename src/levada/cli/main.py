"""``levada``: the commands and their options. Exit codes: 0 done, 2 a wrong use or query, 1 a failure.

Each command turns its arguments into ``Given`` and ``Mode`` and calls the module of its name; help texts live here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, Literal

import typer

from levada.cli.assemble import Given, assemble
from levada.cli.errors import report

app = typer.Typer(
    name="levada",
    help="Continuous SPARQL and CQL queries over linked-data streams, on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SOURCES, _RESULTS, _MEANING, _RUNNING = "Streams and data", "Results", "Meaning of queries", "Running"

Queries = Annotated[
    list[str] | None,
    typer.Argument(metavar="QUERY...", show_default=False, help="Query files; a query is called after its file."),
]
AppFile = Annotated[
    Path | None,
    typer.Option("--app", metavar="APP.yaml", help="A whole application as YAML.", rich_help_panel=_SOURCES),
]
Streams = Annotated[
    list[str] | None,
    typer.Option(
        "--stream",
        metavar="NAME=PATH[,key=value...]",
        rich_help_panel=_SOURCES,
        help="A stream: a file, a folder that may grow, or a pattern. NAME is its IRI, or a word: the stream in CQL and "
        "every IRI that ends in /word or #word. Keys: format, time, unit, lateness, element, schema, unique, idle, files, "
        "ahead, from, to, limit. Write <IRI>=PATH if the IRI holds an = sign.",
    ),
]
Static = Annotated[
    list[str] | None,
    typer.Option(
        "--static", metavar="PATH[,graph=IRI]", rich_help_panel=_SOURCES, help="Static RDF: N-Triples or Turtle."
    ),
]
Dialect = Annotated[
    Literal["rspql", "cql"] | None,
    typer.Option(help="The language of the query files; else .cql is CQL, all else RSP-QL.", rich_help_panel=_MEANING),
]
Bounds = Annotated[
    Literal["[)", "(]"] | None,
    typer.Option(
        help="Which end of a closing window belongs to it. Default: [)".replace("[", r"\["), rich_help_panel=_MEANING
    ),
]
T0 = Annotated[
    str | None,
    typer.Option("--t0", metavar="TIME", help="Where windows start: ISO or ms; else 1970.", rich_help_panel=_MEANING),
]
Report = Annotated[
    Literal["close", "change"] | None,
    typer.Option(help="When queries report: when windows close or on every change.", rich_help_panel=_MEANING),
]
EmptyReports = Annotated[
    bool, typer.Option("--empty-reports", help="Also report where all windows are empty.", rich_help_panel=_MEANING)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]

_RUN_EXAMPLES = """[bold]Examples[/bold]

levada run hot.rq --stream temp=temp.nt --once

levada run pairs.cql --stream "A=a.csv,schema=k:integer;v:double" --stream "B=b.csv,schema=k:integer;w:double" --out results

levada run --app weather.yaml --checkpoint state --summary summary.json
"""


@app.command("run", epilog=_RUN_EXAMPLES)
def _run(
    queries: Queries = None,
    app_file: AppFile = None,
    stream: Streams = None,
    static: Static = None,
    dialect: Dialect = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR|-", help="A folder for results, or - (default).", rich_help_panel=_RESULTS),
    ] = None,
    result_format: Annotated[
        Literal["ndjson", "csv", "tsv"] | None,
        typer.Option("--format", help="How results are written (default ndjson).", rich_help_panel=_RESULTS),
    ] = None,
    summary: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the end summary as JSON.", rich_help_panel=_RESULTS)
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace results of another run in --out.", rich_help_panel=_RESULTS)
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Where state lives, to go on later; else temporary.", rich_help_panel=_RUNNING
        ),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark's master; else embedded.", rich_help_panel=_RUNNING)
    ] = None,
    epoch: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Least time between the starts of two epochs, 0: at once (default 1s).",
            rich_help_panel=_RUNNING,
        ),
    ] = None,
    epoch_rows: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most elements in an epoch.", rich_help_panel=_RUNNING)
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Read what is there, then end the streams.", rich_help_panel=_RUNNING)
    ] = False,
    keep_open: Annotated[
        bool,
        typer.Option("--keep-open", help="With --once: leave windows open for the next run.", rich_help_panel=_RUNNING),
    ] = False,
    progress: Annotated[
        bool | None, typer.Option(help="Show progress; else on terminals only.", rich_help_panel=_RUNNING)
    ] = None,
    bounds: Bounds = None,
    t0: T0 = None,
    report: Report = None,
    empty_reports: EmptyReports = False,
    debug: Debug = False,
) -> None:
    """Run queries over streams, until Ctrl-C or, with --once, to the end of what is there.

    Results go to standard output or --out, all else to standard error.
    """
    from levada.cli.run import Mode, run

    options = {
        "out": out,
        "format": result_format,
        "checkpoint": checkpoint,
        "master": master,
        "epoch": epoch,
        "epoch_rows": epoch_rows,
        "bounds": bounds,
        "t0": t0,
        "report": report,
        "empty_reports": empty_reports,
        "summary": summary,
    }
    given = _given(queries, app_file, stream, static, dialect, options)
    run(assemble(given), Mode(once=once, keep_open=keep_open, overwrite=overwrite, progress=progress))


@app.command("check", epilog="[bold]Example[/bold]\n\nlevada check hot.rq storms.rq")
def _check(
    queries: Queries = None,
    app_file: AppFile = None,
    stream: Streams = None,
    dialect: Dialect = None,
    bounds: Bounds = None,
    t0: T0 = None,
    report: Report = None,
    empty_reports: EmptyReports = False,
    debug: Debug = False,
) -> None:
    """Parse and plan queries, without running them; CQL needs its streams' schemas."""
    from levada.cli.check import check

    options = {"bounds": bounds, "t0": t0, "report": report, "empty_reports": empty_reports}
    raise typer.Exit(check(assemble(_given(queries, app_file, stream, None, dialect, options)), debug=debug))


@app.command("explain", epilog="[bold]Example[/bold]\n\nlevada explain hot.rq --stage algebra")
def _explain(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A query file, or the name of a query of --app.")],
    stage: Annotated[
        Literal["ast", "algebra", "optimized", "topology"], typer.Option(help="How far to go.")
    ] = "topology",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    app_file: AppFile = None,
    stream: Streams = None,
    dialect: Dialect = None,
    bounds: Bounds = None,
    t0: T0 = None,
    report: Report = None,
    empty_reports: EmptyReports = False,
    debug: Debug = False,
) -> None:
    """Show what becomes of a query: its syntax tree, its algebra, or its operators."""
    from levada.cli.explain import explain

    options = {"bounds": bounds, "t0": t0, "report": report, "empty_reports": empty_reports}
    named = app_file is not None and not Path(query).exists()
    whole = assemble(_given(None if named else [query], app_file, stream, None, dialect, options))
    print(explain(whole, query if named else Path(query).stem, stage, as_json=as_json))


@app.command("version")
def _version() -> None:
    """Print the versions of Levada and of what it runs on."""
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"levada {installed_version('levada')}, Spark {installed_version('pyspark')}, Python {python}")


def _given(
    queries: Sequence[str] | None,
    app_file: Path | None,
    stream: Sequence[str] | None,
    static: Sequence[str] | None,
    dialect: str | None,
    options: Mapping[str, object],
) -> Given:
    return Given(tuple(queries or ()), app_file, tuple(stream or ()), tuple(static or ()), dialect, dict(options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code. ``arguments`` are the process's own unless given."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(given, prog_name="levada")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        return report(error, debug="--debug" in given)
    return 0
