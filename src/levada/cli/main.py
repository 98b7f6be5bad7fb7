"""``levada``: the commands and their options. Exit codes: 0 done, 1 failure, 2 wrong use or query,
3 nothing of some stream was read, 4 another engine took over the checkpoint.

Each command turns its arguments into values such as ``CommandArguments`` and ``Mode`` and calls the
module of its name.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer
from rich.console import Console

from levada.cli import options as o
from levada.cli.app_builder import CommandArguments, assemble, choose_queries, document_of
from levada.cli.common_options import takes_queries
from levada.cli.errors import report, warn
from levada.cli.machine.commands import machines
from levada.cli.placement import commands as placing
from levada.cli.placement import options as w
from levada.cli.remote.commands import Live, To, add_commands
from levada.cli.server import commands as serving
from levada.errors import UsageError

app = typer.Typer(
    name="levada",
    help="Continuous SPARQL and CQL queries over linked-data streams, on Apache Spark.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_RUN_EXAMPLES = """[bold]Examples[/bold]

levada run hot.rq --stream temp=temp.nt --once

levada run pairs.cql --stream "A=a.csv,schema=k:integer;v:double" \
--stream "B=b.csv,schema=k:integer;w:double" --out results

levada run --app weather.yaml --checkpoint state --summary summary.json
"""

_EXPLAIN_EXAMPLES = """[bold]Examples[/bold]

levada explain hot.rq --stage algebra

levada explain --app weather.yaml --stage topology
"""

_PLACE_EXAMPLES = """[bold]Examples[/bold]

levada place run.json --machines 12 --bound 2.4% --out placement.json

levada place jan.json feb.json mar.json --machines 12 --learn 2
"""


@app.command("run", epilog=_RUN_EXAMPLES)
@takes_queries
def _run(
    arguments: CommandArguments,
    *,
    out: o.Out = None,
    result_format: o.ResultFormat = None,
    roll: o.Roll = None,
    terms: o.Terms = False,
    shape: o.As = None,
    to: o.Outputs = None,
    letters_to: o.LettersTo = None,
    summary: o.SummaryFile = None,
    overwrite: o.Overwrite = False,
    checkpoint: o.Checkpoint = None,
    checkpoint_mode: o.CheckpointMode = None,
    keep: o.KeepResults = None,
    master: o.Master = None,
    spark_conf: o.SparkConf = None,
    context: o.Contexts = None,
    epoch: o.Epoch = None,
    epoch_rows: o.EpochRows = None,
    delay: o.Delay = None,
    max_rows: o.MaxRows = None,
    max_future: o.MaxFuture = None,
    limits: o.Limits = None,
    memory: o.Memory = None,
    partitions: o.Partitions = None,
    slice_: w.Slice = None,
    place: w.Place = None,
    balance: w.Balance = None,
    sharing: o.SharingMode = None,
    join: w.Join = None,
    regions: w.Regions = None,
    once: o.Once = False,
    close: o.Close = False,
    keep_open: o.KeepOpen = False,
    accept_changes: o.AcceptChanges = False,
    strict: o.Strict = False,
    standby: o.Standby = False,
    lease: o.Lease = None,
    progress: o.ShowProgress = None,
    watch: o.Watch = False,
    times: o.Times = None,
) -> None:
    """Run queries over streams, until Ctrl-C or, with --once, to the end of the available data.

    Results go to standard output (unless every query has a --to) or --out, all else to standard
    error.
    """
    from levada.cli.run import Mode, run

    options = {
        "out": out, "format": result_format, "roll": roll, "terms": terms, "as": shape,
        "checkpoint": checkpoint, "master": master, "epoch": epoch, "epoch_rows": epoch_rows,
        "delay": delay, "max_rows": max_rows, "limits": limits, "memory": memory,
        "max_future": max_future, "contexts": o.context_files(context),
        "partitions": partitions, "slice": slice_, "place": place, "balance": balance,
        "sharing": sharing, "join": join, "regions": regions, "letters_to": letters_to,
        "summary": summary, "checkpoint_mode": checkpoint_mode, "spark_conf": o.conf_of(spark_conf),
    }  # fmt: skip
    summary_ = run(
        assemble(replace(arguments, options={**arguments.options, **options}, to=tuple(to or ()))),
        Mode(
            once or close, keep_open, overwrite, progress, close=close, watch=watch, times=times,
            keep=keep or "", standby=standby, lease=lease, accept_changes=accept_changes,
            strict=strict,
        ),
    )  # fmt: skip
    if summary_.exit_code:
        raise typer.Exit(summary_.exit_code)


@app.command("check", epilog="[bold]Example[/bold]\n\nlevada check hot.rq storms.rq")
@takes_queries
def _check(arguments: CommandArguments, *, debug: bool) -> None:
    """Parse and plan queries, without running them; CQL needs its streams' schemas."""
    from levada.cli.check import check

    raise typer.Exit(check(assemble(arguments), debug=debug))


@app.command("explain", epilog=_EXPLAIN_EXAMPLES)
@takes_queries
def _explain(
    arguments: CommandArguments,
    *,
    stage: o.Stage = "physical",
    sharing: o.SharingMode = None,
    join: w.Join = None,
    steps: o.Steps = False,
    placement: w.PlacementOf = None,
    shared: w.SharedOf = None,
    picture: w.Picture = None,
    whole: o.AllLines = False,
    as_json: o.AsJson = False,
) -> None:
    """Show queries as syntax trees, algebra or operators, or the topology that they share.

    With --app a query is a file, or the name of a query of the application; without a name all are
    shown.
    """
    from levada.cli.explain import (
        explain,
        explain_document,
        explain_placement,
        explain_shared,
        explain_sharing,
    )
    from levada.cli.explain_steps import explain_steps

    if placement is not None:
        print(explain_placement(placement, as_json=as_json, picture=picture))
        return
    if shared is not None:
        print(explain_shared(shared, as_json=as_json, whole=whole))
        return
    if picture is not None:
        raise UsageError("--picture draws a placement.", hint="Say --placement CHECKPOINT, too.")
    if not (sharing or steps) and (document := document_of(arguments)) is not None:
        print(explain_document(document, stage, as_json=as_json, whole=whole))
        return
    arguments = replace(arguments, options={**arguments.options, "join": join})
    chosen, names = choose_queries(arguments)
    if sharing:
        print(explain_sharing(chosen, names, sharing, as_json=as_json, whole=whole))
        return
    if steps:
        for name in names:
            shown = explain(chosen, [name], "optimized", as_json=False)
            print(explain_steps(partial(next, shown), as_json=as_json))
        return
    for text in explain(chosen, names, stage, as_json=as_json, whole=whole):
        print(text)


@app.command(
    "profile",
    epilog="[bold]Example[/bold]\n\nlevada profile hot.rq --stream temp=temp.nt --sample 50k",
)
@takes_queries
def _profile(
    arguments: CommandArguments, *, sample: o.Sample = "100k", as_json: o.AsJson = False
) -> None:
    """Measure what each operator of queries costs on a sample of their streams: time an epoch and a
    row, selectivity and bytes between operators. No results are written.
    """
    from levada.cli.profile.show_profile import show

    show(assemble(arguments), sample, as_json=as_json)


@app.command("shell", epilog="[bold]Example[/bold]\n\nlevada shell --stream temp=temp.nt")
@takes_queries
def _shell(arguments: CommandArguments) -> None:
    """Type queries over streams and see their answers. QUERY files and queries of --app are
    available by their names.
    """
    from levada.cli.shell.start import shell

    if code := shell(assemble(arguments), arguments.dialect):
        raise typer.Exit(code)


@app.command("sample", epilog="[bold]Example[/bold]\n\nlevada sample trips.csv")
def _sample(
    file: o.TableFile,
    mapping: o.AsMapping = False,
    iterator: o.SampleIterator = "",
    debug: o.Debug = False,
) -> None:
    """Look at a CSV, NDJSON or JSON file and print the --stream option that reads it: types,
    separator, the column of times and their format.
    """
    from levada.cli.help.sample_table import sample

    sample(file, mapping=mapping, iterator=iterator)


@app.command("map", epilog="[bold]Example[/bold]\n\nlevada map rooms.ttl > rooms.nq")
def _map(
    mapping: o.MappingFile,
    base: o.MappingBase = "",
    allow: o.AllowedFolders = None,
    debug: o.Debug = False,
) -> None:
    """Write the N-Quads of an RML mapping over the files that it names. The exit code is 1 for
    data that cannot be mapped, and 2 for a wrong mapping.
    """
    from levada.cli.map_command import map_to_stdout

    if code := map_to_stdout(mapping, base, allow or []):
        raise typer.Exit(code)


@app.command("test", epilog="[bold]Example[/bold]\n\nlevada test cases --junit report.xml")
def _test(
    folder: o.CaseFolder,
    junit: o.Junit = None,
    *,
    update: o.UpdateExpected = False,
    debug: o.Debug = False,
) -> None:
    """Run queries over small inputs, without Spark, and compare their results with files. The exit
    code is 1 if a case fails.
    """
    from levada.cli.case_folders import run_cases

    if code := run_cases(folder, junit, update=update):
        raise typer.Exit(code)


@app.command("status", epilog="[bold]Example[/bold]\n\nlevada status state --json")
def _status(
    checkpoint: o.CheckpointFolder,
    as_json: o.AsJson = False,
    live: Live = False,
    verbose: o.Verbose = False,
    debug: o.Debug = False,
) -> None:
    """Show the progress on a checkpoint: what is read, how far, what waits, and why a query has no
    result.
    """
    from levada.cli.status import status

    if live:
        from levada.cli.remote.watch_status import watch

        watch(checkpoint, as_json=as_json, verbose=verbose)
    else:
        status(checkpoint, as_json=as_json, verbose=verbose)


@app.command("verify", epilog="[bold]Example[/bold]\n\nlevada verify state")
def _verify(checkpoint: o.CheckpointFolder, debug: o.Debug = False) -> None:
    """Check every file of a checkpoint against its hashes. The exit code is 0 if all files are
    undamaged, else 1.
    """
    from levada.cli.status import verify

    verify(checkpoint)


@app.command("backup", epilog="[bold]Example[/bold]\n\nlevada backup state /backups/monday")
def _backup(
    checkpoint: o.CheckpointFolder, destination: o.BackupFolder, debug: o.Debug = False
) -> None:
    """Copy a checkpoint, also while an engine runs on it, and verify the copy. A run can start on
    the copy; the same command brings it back to another place.
    """
    from levada.cli.status import backup

    backup(checkpoint, destination)


@app.command("rollback", epilog="[bold]Example[/bold]\n\nlevada rollback state")
def _rollback(checkpoint: o.CheckpointFolder, to: To = None, debug: o.Debug = False) -> None:
    """Go back to the manifest before the last one, if its state is damaged, or open streams again
    that --close has ended. No engine may run meanwhile. After damage the next run repeats the last
    epoch: nothing is published twice, and the results are the same.
    """
    from levada.cli.status import rollback

    rollback(checkpoint, to)


add_commands(app)
serving.add_commands(app)


@app.command("warm")
def _warm(debug: o.Debug = False) -> None:
    """Compile all kernels for this machine, so that no run waits for it. It takes half a minute to
    two minutes, once for each version.
    """
    from levada.cli.progress import compile_kernels

    compile_kernels(Console(stderr=True))


app.command("place", epilog=_PLACE_EXAMPLES)(placing.place)
app.add_typer(placing.graph)


@app.command("demo", epilog="[bold]Examples[/bold]\n\nlevada demo\n\nlevada demo --keep nyc")
def _demo(keep: o.Keep = None, master: o.Master = None, debug: o.Debug = False) -> None:
    """Run three queries over a year of New York's flights and weather as RDF streams; needs
    levada\\[demo].
    """
    from levada.cli.demo_command import Wish, demo

    demo(Wish(keep=keep, master=master))


@app.command("help", epilog="[bold]Example[/bold]\n\nlevada help streams")
def _help(topic: o.Topic = None, debug: o.Debug = False) -> None:
    """Show help on streams (their options), formats, dialects, windows or functions, or on a
    command.
    """
    from levada.cli.help.help_topics import TOPICS, tell

    if topic is None:
        app(["--help"], prog_name="levada")
    elif topic not in TOPICS and topic in {each.name for each in app.registered_commands}:
        app([topic, "--help"], prog_name="levada")
    else:
        tell(topic)


def _tell_version(wanted: bool) -> None:
    if wanted:
        _version()
        raise typer.Exit


@app.callback()
def _levada(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_tell_version,
            is_eager=True,
            help="Print the versions of Levada and of what it runs on.",
        ),
    ] = False,
) -> None:
    """Continuous SPARQL and CQL queries over linked-data streams, on Apache Spark."""


app.add_typer(machines, name="machine")


@app.command("version")
def _version() -> None:
    """Print the versions of Levada and of what it runs on."""
    from levada import __version__
    from levada.core.distribution import installed_version

    python = ".".join(map(str, sys.version_info[:3]))
    spark = installed_version("pyspark")
    print(f"levada {__version__}, {f'Spark {spark}' if spark else 'no Spark'}, Python {python}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code. ``arguments`` None: those of the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = warn
    command = typer.main.get_command(app)
    if not {"--help", "-h"}.isdisjoint(words) or not words:
        from levada.cli.help.help_layout import lay_out

        lay_out(command)
    try:
        command(words, prog_name="levada")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        return report(error, debug="--debug" in words)
    return 0
