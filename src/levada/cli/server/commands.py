"""The commands of the server, with their options. Their implementation is imported when they
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from levada.cli import options as o
from levada.cli.app_builder import CommandArguments, assemble
from levada.cli.common_options import takes_queries

_SERVER = "Server"
Listen = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT", help="Where to listen; port 0: any.", rich_help_panel=_SERVER
    ),
]
TokensFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Who may do what (levada token); needed where others reach the server.",
        rich_help_panel=_SERVER,
    ),
]
ReadOnly = Annotated[
    Path | None,
    typer.Option(
        "--read-only",
        metavar="CHECKPOINT",
        help="Serve a checkpoint, with whatever engine on it, and ask nothing of it.",
        rich_help_panel=_SERVER,
    ),
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ORIGIN",
        help="Whose web pages may read results and events: https://HOST[:PORT], or *; repeatable.",
        rich_help_panel=_SERVER,
    ),
]
Roles = Annotated[
    str, typer.Option(metavar="ROLE[,ROLE]", help="Some of read, push, register, admin.")
]
TokenLimits = Annotated[
    str,
    typer.Option(
        "--limits",
        metavar="WORD=N[,WORD=N]",
        help="What it may have: queries, streams, connections; body, text, seconds of a request; "
        "solutions, bytes, reports, kept, rate of each query that it adds.",
    ),
]
TokenFile = Annotated[Path, typer.Argument(metavar="FILE", help="The file of tokens.")]
TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is.")]

_EXAMPLES = """[bold]Examples[/bold]

levada serve --app weather.yaml --checkpoint state

levada serve --read-only state --listen 127.0.0.1:8791
"""


@takes_queries
def _serve(
    arguments: CommandArguments,
    *,
    read_only: ReadOnly = None,
    listen: Listen = "127.0.0.1:8790",
    tokens: TokensFile = None,
    allow_origin: AllowOrigin = None,
    keep: o.KeepResults = None,
    out: o.Out = None,
    result_format: o.ResultFormat = None,
    overwrite: o.Overwrite = False,
    checkpoint: o.Checkpoint = None,
    checkpoint_mode: o.CheckpointMode = None,
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
    accept_changes: o.AcceptChanges = False,
    progress: o.ShowProgress = None,
) -> None:
    """Run an application as a server: over HTTP others see its queries and results, add queries,
    and push rows.
    """
    from levada.cli.server.serve import Wish, serve, serve_only

    options = {
        "out": out,
        "format": result_format,
        "checkpoint": checkpoint,
        "checkpoint_mode": checkpoint_mode,
        "master": master,
        "spark_conf": o.conf_of(spark_conf),
        "contexts": o.context_files(context),
        "epoch": epoch,
        "epoch_rows": epoch_rows,
        "delay": delay,
        "max_rows": max_rows,
        "max_future": max_future,
        "limits": limits,
        "memory": memory,
        "partitions": partitions,
    }
    if read_only is not None:
        more = {
            "keep": keep,
            "overwrite": overwrite,
            "accept_changes": accept_changes,
            "progress": progress,
        }
        beside = _names(arguments, {**options, **more})
        serve_only(read_only, listen, tokens, origins=allow_origin or (), beside=beside)
        return
    app = assemble(replace(arguments, options={**arguments.options, **options}))
    wish = Wish(
        listen, tokens, keep or "1h,1GB", overwrite=overwrite, progress=progress,
        accept_changes=accept_changes, origins=tuple(allow_origin or ()),
    )  # fmt: skip
    if code := serve(app, wish):
        raise typer.Exit(code)


def _names(arguments: CommandArguments, engine_options: Mapping[str, object]) -> list[str]:
    """Returns the arguments and options that only an engine can use."""
    said = {"app": arguments.app, "stream": arguments.streams, "static": arguments.static}
    said["table"] = arguments.tables
    every = {**said, "dialect": arguments.dialect, **arguments.options, **engine_options}
    names = [f"--{name.replace('_', '-')}" for name, value in every.items() if value]
    return [*arguments.queries, *names]


def _token(
    file: TokenFile,
    name: TokenName,
    *,
    roles: Roles = "read",
    limits: TokenLimits = "",
    debug: o.Debug = False,
) -> None:
    """Make a token for the server and print it once; the file stores its hash."""
    from levada.server.security.tokens import add_token

    print(add_token(file, name, roles, limits))


def add_commands(app: typer.Typer) -> None:
    """Adds these commands to the command line."""
    app.command("serve", epilog=_EXAMPLES)(_serve)
    example = (
        "[bold]Examples[/bold]\n\nlevada token tokens grafana --roles read\n\n"
        "levada token tokens anna --roles register --limits queries=10,bytes=5MB"
    )
    app.command("token", epilog=example)(_token)
