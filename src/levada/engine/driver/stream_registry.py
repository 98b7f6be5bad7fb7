"""The streams of a running engine: those that its program declared before the start, and those
added since (docs/decisions/0043-streams-come-and-go.md).

    restore -> at the start: brings back streams that were added to a running engine; removed ones
               stay out
    add, remove -> by the program, or by a request: durable when they return
    follow  -> between epochs: gives the current streams to the catalog and the sources
    settle  -> after the first epoch without a stream: deletes its spool

The streams of an epoch are in its plan and its setup, which the intention names. The ledger has
those of the next plan. The spool of a removed stream stays until an epoch without it is committed,
and a later stream of the name has another folder.
"""

from __future__ import annotations

import base64
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xxhash

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import SETUPS, Setup, encode_setup
from levada.checkpoint.request_files import Named, RemovedStream, read_ledger, write_ledger
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.file_listing import check_regular
from levada.connectors.sources.split_enumerator import SplitEnumerator, source_of
from levada.connectors.spool.python_spool import PythonSpool
from levada.engine.registry import Registry
from levada.engine.restart_checks import columns_of
from levada.errors import UsageError
from levada.plan.encoding.plan_codec import decode
from levada.runtime.driver.query_catalog import Catalog
from levada.runtime.driver.source_coordinator import SourceCoordinator
from levada.runtime.driver.spool_registry import Spools, StreamingFrame, StreamSource


class Streams:
    """The streams of one engine, and the ledger of its checkpoint. ``once``: no streams may be
    added.
    """

    def __init__(
        self, checkpoint: Checkpoint, registry: Registry, spools: Spools, *, once: bool
    ) -> None:
        self.ledger = read_ledger(checkpoint.root)
        self._checkpoint, self._root, self._once = checkpoint, checkpoint.root, once
        self._registry, self._spools = registry, spools
        self._sources: dict[
            str, SplitEnumerator
        ] = {}  # of the streams that were added since the last plan
        self._known: set[str] = set()  # streams of the last plan
        self._again: set[str] = set()  # restored, and not yet declared by this run's program
        self._first = True
        self._leaving: dict[str, list[str]] = {}  # folders of streams that the next epoch lacks
        self._since: int | None = None  # from this plan on

    def _write(self) -> None:
        write_ledger(self._root, self.ledger)

    # -- at the start --

    def restore(self) -> None:
        """Restores the streams of earlier runs. A declaration of the program wins."""
        before = msgspec.json.encode(self.ledger)
        last = self._checkpoint.last
        setup = self._checkpoint.setup(last.setup) if last is not None and last.setup else None
        live = {c.name: _folder(c) for c in setup.streams} if setup is not None else {}
        with self._registry.lock:
            self._sweep(set(live.values()))
            self._remove_dropped()
            self._restore_added()
            self._open_spools(live)
        if msgspec.json.encode(self.ledger) != before:
            self._write()

    def _sweep(self, live: set[str]) -> None:
        """Deletes spools of earlier runs that no epoch reads again."""
        for name, left in list(self.ledger.removed_streams.items()):
            kept = [folder for folder in left.folders if folder in live]
            for folder in set(left.folders) - set(kept):
                shutil.rmtree(self._root / "spool" / folder, ignore_errors=True)
            self.ledger.removed_streams[name] = RemovedStream(left.declaration, kept)

    def _remove_dropped(self) -> None:
        """Removes streams that the program declares again unchanged after a request removed
        them.
        """
        registry, ledger = self._registry, self.ledger
        for name, left in list(ledger.removed_streams.items()):
            if name not in registry.declared:
                continue
            if left.declaration == _identity(registry.declared[name]):
                try:
                    registry.remove_stream(name)
                except UsageError:
                    pass  # a query reads it now
                else:
                    self._spools.remove_stream(name)
                    message = (
                        f"The stream {name} was taken away while an engine ran, and is not read."
                    )
                    warnings.warn(f"{message} levada add-stream takes it in again.", stacklevel=2)
                    continue
            del ledger.removed_streams[name]

    def _restore_added(self) -> None:
        """Restores the streams that were added while an engine ran, unless the program declares
        them differently.
        """
        declared, kept = self._registry.declared, []
        for named in self.ledger.added_streams:
            config = _decode_declared(named)
            if named.name not in declared:
                self._restore_one(named, config)
            elif _identity(declared[named.name]) != _identity(config):
                message = (
                    f"The stream {named.name} is declared otherwise than when it was added: that "
                    "declaration holds."
                )
                warnings.warn(message, stacklevel=2)
                continue
            else:
                named = msgspec.structs.replace(named, owner="")  # it belongs to the program
            kept.append(named)
        self.ledger.added_streams = kept

    def _restore_one(self, named: Named, declared: StreamConfig) -> None:
        if named.rows:
            config = self._spools.rows(declared, tuple(named.columns), self._root)
        else:
            config = self._spools.config_of(named.name, declared, self._root, {})
        before = self._checkpoint if config.undecided else None
        self._registry.add_stream(columns_of(config, before), declared)
        self._again.add(named.name)

    def _open_spools(self, live: Mapping[str, str]) -> None:
        """Opens spools in their former folders. The first stream of a name has a folder of that
        name.
        """
        folders = {name: folder for name, folder in live.items() if folder}
        folders |= {named.name: named.folder for named in self.ledger.added_streams}
        for name, config in list(self._registry.streams.items()):
            spool, folder = self._spools.spool_of(name), folders.get(name, "")
            if spool is not None and folder and folder != _folder(config):
                spool.open_in(self._root / "spool" / folder)
                self._registry.streams[name] = replace(config, path=spool.config.path)

    @property
    def strangers(self) -> frozenset[str]:
        """Returns the streams whose names probably belonged to other streams in the last
        manifest.
        """
        last = self._checkpoint.last
        plan = 0 if last is None else last.plan
        return frozenset(
            named.name for named in self.ledger.added_streams if plan <= named.previous_plan
        )

    # -- while it runs --

    def add(
        self,
        name: str,
        source: StreamSource,
        options: Mapping[str, Any],
        *,
        asked: bool = False,
        owner: str = "",
    ) -> None:
        """Adds a stream from the next epoch on. Queries may name it at once. ``asked``: a request
        adds it, makes it durable, and sets its ``owner``. Raises ``UsageError``, ``SourceError``.
        """
        self._check_goes_on()
        if isinstance(source, StreamingFrame):
            message = f"The stream {name} is a DataFrame, which is named before the engine starts."
            raise UsageError(message)
        if isinstance(source, str | Path):
            source = StreamConfig.from_options(name, source, **options)
        with self._registry.lock:
            if name in self._again:
                self._restore_declared(name, source, options)
                return
            self._registry.check_free(name)
            self._add(name, source, options, asked=asked, owner=owner)

    def _check_goes_on(self) -> None:
        if self._once:
            raise UsageError("The engine reads what was there when it started.")
        if self._checkpoint.last is not None and self._checkpoint.last.has_ended:
            raise UsageError("The streams have ended; no report would see another one.")

    def _add(
        self,
        name: str,
        source: StreamSource,
        options: Mapping[str, Any],
        *,
        asked: bool,
        owner: str,
    ) -> None:
        config = self._spools.config_of(name, source, self._root, options)
        spool = self._spools.spool_of(name)
        folder = "" if spool is None else self._free_folder(_folder(config))
        rows = not isinstance(source, StreamConfig)
        declared = source if isinstance(source, StreamConfig) else replace(config, path="")
        try:
            if spool is not None:
                spool.open_in(self._root / "spool" / folder)
                spool.start(once=False)
                config = spool.config
            check_regular(name, config.path)
            config = columns_of(config, None)
            stream_source = source_of(config, self._root / "scratch")
            stream_source.discover()
            columns = list(spool.columns) if isinstance(spool, PythonSpool) else []
            last = self._checkpoint.last
            before = 0 if last is None else last.plan
            named = Named(name, _encode(declared), before, rows, columns, folder, owner)
            self._note(named, durably=not asked)
        except BaseException:
            self._spools.remove_stream(name)
            if folder:
                shutil.rmtree(self._root / "spool" / folder, ignore_errors=True)
            raise
        self._sources[name] = stream_source
        self._registry.add_stream(config, declared)

    def _note(self, named: Named, *, durably: bool) -> None:
        """Records a stream in the ledger."""
        ledger, before = self.ledger, (self.ledger.added_streams, dict(self.ledger.removed_streams))
        ledger.added_streams = [*ledger.added_streams, named]
        if (left := ledger.removed_streams.get(named.name)) is not None:
            ledger.removed_streams[named.name] = RemovedStream("", left.folders)
        try:
            if durably:
                self._write()
        except BaseException:
            ledger.added_streams, ledger.removed_streams = before
            raise

    def _restore_declared(
        self, name: str, source: StreamSource, options: Mapping[str, Any]
    ) -> None:
        """Compares a stream of the program with the stream of the name from an earlier run. Raises
        ``UsageError`` if they differ.
        """
        declared, there = self._registry.declared[name], self._registry.streams[name]
        if isinstance(source, StreamConfig):
            same = _identity(source) == _identity(declared)
        else:
            self._spools.remove_stream(name)
            asked = self._spools.config_of(name, source, self._root, options)
            same = _identity(replace(asked, path="")) == _identity(declared)
            if not same:
                self._spools.remove_stream(name)
                named = next(n for n in self.ledger.added_streams if n.name == name)
                self._spools.rows(declared, tuple(named.columns), self._root)
            spool = self._spools.spool_of(name)
            assert spool is not None, "it has been made"
            spool.open_in(Path(there.path).parent)
            spool.start(once=False)
        if not same:
            raise UsageError(
                f"The stream {name} is there from a run before, and was declared otherwise.",
                hint="Take it away first, or name it as it was.",
            )
        self._again.discard(name)

    def _free_folder(self, folder: str) -> str:
        """Returns an unused folder for a new spool. An earlier stream of the name may have left
        files.
        """
        taken = {name for left in self.ledger.removed_streams.values() for name in left.folders}
        number, candidate = 0, folder
        while candidate in taken or (self._root / "spool" / candidate).exists():
            number += 1
            candidate = f"{folder}-{number}"
        return candidate

    def remove(self, name: str, *, asked: bool = False) -> None:
        """Removes a stream. ``asked``: a request removes it, and an unchanged declaration of the
        program does not restore it. Raises ``UsageError`` if queries read it.
        """
        with self._registry.lock:
            config, ledger = self._registry.streams.get(name), self.ledger
            declared = self._registry.declared.get(name)
            self._registry.remove_stream(name)
            assert config is not None and declared is not None, "it was there"
            others = [named for named in ledger.added_streams if named.name != name]
            was_added = len(others) < len(ledger.added_streams)
            before = ledger.removed_streams.get(name, RemovedStream())
            folder = [] if self._spools.spool_of(name) is None else [_folder(config)]
            said = _identity(declared) if asked and not was_added else ""
            ledger.added_streams = others
            ledger.removed_streams[name] = RemovedStream(said, [*before.folders, *folder])
            if not asked:  # else the request is written with it
                self._write()
            self._spools.remove_stream(name)
            self._sources.pop(name, None)
            self._again.discard(name)

    # -- between epochs --

    def follow(self, catalog: Catalog, sourcing: SourceCoordinator, plan: int) -> bool:
        """Updates the catalog and the sources under the registry's lock. Returns whether there were
        changes. ``plan``: the plan of the last epoch.
        """
        registry = self._registry
        if not (self._first or registry.removed_streams or registry.streams.keys() != self._known):
            return False
        left, registry.removed_streams = registry.removed_streams, set()
        configs = list(registry.streams.values())
        sourcing.follow(configs, left, self._sources)
        if self._first:
            left = left | {
                named.name for named in self.ledger.added_streams if plan <= named.previous_plan
            }
        catalog.name_streams(configs, left)
        self._known, self._sources, self._first = set(registry.streams), {}, False
        self._leaving = {name: gone.folders for name, gone in self.ledger.removed_streams.items()}
        self._since = None
        return True

    def note_plan(self, plan: int) -> None:
        """Records the plan that has the current streams."""
        if self._since is None:
            self._since = plan

    def settle(self, plan: int) -> None:
        """Removes spools of streams that no later plan has, after an epoch of this plan was
        published.
        """
        if self._since is None or plan < self._since or not self._leaving:
            return
        with self._registry.lock:
            for name, folders in self._leaving.items():
                for folder in folders:
                    shutil.rmtree(self._root / "spool" / folder, ignore_errors=True)
                left = self.ledger.removed_streams.get(name)
                if left is None or name in self._registry.removed_streams:
                    continue
                rest = [folder for folder in left.folders if folder not in folders]
                self.ledger.removed_streams[name] = RemovedStream(left.declaration, rest)
                if not rest and not left.declaration:
                    del self.ledger.removed_streams[name]
            self._leaving = {}
            self._write()


def _folder(config: StreamConfig) -> str:
    """Returns the folder of a spool's files."""
    path = Path(config.path)
    return path.parent.name if config.settled and path.name == "data" else ""


def _identity(config: StreamConfig) -> str:
    """Returns a text that is equal for equal declarations."""
    return xxhash.xxh3_64_hexdigest(repr(config).encode())


def _encode(config: StreamConfig) -> str:
    return base64.b64encode(encode_setup(Setup([config], []))).decode()


def _decode_declared(named: Named) -> StreamConfig:
    data = np.frombuffer(base64.b64decode(named.config), np.uint8)
    return decode(data, Setup, SETUPS).streams[0]
