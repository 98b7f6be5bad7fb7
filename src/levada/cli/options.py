"""The options of the commands as types for Typer: a name, a help text and a panel each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from levada.checkpoint.object_store.store_url import folder_of
from levada.connectors.config.stream_options import OPTIONS
from levada.connectors.serialization.result_formats import SHAPES, Format, meant
from levada.core.integer_options import check_partitions, parse_count
from levada.errors import UsageError, near
from levada.plan.sharing.sharing_modes import sharing_of
from levada.runtime.spark.spark_settings import check_conf

_SOURCES, _RESULTS = "Streams and data", "Results"
MEANING, RUNNING = "Meaning of queries", "Running"


def _format(word: str) -> str:
    """Checks the word of a result format. Raises ``UsageError`` with the nearest word."""
    if word not in list(Format):
        raise UsageError(f"--format: there is no format {word}.", hint=meant(word))
    return word


def _sharing(word: str) -> str:
    """Checks the word of a sharing mode. Raises ``UsageError`` with the nearest word."""
    return str(sharing_of(word))


def _many(option: str, most: str) -> Any:
    """Returns an option with an upper limit of ``most`` in an epoch."""
    return typer.Option(
        option,
        parser=lambda word: parse_count(word, option),
        metavar="N",
        help=f"Most {most} in an epoch: 5000, 100k, 2M.",
        rich_help_panel=RUNNING,
    )


def _partitions(word: str) -> int | str | None:
    """Parses a number of partitions: a number, auto or cores. Raises ``UsageError``."""
    return check_partitions(int(word) if word.isdecimal() else word)


def _shape(word: str) -> str:
    """Checks a word of ``SHAPES``, changes or state. Raises ``UsageError``."""
    if word not in SHAPES:
        raise UsageError(f"--as is changes or state, not {word}.", hint=near(word, SHAPES))
    return word


def conf_of(settings: list[str] | None) -> dict[str, str] | None:
    """Returns settings of Spark by name, from ``KEY=VALUE``. Raises ``UsageError``."""
    pairs = [setting.partition("=") for setting in settings or ()]
    if wrong := next((name for name, sign, _ in pairs if not sign), None):
        raise UsageError(f"--spark-conf is KEY=VALUE, not {wrong}.")
    return check_conf({name: value for name, _, value in pairs}) or None


def context_files(declarations: list[str] | None) -> dict[str, str] | None:
    """Returns the files of JSON-LD contexts, from ``URL=FILE``. Raises ``UsageError``."""
    pairs = [declaration.rpartition("=") for declaration in declarations or ()]
    if wrong := next((file for url, _, file in pairs if not url), None):
        raise UsageError(f"--context is URL=FILE, not {wrong}.")
    return {url: os.path.expanduser(file) for url, _, file in pairs} or None


Queries = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="QUERY...",
        show_default=False,
        help="Query files; a query is called after its file.",
    ),
]
AppFile = Annotated[
    Path | None,
    typer.Option(
        "--app", metavar="APP.yaml", help="A whole application as YAML.", rich_help_panel=_SOURCES
    ),
]
Streams = Annotated[
    list[str] | None,
    typer.Option(
        "--stream",
        metavar="NAME=PATH[,key=value...]",
        rich_help_panel=_SOURCES,
        help="A stream: a file, a folder that may grow, or a pattern. NAME is its IRI, or a word: "
        f"the stream in CQL and every IRI that ends in /word or #word. Keys: {', '.join(OPTIONS)}; "
        "levada help streams tells of each. Write <IRI>=PATH if the IRI holds an = sign.",
    ),
]
Static = Annotated[
    list[str] | None,
    typer.Option(
        "--static",
        metavar="PATH[,key=value...]",
        rich_help_panel=_SOURCES,
        help="Static RDF: N-Triples, N-Quads, Turtle, TriG, RDF/XML, JSON-LD, Jelly, also .gz and "
        ".zst. Keys: graph=IRI, format=WORD; with reload=true a file is read anew whenever it "
        "changes.",
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME=PATH[,key=value...]",
        rich_help_panel=_SOURCES,
        help="A static table, for CQL and SPARQL: CSV, NDJSON, JSON, Parquet, or "
        "postgresql://USER@HOST/DATABASE#TABLE. It is read anew whenever it changes. Keys: schema, "
        "format, separator, every (how often it is looked at), password.",
    ),
]
Dialect = Annotated[
    Literal["rspql", "cqels", "cqels2", "csparql", "sparqlstream", "cql", "stream"] | None,
    typer.Option(
        help="The language of the query files; else by their ending, or by the text.",
        rich_help_panel=MEANING,
    ),
]
Bounds = Annotated[
    Literal["[)", "(]"] | None,
    typer.Option(
        help="Which end of a closing window belongs to it. Default: [)".replace("[", r"\["),
        rich_help_panel=MEANING,
    ),
]
T0 = Annotated[
    str | None,
    typer.Option(
        "--t0",
        metavar="TIME",
        help="Where windows start: ISO or ms; else 1970.",
        rich_help_panel=MEANING,
    ),
]
Report = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY",
        help="When queries report: close, change, periodic:1m; also with +nonempty; nonempty.",
        rich_help_panel=MEANING,
    ),
]
EmptyReports = Annotated[
    bool,
    typer.Option(
        "--empty-reports", help="Also report where all windows are empty.", rich_help_panel=MEANING
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The last instant at which queries report: ISO or ms. Then they leave.",
        rich_help_panel=MEANING,
    ),
]
Lifetime = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="How long queries live, from where they begin: 1h. Then they leave.",
        rich_help_panel=MEANING,
    ),
]
Entailment = Annotated[
    Literal["none", "rdfs", "owl"] | None,
    typer.Option(
        help="Which triples a window or graph entails beside its own (default none).",
        rich_help_panel=MEANING,
    ),
]
OntologyFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--ontology",
        metavar="FILE",
        help="What entailment goes by; else the schema triples of --static.",
        rich_help_panel=MEANING,
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
Out = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|-", help="A folder for results, or - (default).", rich_help_panel=_RESULTS
    ),
]
ResultFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        parser=_format,
        metavar="WORD",
        help=f"How results are written: {', '.join(Format)} (default ndjson).",
        rich_help_panel=_RESULTS,
    ),
]
Terms = Annotated[
    bool,
    typer.Option(
        "--terms",
        help="Parquet and Arrow with N-Triples texts in place of values.",
        rich_help_panel=_RESULTS,
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as",
        parser=_shape,
        metavar="changes|state",
        help="With --out DIR: a relation's changes (default), or a file of its present rows.",
        rich_help_panel=_RESULTS,
    ),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "--to",
        metavar="QUERY=URL[,key=value...]",
        help="Take a query's reports to kafka://HOST:PORT/TOPIC, postgresql://HOST/DATABASE or "
        "delta://PATH, each once; with --checkpoint.",
        rich_help_panel=_RESULTS,
    ),
]
Roll = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Hold results back so long for fuller files; else each epoch has its own.",
        rich_help_panel=_RESULTS,
    ),
]
LettersTo = Annotated[
    str | None,
    typer.Option(
        metavar="URL[,key=value...]",
        help="Send late elements and dead letters there, too: kafka://HOST:PORT/TOPIC or "
        "postgresql://USER@HOST/DATABASE.",
        rich_help_panel=_RESULTS,
    ),
]
SummaryFile = Annotated[
    str | None,
    typer.Option(
        "--summary", metavar="FILE", help="Write the end summary as JSON.", rich_help_panel=_RESULTS
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Replace results of another run in --out.", rich_help_panel=_RESULTS
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Where state lives, to go on later: a folder, or s3://BUCKET/PREFIX; else temporary.",
        rich_help_panel=RUNNING,
    ),
]
CheckpointMode = Annotated[
    str | None,
    typer.Option(
        "--checkpoint-mode",
        metavar="owner|group|all",
        help="Who may look into the checkpoint's folder; a new one is its owner's alone.",
        rich_help_panel=RUNNING,
    ),
]
KeepResults = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="AGE|SIZE|REPORTS",
        help="How long results stay in the checkpoint for other processes, such as 1h,256MB.",
        rich_help_panel=RUNNING,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark's master; none: without Spark, in this process; else embedded.",
        rich_help_panel=RUNNING,
    ),
]
SparkConf = Annotated[
    list[str] | None,
    typer.Option(
        "--spark-conf",
        metavar="KEY=VALUE",
        help="A setting of Spark, such as spark.executor.memory=4g or spark.ui.enabled=true.",
        rich_help_panel=RUNNING,
    ),
]
Contexts = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        metavar="URL=FILE",
        help="The file of a JSON-LD context, or a folder for a URL that ends in /.",
        rich_help_panel=RUNNING,
    ),
]
Epoch = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Least time between the starts of two epochs, 0: at once (default: by their cost; 1s "
        "with --out DIR, a quarter of --delay).",
        rich_help_panel=RUNNING,
    ),
]
EpochRows = Annotated[int | None, _many("--epoch-rows", "elements")]
Delay = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Within which results are to come, such as 250ms: epochs are as large as lets them.",
        rich_help_panel=RUNNING,
    ),
]
MaxRows = Annotated[int | None, _many("--max-rows", "rows of an operator")]
MaxFuture = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="How far ahead of the clock event times may be, such as 1h (else a day): those of "
        "more are dead letters. An option of a stream, max_future=, wins.",
        rich_help_panel=RUNNING,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory that a task may have of its own, such as 512MB: more stays in files.",
        rich_help_panel=RUNNING,
    ),
]
Limits = Annotated[
    str | None,
    typer.Option(
        metavar="WORD=N[,..]",
        help="A query may have: solutions, bytes, reports, kept, made, state, rate, texts, cpu",
        rich_help_panel=RUNNING,
    ),
]
Sample = Annotated[
    str,
    typer.Option(
        "--sample",
        metavar="N",
        help="How many elements are measured: 5000, 100k, 2M. They are read four times.",
    ),
]
Partitions = Annotated[
    str | None,
    typer.Option(
        "--partitions",
        parser=_partitions,
        metavar="N|auto|cores",
        help="Into how many parts state is divided, from here on; auto: as many as epochs take "
        "least over, up to the cores.",
        rich_help_panel=RUNNING,
    ),
]
SharingMode = Annotated[
    str | None,
    typer.Option(
        "--sharing",
        parser=_sharing,
        metavar="relax|exact|off",
        help="What queries share: equal operators, and joins that differ in constants, conditions "
        "or windows; equal operators alone; nothing but the intake. Default: relax, or exact with "
        "a limit on rows of state.",
        rich_help_panel=RUNNING,
    ),
]
Once = Annotated[
    bool,
    typer.Option(
        "--once",
        help="Read what is there, then end. With --checkpoint the windows stay open for the next "
        "run, else they close.",
        rich_help_panel=RUNNING,
    ),
]
Close = Annotated[
    bool,
    typer.Option(
        "--close",
        help="Read what is there, then end the streams for good: all windows close and report.",
        rich_help_panel=RUNNING,
    ),
]
KeepOpen = Annotated[
    bool,
    typer.Option(
        "--keep-open",
        help="With --once and without --checkpoint: leave the windows open, so that nothing "
        "unfinished is reported.",
        rich_help_panel=RUNNING,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="A column or a pattern that has matched nothing is an error at the end.",
        rich_help_panel=RUNNING,
    ),
]
AcceptChanges = Annotated[
    bool,
    typer.Option(
        "--accept-changes",
        help="Go on though options of streams changed the meaning of what windows hold.",
        rich_help_panel=RUNNING,
    ),
]
Standby = Annotated[
    bool,
    typer.Option(
        "--standby",
        help="Wait, and go on when the engine on the checkpoint falls silent.",
        rich_help_panel=RUNNING,
    ),
]
Lease = Annotated[
    str | None,
    typer.Option(
        "--lease",
        metavar="DURATION",
        help="With --standby: for how long it must be silent (default 10s).",
        rich_help_panel=RUNNING,
    ),
]
ShowProgress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        envvar="LEVADA_PROGRESS",
        help="Show progress, or be quiet; else a line now and then.",
        rich_help_panel=RUNNING,
    ),
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Results as a live table.", rich_help_panel=_RESULTS)
]
Times = Annotated[
    Literal["iso", "ms"] | None,
    typer.Option(
        "--times",
        help="How times of reports are shown on standard output (default: iso on a terminal and "
        "with --watch, else ms).",
        rich_help_panel=_RESULTS,
    ),
]
Stage = Annotated[
    Literal["ast", "algebra", "optimized", "physical", "topology"],
    typer.Option(
        help="How far to go: a query's tree, algebra, algebra after the rules, operators; or the "
        "topology that all given queries share."
    ),
]
Steps = Annotated[
    bool, typer.Option("--steps", help="Show each rule of the optimizer, its time and its result.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Also patterns, costs, placement and other internals.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllLines = Annotated[
    bool,
    typer.Option("--all", help="All lines; of more than 8 queries 20 lines are shown otherwise."),
]
CheckpointFolder = Annotated[
    Path,
    typer.Argument(metavar="CHECKPOINT", help="What a run had as --checkpoint.", parser=folder_of),
]
BackupFolder = Annotated[
    Path, typer.Argument(metavar="DESTINATION", help="A folder that is empty or missing.")
]
TableFile = Annotated[Path, typer.Argument(metavar="FILE", help="A CSV or NDJSON file.")]
CaseFolder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A case, or a folder with cases below it.")
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Also write the outcomes as JUnit's XML."),
]
UpdateExpected = Annotated[
    bool, typer.Option("--update", help="Write the results in place of the expected ones.")
]
MappingFile = Annotated[Path, typer.Argument(metavar="MAPPING", help="An RML mapping.")]
MappingBase = Annotated[
    str,
    typer.Option(
        "--base",
        metavar="IRI",
        help="The base of relative IRIs, unless the mapping has rml:baseIRI; else "
        "http://example.com/.",
        show_default=False,
    ),
]
AllowedFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow",
        metavar="FOLDER",
        help="A folder outside of the mapping's whose files it may read; repeatable.",
        show_default=False,
    ),
]
Topic = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC",
        help="streams, formats, dialects, windows, or a command.",
        show_default=False,
    ),
]
AsMapping = Annotated[
    bool, typer.Option("--mapping", help="Print a mapping file, by which the rows are RDF.")
]
SampleIterator = Annotated[
    str,
    typer.Option(
        "--iterator",
        metavar="PATH",
        help="JSON: the path of an array, such as items[*], whose elements are the rows.",
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option(
        "--keep",
        metavar="DIR",
        help="Leave the N-Triples, the queries and an app file in this new folder.",
    ),
]
