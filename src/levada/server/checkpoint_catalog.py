"""The queries and streams of a checkpoint: the texts of queries, the streams' configurations, and
the names that a new text can use.

All of it comes from files that the engine writes with each plan. They are read again when the plan
or the static data change.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import xxhash

from levada.checkpoint.epoch_context import Setup, load_setup
from levada.checkpoint.verify import SUSPENDED
from levada.connectors.config.stream_config import StreamConfig
from levada.core.checkpoint_files import facts_of
from levada.core.frozen import frozen
from levada.core.query_model import Form
from levada.engine.name_resolution import NameScope
from levada.engine.ontology import Ontology
from levada.engine.query_pipeline import prepare
from levada.engine.query_request import QueryRequest
from levada.engine.registry import Registry
from levada.engine.suspended_queries import read_suspended
from levada.errors import LevadaError
from levada.plan.execution.plan import QueryPlan
from levada.plan.logical.nodes import Query
from levada.plan.topology.catalog_file import read_catalog, read_queries
from levada.plan.topology.topology import Topology

SETTLED = 2.0  # s: two changes within it may leave a folder with the same time
MAX_MAKER_QUERIES = 2000  # queries whose streams a new text may read
LONG_TEXT_CHARACTERS = 4096
TRANSLATION = 5.0  # s of CPU for these queries; a new text cannot read the streams of the rest


@frozen
class Text:
    """A query as it was registered. ``etag``: a hash of text, dialect and options. ``since``: the
    first plan version with the query; 0 if it is in no plan now. ``suspended``: the reason, or "".
    """

    name: str
    dialect: str
    text: str
    options: str
    suspended: str = ""
    since: int = 0

    @property
    def etag(self) -> str:
        """Returns a tag that differs for another query under the same name."""
        said = f"{self.dialect}\n{self.options}\n{self.text}"
        return f'"{xxhash.xxh3_64_hexdigest(said.encode())}"'

    def is_as(self, asked: QueryRequest) -> bool:
        """Returns whether a request asks for this very query. A request without an entailment
        regime takes the engine's.
        """
        said, there = str(asked.options), self.options
        if asked.options.entailment is None:
            said, there = (each.rpartition(", entailment=")[0] for each in (said, there))
        return (self.dialect, self.text, there) == (asked.spoken, asked.text, said)


@frozen
class CheckpointView:
    """The queries and streams of a checkpoint at one time. ``plans``: the queries of the newest
    plan. ``catalog``: the file of that plan, None before the first.
    """

    texts: Mapping[str, Text]
    plans: Mapping[str, QueryPlan]
    streams: Mapping[str, StreamConfig]
    setup: Setup
    catalog: Path | None = None


class Facts:
    """The reader of a checkpoint's queries and streams, which keeps the last view."""

    def __init__(self, root: Path) -> None:
        self._root, self._id = root, facts_of(root).id
        self._lock = threading.Lock()
        self._seen: object = None
        self._stamp: object = None
        self._since = self._looked = 0.0
        self._now = CheckpointView({}, {}, {}, Setup([], []))
        self._known: NameScope | None = None
        self._topology: Topology | None = None
        self._algebras: dict[Text, Query] = {}

    def now(self) -> CheckpointView:
        """Returns the current queries and streams. Raises ``CheckpointError``."""
        with self._lock:
            self._refresh()
            return self._now

    def topology(self) -> Topology | None:
        """Returns the shared operators of the newest plan, None before the first. Raises
        ``CheckpointError``.
        """
        with self._lock:
            self._refresh()
            if self._topology is None and self._now.catalog is not None:
                self._topology = read_catalog(self._now.catalog)[0]
            return self._topology

    def since(self, name: str) -> int | None:
        """Returns the first plan version with the query of this name, None without such a query."""
        return _since(self.now().plans, name) or None

    def name_scope(self) -> NameScope:
        """Returns the names that a new text can use. Callers may only add stream names of a text to
        it.
        """
        with self._lock:
            self._refresh()
            if self._known is None:
                self._known = _name_scope(self._now, self._algebras)
            return self._known.apart()

    def _is_unchanged(self) -> bool:
        """Returns whether the files are those of the last read. The times of their folders must be
        equal and must have been stable for ``SETTLED`` seconds at that read.
        """
        stamp = _stamp(self._root / "plans"), _stamp(self._root / SUSPENDED)
        if stamp != self._stamp:
            self._stamp, self._since = stamp, time.monotonic()
        return self._looked - self._since > SETTLED

    def _refresh(self) -> None:
        if not self._is_unchanged():
            began = time.monotonic()
            self._read()
            self._looked = began

    def _read(self) -> None:
        folder = self._root / "plans"
        catalog = max(folder.glob("[0-9]*.catalog"), key=_version, default=None)
        setups = sorted(folder.glob("setup-*"), key=_mtime_ns)
        suspended = read_suspended(self._root)
        seen = (
            catalog,
            setups,
            catalog and _mtime_ns(catalog),
            {n: s.reason for n, s in suspended.items()},
        )
        if seen == self._seen:
            return
        setup = load_setup(str(setups[-1])) if setups else Setup([], [])
        plans: Mapping[str, QueryPlan] = {}
        texts = {}
        if catalog is not None:
            plans, identities = read_queries(catalog)
            texts = {
                name: text_of(name, said, since=_since(plans, name))
                for name, said in identities.items()
            }
        for name, suspension in suspended.items():
            texts[name] = text_of(name, suspension.identity, suspension.reason)
        self._now = CheckpointView(texts, plans, {c.name: c for c in setup.streams}, setup, catalog)
        self._known, self._topology, self._seen = None, None, seen


def text_of(name: str, identity: str, suspended: str = "", *, since: int = 0) -> Text:
    """Parses a registered query from its ``identity``, the text that identifies it at a restart."""
    dialect, options, text = identity.split("\n", 2) if identity else ("", "", "")
    if "entailment=None" not in options and "Regime.NONE" not in options:
        text = text.rpartition("\n")[0]  # the last line is the query's meaning
    return Text(name, dialect, text, options, suspended, since)


def _since(plans: Mapping[str, QueryPlan], name: str) -> int:
    return plans[name].since if name in plans else 0


def _name_scope(now: CheckpointView, algebras: dict[Text, Query]) -> NameScope:
    """Builds the names that a new text can use. ``algebras``: translated queries of the last call,
    which are updated.
    """
    registry = Registry()
    for config in now.streams.values():
        registry.add_stream(config)
    registry.name_static(now.setup.static)
    known = registry.known
    known.regions = None  # the engine checks regions
    known.ontology = Ontology(now.setup.static)
    before = algebras.copy()
    algebras.clear()
    ends = time.process_time() + TRANSLATION
    for text in _makers_first(now) if len(now.texts) <= MAX_MAKER_QUERIES else ():
        if len(text.text) > LONG_TEXT_CHARACTERS and not _makes_stream(now, text):
            continue  # only messages would name it
        with suppress(LevadaError):
            if text not in before and time.process_time() > ends:
                continue
            asked = QueryRequest(text.text, text.name, text.dialect)
            algebras[text] = before.get(text) or prepare(asked, known).algebra
            known.add_query(text.name, algebras[text])
    return known


def _makers_first(now: CheckpointView) -> list[Text]:
    """Returns the queries, those that make a stream first."""
    return sorted(now.texts.values(), key=lambda text: not _makes_stream(now, text))


def _makes_stream(now: CheckpointView, text: Text) -> bool:
    """Returns whether a query makes a stream."""
    plan = now.plans.get(text.name)
    return plan is not None and plan.form is Form.CONSTRUCT


def _version(path: Path) -> int:
    return int(path.name.split("-", 1)[0])


def _stamp(path: Path) -> tuple[int, int, int]:
    with suppress(OSError):
        file_stat = os.stat(path)  # for each request that is pushed: half of Path's time
        return file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns
    return 0, 0, 0


def _mtime_ns(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0
