"""``levada``: the commands and their options. Exit codes: 0 done, 2 a wrong use or query, 1 a
failure.

Each command turns its arguments into ``Given`` and ``Mode`` and calls the module of its name.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path

import typer

from levada.cli import options as o
from levada.cli.assemble import Given, assemble
from levada.cli.errors import report, warn

app = typer.Typer(
    name="levada",
    help="Continuous SPARQL and CQL queries over linked-data streams, on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_RUN_EXAMPLES = """[bold]Examples[/bold]

levada run hot.rq --stream temp=temp.nt --once

levada run pairs.cql --stream "A=a.csv,schema=k:integer;v:double" --stream "B=b.csv,schema=k:integer;w:double" --out results

levada run --app weather.yaml --checkpoint state --summary summary.json
"""


@app.command("run", epilog=_RUN_EXAMPLES)
def _run(
    queries: o.Queries = None,
    app_file: o.AppFile = None,
    stream: o.Streams = None,
    static: o.Static = None,
    dialect: o.Dialect = None,
    out: o.Out = None,
    result_format: o.ResultFormat = None,
    roll: o.Roll = None,
    summary: o.SummaryFile = None,
    overwrite: o.Overwrite = False,
    checkpoint: o.Checkpoint = None,
    master: o.Master = None,
    epoch: o.Epoch = None,
    epoch_rows: o.EpochRows = None,
    once: o.Once = False,
    keep_open: o.KeepOpen = False,
    progress: o.ShowProgress = None,
    bounds: o.Bounds = None,
    t0: o.T0 = None,
    report: o.Report = None,
    empty_reports: o.EmptyReports = False,
    entailment: o.Entailment = None,
    ontology: o.OntologyFiles = None,
    debug: o.Debug = False,
) -> None:
    """Run queries over streams, until Ctrl-C or, with --once, to the end of what is there.

    Results go to standard output or --out, all else to standard error.
    """
    from levada.cli.run import Mode, run

    options = {
        "out": out,
        "format": result_format,
        "roll": roll,
        "checkpoint": checkpoint,
        "master": master,
        "epoch": epoch,
        "epoch_rows": epoch_rows,
        "bounds": bounds,
        "t0": t0,
        "report": report,
        "empty_reports": empty_reports,
        "summary": summary,
        "entailment": entailment,
        "ontology": _files(ontology),
    }
    given = _given(queries, app_file, stream, static, dialect, options)
    run(
        assemble(given),
        Mode(once=once, keep_open=keep_open, overwrite=overwrite, progress=progress),
    )


@app.command("check", epilog="[bold]Example[/bold]\n\nlevada check hot.rq storms.rq")
def _check(
    queries: o.Queries = None,
    app_file: o.AppFile = None,
    stream: o.Streams = None,
    static: o.Static = None,
    dialect: o.Dialect = None,
    bounds: o.Bounds = None,
    t0: o.T0 = None,
    report: o.Report = None,
    empty_reports: o.EmptyReports = False,
    entailment: o.Entailment = None,
    ontology: o.OntologyFiles = None,
    debug: o.Debug = False,
) -> None:
    """Parse and plan queries, without running them; CQL needs its streams' schemas."""
    from levada.cli.check import check

    options = {
        "bounds": bounds,
        "t0": t0,
        "report": report,
        "empty_reports": empty_reports,
        "entailment": entailment,
        "ontology": _files(ontology),
    }
    raise typer.Exit(
        check(assemble(_given(queries, app_file, stream, static, dialect, options)), debug=debug)
    )


@app.command("explain", epilog="[bold]Example[/bold]\n\nlevada explain hot.rq --stage algebra")
def _explain(
    query: o.OneQuery,
    stage: o.Stage = "topology",
    as_json: o.AsJson = False,
    app_file: o.AppFile = None,
    stream: o.Streams = None,
    static: o.Static = None,
    dialect: o.Dialect = None,
    bounds: o.Bounds = None,
    t0: o.T0 = None,
    report: o.Report = None,
    empty_reports: o.EmptyReports = False,
    entailment: o.Entailment = None,
    ontology: o.OntologyFiles = None,
    debug: o.Debug = False,
) -> None:
    """Show what becomes of a query: its syntax tree, its algebra, or its operators."""
    from levada.cli.explain import explain

    options = {
        "bounds": bounds,
        "t0": t0,
        "report": report,
        "empty_reports": empty_reports,
        "entailment": entailment,
        "ontology": _files(ontology),
    }
    named = app_file is not None and not Path(query).exists()
    whole = assemble(_given(None if named else [query], app_file, stream, static, dialect, options))
    names = [query if named else Path(query).stem]
    if app_file is None and names[0] not in (source.name for source in whole.queries):
        names = [source.name for source in whole.queries]  # a CQL file of several queries
    for name in names:
        print(explain(whole, name, stage, as_json=as_json))


@app.command("status", epilog="[bold]Example[/bold]\n\nlevada status state --json")
def _status(
    checkpoint: o.CheckpointFolder, as_json: o.AsJson = False, debug: o.Debug = False
) -> None:
    """Show what the queries on a checkpoint have given, what they wait for, and why there may be no
    result.
    """
    from levada.cli.status import status

    status(checkpoint, as_json=as_json)


@app.command("demo", epilog="[bold]Examples[/bold]\n\nlevada demo\n\nlevada demo --keep nyc")
def _demo(keep: o.Keep = None, master: o.Master = None, debug: o.Debug = False) -> None:
    """A year of New York's flights and weather as RDF streams, and three queries over them; needs
    levada\\[demo].
    """
    from levada.cli.demo import Wish, demo

    demo(Wish(keep=keep, master=master))


@app.command("version")
def _version() -> None:
    """Print the versions of Levada and of what it runs on."""
    python = ".".join(map(str, sys.version_info[:3]))
    print(
        f"levada {installed_version('levada')}, Spark {installed_version('pyspark')}, Python {python}"
    )


def _given(
    queries: Sequence[str] | None,
    app_file: Path | None,
    stream: Sequence[str] | None,
    static: Sequence[str] | None,
    dialect: str | None,
    options: Mapping[str, object],
) -> Given:
    return Given(
        tuple(queries or ()),
        app_file,
        tuple(stream or ()),
        tuple(static or ()),
        dialect,
        dict(options),
    )


def _files(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The files of a repeated option; None if there is none."""
    return tuple(map(os.path.expanduser, given)) if given else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code. ``arguments`` are the process's own unless
    given.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = warn
    try:
        app(given, prog_name="levada")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        return report(error, debug="--debug" in given)
    return 0
