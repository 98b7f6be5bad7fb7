"""The exchange of requests with a running engine, as files of its checkpoint
(docs/decisions/0021-requests-are-files.md).

    requests/ID.json     a request, written atomically; ids sort by the time of the request
    requests/ID.nt       its N-Triples for a static graph, sealed, written before it
    requests/ID.answer   its answer
    requested.json       the ledger: the queries that requests added and dropped, the outputs of
                         these, the streams that were added and removed while an engine ran, the
                         tokens of the server that added them, and the answers to requests whose
                         files may still exist

The ledger is one file, replaced as a whole. The effect of a request and its id become durable
together, before its own file is deleted. So a request is done once, or refused once, whichever
process crashes. The owner of the checkpoint's lock may write the ledger. Without an engine, a
request is withdrawn under that lock.
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
MOST_ANSWERS = 1000  # that were not fetched


class OutputSpec(msgspec.Struct, frozen=True):
    """The output of a query's reports: a URL, and its options by their words."""

    url: str
    options: dict[str, Any] = {}


class QuerySpec(msgspec.Struct, frozen=True):
    """A query to add. ``options``: its options by their words. ``outputs``: its outputs.
    ``limits``: its limits, if they are lower than those of others. ``owner``: the token of the
    server that adds it ("": none). ``tree``: the parse tree of a long text, if it has been parsed.
    """

    name: str
    text: str
    dialect: str | None = None
    options: dict[str, Any] = {}
    outputs: list[OutputSpec] = []
    limits: str = ""
    owner: str = ""
    tree: bytes = b""


class NewStream(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A stream to add: its place, its options by their words, and its ``owner``."""

    name: str
    path: str
    options: dict[str, Any] = {}
    owner: str = ""


class Content(msgspec.Struct, frozen=True):
    """New content for a static graph (None: the default graph), at the path ``content_path``."""

    graph: str | None


class Request(msgspec.Struct, frozen=True):
    """A request: queries to add, all or none; the name of a query to drop; both, to replace a
    query; new content for a static graph; a stream to add; or the name of a stream to remove.
    ``required_owner``: the request is refused unless this owner has the dropped query or stream
    ("": any owner).
    """

    id: str
    add: list[QuerySpec] = []
    drop: str = ""
    content: Content | None = None
    add_stream: NewStream | None = None
    remove_stream: str = ""
    required_owner: str = ""


class Answer(msgspec.Struct, frozen=True):
    """The answer to a request. ``messages``: the messages if it was done. Else ``refusal`` gives
    the reason, for the query that ``notes`` names, and ``exit_code`` is that of such an error.
    """

    messages: list[str] = []
    refusal: str = ""
    notes: list[str] = []
    exit_code: int = 0
    added: list[str] = []
    errno: int = 0


class Added(msgspec.Struct, frozen=True):
    """A query that a request added, as registered. ``previous_plan``: the last plan version with
    another query of the name.
    """

    name: str
    text: str
    dialect: str
    options: QueryOptions
    previous_plan: int
    limits: str = ""
    owner: str = ""


class Sent(msgspec.Struct, frozen=True):
    """An output that a request gave to a query of this name, for the epochs after ``after_epoch``
    up to ``last_epoch``, after which it was dropped.
    """

    query: str
    output: OutputSpec
    after_epoch: int
    last_epoch: int = MAX


class StaticReplacement(msgspec.Struct, frozen=True):
    """The content that a request gave a static graph: the name of the copy. ``previous_files``: the
    names of the program's content.
    """

    graph: str | None
    copy: str
    previous_files: list[str]


class Named(msgspec.Struct, frozen=True):
    """A stream that was added while an engine ran. ``config``: its declaration (base64 of a setup's
    bytes). ``rows``: its rows come from Python, with these ``columns``. ``folder``: of its spool
    ("": none). ``previous_plan``: the last plan version with another stream of the name.
    """

    name: str
    config: str
    previous_plan: int
    rows: bool = False
    columns: list[str] = []
    folder: str = ""
    owner: str = ""


class RemovedStream(msgspec.Struct, frozen=True):
    """Removed streams of a name. ``declaration``: the program's declaration of the one that must
    not be added again ("": it may). ``folders``: of spools that no epoch will read again, once an
    epoch without the stream is committed.
    """

    declaration: str = ""
    folders: list[str] = []


class EndedQuery(msgspec.Struct, frozen=True):
    """A query that has ended at its own end: a hash of its ``identity``, and ``until`` when it
    reported (ms).
    """

    identity: str
    until: int


class Ledger(msgspec.Struct):
    """The changes while engines ran: ``dropped_queries`` has the identities of queries by name,
    ``removed_streams`` the removed streams, ``outputs`` those with undelivered results,
    ``ended_queries`` the program's queries that have ended by themselves.
    """

    added_queries: list[Added] = []
    dropped_queries: dict[str, str] = {}
    static_replacements: list[StaticReplacement] = []
    added_streams: list[Named] = []
    removed_streams: dict[str, RemovedStream] = {}
    answers: dict[str, Answer] = {}
    outputs: list[Sent] = []
    ended_queries: dict[str, EndedQuery] = {}


class _Owned(msgspec.Struct, frozen=True):
    name: str
    owner: str = ""


class Owners(msgspec.Struct, frozen=True):
    """The owners in the ledger: of the queries that requests added, and of the streams."""

    added_queries: list[_Owned] = []
    added_streams: list[_Owned] = []


class Presence(msgspec.Struct, frozen=True):
    """The process that runs the engine of a checkpoint; ``started_ms`` in ms."""

    pid: int
    host: str
    started_ms: int


class ServerReport(msgspec.Struct, frozen=True):
    """The report of a checkpoint's server to other processes: the number of invalid lines in its
    token file.
    """

    token_faults: int = 0


def read_ledger(root: Path) -> Ledger:
    """Reads the ledger of a checkpoint. Raises ``CheckpointError``."""
    return _read(root, Ledger)


def read_owners(root: Path) -> Owners:
    """Reads the owners in the ledger of a checkpoint. Raises ``CheckpointError``."""
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
    """Writes the ledger durably. Raises ``CheckpointError``."""
    replace_file(root / LEDGER, seal(msgspec.json.encode(ledger)))


def place(root: Path, request: Request) -> None:
    """Writes a request for the engine. Raises ``CheckpointError``."""
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
    """Returns the path of the N-Triples of a request."""
    return root / FOLDER / f"{name}.nt"


def place_content(root: Path, request: Request, lines: bytes) -> None:
    """Writes a request and its N-Triples for the engine. Raises ``CheckpointError``."""
    _make_folder(root)
    write_once(content_path(root, request.id), seal(lines))
    place(root, request)


def list_requests(root: Path) -> list[str]:
    """Returns the ids of the present requests, in order."""
    try:
        names = (root / FOLDER).iterdir()
        return sorted(p.stem for p in names if p.suffix == ".json" and not p.name.startswith("."))
    except OSError:
        return []  # there are no requests yet


def read_request(root: Path, name: str) -> Request | None:
    """Reads a request; None if its file is not one."""
    with suppress(OSError, msgspec.MsgspecError):
        data = unseal((root / FOLDER / f"{name}.json").read_bytes())
        return None if data is None else msgspec.json.decode(data, type=Request)
    return None


def put_answer(root: Path, name: str, answer: Answer) -> None:
    """Answers a request and deletes it."""
    folder = root / FOLDER
    replace_file(folder / f"{name}.answer", seal(msgspec.json.encode(answer)))
    (folder / f"{name}.json").unlink(missing_ok=True)
    content_path(root, name).unlink(missing_ok=True)
    for path in sorted(folder.glob("*.answer"))[:-MOST_ANSWERS]:
        path.unlink(missing_ok=True)


def take_answer(root: Path, name: str) -> Answer | None:
    """Reads and deletes the answer to a request; None if there is none yet."""
    path = root / FOLDER / f"{name}.answer"
    if not path.exists():
        return None
    answer = msgspec.json.decode(read_sealed(path), type=Answer)
    path.unlink(missing_ok=True)
    return answer


def withdraw(root: Path, name: str) -> Answer | None:
    """Withdraws a request, under the checkpoint's lock. Returns its answer if it has been done."""
    answer = take_answer(root, name) or read_ledger(root).answers.get(name)
    if answer is None:
        (root / FOLDER / f"{name}.json").unlink(missing_ok=True)
        content_path(root, name).unlink(missing_ok=True)
    return answer


@contextmanager
def without_engine(root: Path) -> Iterator[bool]:
    """Holds the checkpoint's lock, so that no engine can start; yields False if one runs."""
    lock = filelock.FileLock(str(root / "lock"))
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        yield False
        return
    except OSError:
        yield True  # the folder is read-only, or deleted
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
    """Writes the process that runs the engine."""
    replace_file(root / PRESENCE, seal(msgspec.json.encode(presence)))


def read_presence(root: Path) -> Presence | None:
    """Returns the process that ran the last engine; None if it is unknown."""
    with suppress(CheckpointError, msgspec.MsgspecError):
        return msgspec.json.decode(read_sealed(root / PRESENCE), type=Presence)
    return None


def write_server_report(root: Path, report: ServerReport) -> None:
    """Writes the report of the server. Raises ``CheckpointError``."""
    replace_file(root / SERVER, seal(msgspec.json.encode(report)))


def read_server_report(root: Path) -> ServerReport:
    """Reads the report of the last server; one without problems if it is unknown."""
    with suppress(CheckpointError, msgspec.MsgspecError):
        return msgspec.json.decode(read_sealed(root / SERVER), type=ServerReport)
    return ServerReport()


prepare_structs(Request, Answer, Ledger, Owners, Presence, ServerReport)
