"""What other processes ask of an engine that runs, as files of its checkpoint
(docs/decisions/0021-requests-are-files.md).

    requests/ID.json     a request, there whole or not at all; ids sort by when they were asked
    requests/ID.nt       the N-Triples that it brings for a static graph, sealed, there before it
    requests/ID.answer   what became of it
    requested.json       the ledger: the queries that requests added and dropped, where the reports
                         of those go, the streams that came and went while an engine ran, the
                         tokens of the server that added them, and what became of the requests whose
                         files may still be there

The ledger is one file, replaced as a whole: a request's effect and its id become durable together,
before its own file goes. So it is done once, or refused once, whoever dies when. Who holds the
checkpoint's lock may write the ledger; without an engine, a request is withdrawn under that lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import filelock
import msgspec

from levada.core.checksummed_files import read_sealed, seal, unseal
from levada.core.durable_files import make_folder, replace_file, write_once
from levada.core.event_time import MAX
from levada.core.msgspec_warmup import prepare_structs
from levada.errors import CheckpointError, unreadable
from levada.plan.logical.query_options import QueryOptions

T = TypeVar("T")
FOLDER, LEDGER, PRESENCE = "requests", "requested.json", "engine.json"
SERVER = "server.json"
MOST_ANSWERS = 1000  # that nobody has fetched


class OutputSpec(msgspec.Struct, frozen=True):
    """Where a query's reports are to go: a URL, and its options by their words."""

    url: str
    said: dict[str, Any] = {}


class QuerySpec(msgspec.Struct, frozen=True):
    """A query that is to be added; ``said``: its options by their words; ``to``: its outputs;
    ``limits``: what it may have, where that is less than others may. ``owner``: the token of the
    server that adds it ("": none). ``tree``: that of a long text, if it has been parsed.
    """

    name: str
    text: str
    dialect: str | None = None
    said: dict[str, Any] = {}
    to: list[OutputSpec] = []
    limits: str = ""
    owner: str = ""
    tree: bytes = b""


class NewStream(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A stream that is to be added: where it is, and its options by their words; its ``owner``."""

    name: str
    path: str
    said: dict[str, Any] = {}
    owner: str = ""


class Content(msgspec.Struct, frozen=True):
    """Other content for a static graph (None: the default graph): what ``brought`` holds."""

    graph: str | None


class Request(msgspec.Struct, frozen=True):
    """Queries to be added, all or none; or the name of one to be dropped; or both: one that others
    take the place of; or other content for a static graph; or a stream that is to be added; or the
    name of one that is to be taken away. ``only``: what goes is this owner's, or the request is
    refused ("": whoever's it is).
    """

    id: str
    add: list[QuerySpec] = []
    drop: str = ""
    content: Content | None = None
    stream: NewStream | None = None
    leave: str = ""
    only: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What became of a request. ``told``: sentences if it was done; else ``refused`` says why, of
    the query that ``notes`` names, and ``exit_code`` is that of such an error.
    """

    told: list[str] = []
    refused: str = ""
    notes: list[str] = []
    exit_code: int = 0
    added: list[str] = []
    errno: int = 0


class Added(msgspec.Struct, frozen=True):
    """A query that a request added, as it is registered. ``before``: the last plan version of which
    a query of the name is another one.
    """

    name: str
    text: str
    dialect: str
    options: QueryOptions
    before: int
    limits: str = ""
    owner: str = ""


class Sent(msgspec.Struct, frozen=True):
    """An output that a request gave to a query of this name: that of the epochs after ``begins``,
    up to ``ends``, after which it was dropped.
    """

    query: str
    to: OutputSpec
    begins: int
    ends: int = MAX


class StaticReplacement(msgspec.Struct, frozen=True):
    """What a request gave a static graph: the name of the copy. ``before``: the names of what the
    program gives it.
    """

    graph: str | None
    copy: str
    before: list[str]


class Named(msgspec.Struct, frozen=True):
    """A stream that came while an engine ran. ``config``: it, as it was declared (base64 of a
    setup's bytes); ``rows``: they come from Python, with these ``columns``. ``folder``: of its
    spool ("": it has none). ``before``: the last plan version in which a stream of the name is
    another one.
    """

    name: str
    config: str
    before: int
    rows: bool = False
    columns: list[str] = []
    folder: str = ""
    owner: str = ""


class RemovedStream(msgspec.Struct, frozen=True):
    """Streams of a name that were taken away. ``declared``: what the program says of the one that
    is not to come again ("": it may). ``folders``: of spools that no epoch will read again, once
    one without the stream is committed.
    """

    declared: str = ""
    folders: list[str] = []


class EndedQuery(msgspec.Struct, frozen=True):
    """A query that has ended, as it said when it came: a hash of its ``identity``, and ``until``
    when it reported (ms).
    """

    identity: str
    until: int


class Ledger(msgspec.Struct):
    """What has changed while engines ran: ``dropped`` has the identities of queries by name,
    ``left`` the streams that were taken away, ``outputs`` those that have not had all, ``over`` the
    queries of the program that have ended by themselves.
    """

    added: list[Added] = []
    dropped: dict[str, str] = {}
    given: list[StaticReplacement] = []
    streams: list[Named] = []
    left: dict[str, RemovedStream] = {}
    done: dict[str, Answer] = {}
    outputs: list[Sent] = []
    over: dict[str, EndedQuery] = {}


class _Owned(msgspec.Struct, frozen=True):
    name: str
    owner: str = ""


class Owners(msgspec.Struct, frozen=True):
    """What the ledger says of owners: the queries that requests added, and the streams."""

    added: list[_Owned] = []
    streams: list[_Owned] = []


class Presence(msgspec.Struct, frozen=True):
    """Which process runs the engine of a checkpoint; ``began`` in ms."""

    pid: int
    host: str
    began: int


class ServerReport(msgspec.Struct, frozen=True):
    """What the server of a checkpoint reports to others who look at it: how many lines of its file
    of tokens are not taken.
    """

    token_faults: int = 0


def read_ledger(root: Path) -> Ledger:
    """The ledger of a checkpoint. Raises ``CheckpointError``."""
    return _read(root, Ledger)


def read_owners(root: Path) -> Owners:
    """The owners in the ledger of a checkpoint. Raises ``CheckpointError``."""
    return _read(root, Owners)


def _read(root: Path, kind: type[T]) -> T:
    path = root / LEDGER
    if not path.exists():
        return kind()
    try:
        return msgspec.json.decode(read_sealed(path), type=kind)
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error


def write_ledger(root: Path, ledger: Ledger) -> None:
    """Makes the ledger durable. Raises ``CheckpointError``."""
    replace_file(root / LEDGER, seal(msgspec.json.encode(ledger)))


def place(root: Path, request: Request) -> None:
    """Puts a request where the engine finds it. Raises ``CheckpointError``."""
    _make_folder(root)
    write_once(root / FOLDER / f"{request.id}.json", seal(msgspec.json.encode(request)))


def _make_folder(root: Path) -> None:
    try:
        make_folder(root / FOLDER)
    except OSError as error:
        raise CheckpointError(
            f"Nothing can be asked of the engine on {root}: {error.strerror}.",
            hint="Who may write to the checkpoint's folder may ask.",
        ) from error


def content_path(root: Path, name: str) -> Path:
    """Where the N-Triples of a request are."""
    return root / FOLDER / f"{name}.nt"


def place_content(root: Path, request: Request, lines: bytes) -> None:
    """Puts a request and its N-Triples where the engine finds them. Raises ``CheckpointError``."""
    _make_folder(root)
    write_once(content_path(root, request.id), seal(lines))
    place(root, request)


def list_requests(root: Path) -> list[str]:
    """The ids of the requests that are there, in their order."""
    try:
        names = (root / FOLDER).iterdir()
        return sorted(p.stem for p in names if p.suffix == ".json" and not p.name.startswith("."))
    except OSError:
        return []  # nobody has asked yet


def read_request(root: Path, name: str) -> Request | None:
    """A request; None if its file is none."""
    with suppress(OSError, msgspec.MsgspecError):
        data = unseal((root / FOLDER / f"{name}.json").read_bytes())
        return None if data is None else msgspec.json.decode(data, type=Request)
    return None


def put_answer(root: Path, name: str, answer: Answer) -> None:
    """Answers a request, which is then no more."""
    folder = root / FOLDER
    replace_file(folder / f"{name}.answer", seal(msgspec.json.encode(answer)))
    (folder / f"{name}.json").unlink(missing_ok=True)
    content_path(root, name).unlink(missing_ok=True)
    for path in sorted(folder.glob("*.answer"))[:-MOST_ANSWERS]:
        path.unlink(missing_ok=True)


def take_answer(root: Path, name: str) -> Answer | None:
    """The answer to a request, which is taken away; None if there is none yet."""
    path = root / FOLDER / f"{name}.answer"
    if not path.exists():
        return None
    answer = msgspec.json.decode(read_sealed(path), type=Answer)
    path.unlink(missing_ok=True)
    return answer


def withdraw(root: Path, name: str) -> Answer | None:
    """Takes a request back, under the checkpoint's lock; its answer, if it has been done."""
    answer = take_answer(root, name) or read_ledger(root).done.get(name)
    if answer is None:
        (root / FOLDER / f"{name}.json").unlink(missing_ok=True)
        content_path(root, name).unlink(missing_ok=True)
    return answer


@contextmanager
def without_engine(root: Path) -> Iterator[bool]:
    """Holds the checkpoint's lock, so that no engine can start; False if one runs."""
    lock = filelock.FileLock(str(root / "lock"))
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        yield False
        return
    except OSError:
        yield True  # a folder that may only be read, or is gone
        return
    try:
        yield True
    finally:
        lock.release()


def engine_runs(root: Path) -> bool:
    """Whether an engine runs on a checkpoint now."""
    with without_engine(root) as alone:
        return not alone


def mark_presence(root: Path, presence: Presence) -> None:
    """Says which process runs the engine."""
    replace_file(root / PRESENCE, seal(msgspec.json.encode(presence)))


def read_presence(root: Path) -> Presence | None:
    """Which process ran the last engine; None if that is not known."""
    with suppress(CheckpointError, msgspec.MsgspecError):
        return msgspec.json.decode(read_sealed(root / PRESENCE), type=Presence)
    return None


def write_server_report(root: Path, report: ServerReport) -> None:
    """Says how the server is. Raises ``CheckpointError``."""
    replace_file(root / SERVER, seal(msgspec.json.encode(report)))


def read_server_report(root: Path) -> ServerReport:
    """How the last server was; as a sound one if that is not known."""
    with suppress(CheckpointError, msgspec.MsgspecError):
        return msgspec.json.decode(read_sealed(root / SERVER), type=ServerReport)
    return ServerReport()


prepare_structs(Request, Answer, Ledger, Owners, Presence, ServerReport)
