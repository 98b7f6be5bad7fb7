"""Requests of other processes to a running engine, executed between epochs
(docs/decisions/0021-requests-are-files.md).

    restore  -> at the start: brings back added queries, dropped ones stay out, and static graphs
                get the content that requests sent
    take     -> executes each new request in the registry or refuses it; the ledger records that
    answer   -> answers requests whose plan is ready, and deletes them

A request in the ledger was executed or refused by an earlier process, and is only answered. All
three run on the loop's thread. Without a request a look costs a listing of one folder, at most ten
times a second.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import xxhash
from msgspec.structs import replace

from levada.checkpoint.manifest import Manifest
from levada.checkpoint.request_files import (
    FOLDER,
    Added,
    Answer,
    EndedQuery,
    NewStream,
    OutputSpec,
    Request,
    StaticReplacement,
    content_path,
    list_requests,
    put_answer,
    read_request,
    write_ledger,
)
from levada.checkpoint.watched_folder import WatchedFolder
from levada.core.checksummed_files import read_sealed
from levada.core.count_text import count_text
from levada.core.durable_files import unwritable_error
from levada.core.event_time import MAX, MIN, instant
from levada.core.names import check_stream_name
from levada.core.query_limits import QueryLimits, check_limits
from levada.engine.background_planning import (
    MAX_BYTES,
    MAX_CPU_SECONDS,
    OutOfMemoryError,
    OutOfTimeError,
    Trial,
)
from levada.engine.delivery.delivery_manager import Requested
from levada.engine.driver.driver_inputs import Inputs
from levada.engine.driver.query_expiry import QueryExpiry
from levada.engine.driver.query_quotas import check_state
from levada.engine.driver.stream_registry import Streams
from levada.engine.query_pipeline import prepare
from levada.engine.query_request import QueryRequest
from levada.engine.registry import Registry
from levada.engine.suspended_queries import read_suspended
from levada.errors import CheckpointError, LevadaError, SourceError, UsageError, errno_of
from levada.plan.logical.query_options import options_of
from levada.plan.topology.trial_planning import too_large
from levada.runtime.publication.registered_query import Registered

LOOK = 0.1  # s between two looks
MOST_OVER = 1000  # ended queries in the ledger that were added while the engine ran


class Requests:
    """The requests to one engine, which it executes, and the engine's ledger."""

    def __init__(self, root: Path, inputs: Inputs, streams: Streams) -> None:
        self._root, self._registry, self._statics = root, inputs.registry, inputs.statics
        self._fits, self._streams, self._ledger = inputs.fits, streams, streams.ledger
        self._outputs = Requested(self._ledger, inputs.deliveries)
        self._expiry = QueryExpiry(inputs.registry)
        # the queries that the program registered before the start
        self._program_queries: frozenset[str] = frozenset()
        self._replaced: list[str] = []  # by the program's queries of the same names
        self._restored = tuple(self._ledger.added_queries)  # by this start
        self._taken: list[str] = []
        self._looked = 0.0
        self._folder, self._are_waiting = WatchedFolder(f"{self._root}/{FOLDER}"), False

    # -- at the start --

    def restore(self, *, once: bool) -> None:
        """Restores the queries as requests have left them. A query that the program declares with
        another text wins. Raises ``UsageError`` if there is nothing to read and ``once`` is set.
        """
        with self._registry.lock:
            self._program_queries = frozenset(self._registry.queries)
            self._remove_dropped()
            self._remove_ended()
            self._register_added()
        there = set(list_requests(self._root))
        self._ledger.answers = {i: a for i, a in self._ledger.answers.items() if i in there}
        if once:
            self._registry.check_work()

    def _remove_dropped(self) -> None:
        """Removes queries that the program declares again unchanged after a request dropped them.
        Drops of changed queries end.
        """
        ledger, queries = self._ledger, self._registry.queries
        kept: dict[str, str] = {}
        for name, identity in ledger.dropped_queries.items():  # readers are before their makers
            if name in queries and queries[name].identity == identity:
                try:
                    self._registry.remove(name)
                except UsageError:
                    continue  # another query reads it now
                kept[name] = identity
                message = (
                    f"The query {name} was dropped by levada drop, and is not run. "
                    "levada add takes it in again."
                )
                warnings.warn(message, stacklevel=2)
        if kept != ledger.dropped_queries:
            ledger.dropped_queries = kept
            write_ledger(self._root, ledger)

    def _remove_ended(self) -> None:
        """Removes queries that the program declares again after they had ended. A different query
        of the same name is not removed.
        """
        ledger, queries = self._ledger, self._registry.queries
        kept: dict[str, EndedQuery] = {}
        for name, over in ledger.ended_queries.items():  # readers are before their makers
            if name in queries and _identity_hash(queries[name].identity) == over.identity:
                try:
                    self._registry.remove(name)
                except UsageError:
                    continue  # another query reads it now, and it reports nothing
                kept[name] = over
        if kept != ledger.ended_queries:
            ledger.ended_queries = kept
            write_ledger(self._root, ledger)

    def _register_added(self) -> None:
        """Registers the queries that requests added. Warns about those that cannot be registered
        now, and leaves them out. Queries of the program have no owner.
        """
        queries, added = self._registry.queries, self._ledger.added_queries
        others = [a for a in added if a.name in queries and not _is_same_query(a, queries[a.name])]
        kept = [replace(a, owner="") if a.name in queries else a for a in added if a not in others]
        if kept != added:
            self._ledger.added_queries = kept
            self._replaced = [each.name for each in others]
            write_ledger(self._root, self._ledger)
        for each in self._ledger.added_queries:  # makers are before their readers
            if each.name not in queries:
                asked = QueryRequest(each.text, each.name, each.dialect, each.options)
                try:
                    (query,) = self._register([asked], self._registry)
                    query.lifetime.may_be_over = True
                except LevadaError as error:
                    message = f"The query {each.name}, which levada add added, is not run: {error}"
                    warnings.warn(message, stacklevel=2)

    def restore_static(self) -> None:
        """Restores the static graphs as requests have left them, if the program declares the same
        files as before.
        """
        self._statics.place()
        kept = []
        for replacement in self._ledger.static_replacements:
            copy = self._statics.folder / replacement.copy
            if (
                self._statics.names(replacement.graph) == replacement.previous_files
                and copy.exists()
            ):
                self._statics.replace(_lines(copy.read_bytes()), replacement.graph, None)
                kept.append(replacement)
        self._write_replacements(kept)

    def _write_replacements(self, kept: list[StaticReplacement]) -> None:
        if kept != self._ledger.static_replacements:
            self._ledger.static_replacements = kept
            write_ledger(self._root, self._ledger)

    # -- between epochs --

    def take(self, last: Manifest, *, ahead: bool = False) -> list[Request]:
        """Executes or refuses the waiting requests, durably, and removes expired queries. If
        queries are planned ``ahead``, returns the requests that add or drop queries.
        """
        with self._registry.lock:
            self._remove_expired(last)
        now = time.monotonic()
        if now - self._looked < LOOK:
            return []
        self._looked = now
        statics = self._statics  # content that the program replaced is no longer the ledger's
        with self._registry.lock:  # the program's threads write the ledger's streams
            self._write_replacements(
                [g for g in self._ledger.static_replacements if statics.names(g.graph) == [g.copy]]
            )
            self._finish_outputs(last)
            if not self._folder.may_have_changed(now) and not self._are_waiting:
                return []
            self._taken = list_requests(self._root)
            self._are_waiting = bool(self._taken)
            new = [name for name in self._taken if name not in self._ledger.answers]
            requests = {name: read_request(self._root, name) for name in new}
            there = self._registry.queries
            valid_requests = [r for r in requests.values() if ahead and r is not None]
            planned = [r for r in valid_requests if r.add or r.drop in there]
            for name, request in requests.items():
                if request not in planned:
                    self._ledger.answers[name] = self._execute(request, last)
            if len(planned) < len(new):
                self._write_ledger()
            return planned

    def _write_ledger(self) -> None:
        """Writes the ledger durably."""
        write_ledger(self._root, self._ledger)
        self._outputs.follow()

    def _remove_expired(self, last: Manifest) -> None:
        """Removes expired queries durably. They are not run when the program declares them
        again.
        """
        gone, ledger = self._expiry.end(last), self._ledger
        if not gone:
            return
        names = {query.name for query in gone}
        asked = names & {added.name for added in ledger.added_queries}
        ledger.added_queries = [added for added in ledger.added_queries if added.name not in names]
        for query in gone:
            plan = query.lifetime.query
            if query.name not in asked and plan is not None:
                ledger.ended_queries[query.name] = EndedQuery(
                    _identity_hash(query.identity), plan.until
                )
            self._outputs.end(query.name, last.epoch)
        others = [name for name in ledger.ended_queries if name not in self._program_queries]
        for name in others[: max(len(others) - MOST_OVER, 0)]:
            del ledger.ended_queries[name]
        write_ledger(self._root, ledger)
        self._outputs.follow()

    def _finish_outputs(self, last: Manifest) -> None:
        """Ends outputs with their queries, and removes them from the ledger when they have
        everything.
        """
        replaced, self._replaced = self._replaced, []
        for name in replaced:
            self._outputs.end(name, last.epoch)
        if self._outputs.settle() or replaced:
            write_ledger(self._root, self._ledger)
            self._outputs.follow()

    def _execute(self, request: Request | None, last: Manifest) -> Answer:
        try:
            if request is None:
                raise UsageError("The request cannot be read: it is cut short or altered.")
            if last.has_ended:
                raise UsageError("The streams have ended; no report would see this request.")
            self._check_owner(request)
            if request.content is not None:
                return self._replace_static(request.id, request.content.graph)
            if request.add_stream is not None:
                return self._add_stream(request.add_stream)
            if request.remove_stream:
                self._streams.remove(request.remove_stream, asked=True)
                return Answer([f"{request.remove_stream}: taken away after epoch {last.epoch:,}"])
            if request.drop and request.add:
                return self._replace(request, last)
            return self._drop(request.drop, last) if request.drop else self._add(request, last)
        except Exception as error:  # no request ends the engine
            return self._refusal(error)

    def _refusal(self, error: BaseException) -> Answer:
        """Returns the answer to a request on which the engine fails."""
        match error:
            case LevadaError():
                notes = [note for note in getattr(error, "__notes__", ()) if "\n" not in note]
                ours = errno_of(error) or -isinstance(error, CheckpointError | SourceError)
                return Answer([], str(error), notes, error.exit_code, errno=ours)
            case OSError():
                refused = str(unwritable_error(self._root, error))
                return Answer(refusal=refused, exit_code=1, errno=error.errno or -1)
            case RecursionError():
                return self._refusal(too_large(""))
            case OutOfMemoryError():
                refused = f"To plan the query takes more than {MAX_BYTES >> 20:,} MB of memory."
                return Answer(refusal=f"{refused}\nWrite a simpler text.", exit_code=2)
            case OutOfTimeError():
                refused = f"To plan the query takes more than {MAX_CPU_SECONDS:g} s of CPU time."
                return Answer(refusal=f"{refused}\nWrite a simpler text.", exit_code=2)
            case _:
                kind = type(error).__name__
                refused = f"Levada failed with {kind}: {error}. This is a fault of Levada."
                return Answer(refusal=refused, exit_code=1, errno=-1)

    def _check_owner(self, request: Request) -> None:
        """Raises ``UsageError`` if the request removes something that another token added."""
        ledger, queries, name = (
            self._ledger,
            self._registry.queries,
            request.drop or request.remove_stream,
        )
        owners = [s.owner for s in ledger.added_streams if s.name == request.remove_stream]
        if request.drop:
            added = [a for a in ledger.added_queries if a.name == name]
            owners = [
                a.owner for a in added if name not in queries or _is_same_query(a, queries[name])
            ]
        if request.required_owner and name and request.required_owner not in owners:
            raise UsageError(f"The token {request.required_owner} has not added {name}.")

    def _replace_static(self, name: str, graph: str | None) -> Answer:
        """Replaces the content of a static graph from the next epoch on."""
        path, ledger = content_path(self._root, name), self._ledger
        if not path.exists():
            raise UsageError("The request has lost what it brought.")
        lines = _lines(read_sealed(path))
        before = next(
            (g.previous_files for g in ledger.static_replacements if g.graph == graph), None
        )
        program = self._statics.names(graph) if before is None else before
        self._statics.replace(lines, graph, None)
        (copy,) = self._statics.names(graph)
        others = [
            replacement for replacement in ledger.static_replacements if replacement.graph != graph
        ]
        ledger.static_replacements = [*others, StaticReplacement(graph, copy, program)]
        which = "the default graph" if graph is None else f"<{graph}>"
        return Answer([f"{which}: {count_text(len(lines), 'triple')}, from the next epoch on"])

    def _add_stream(self, asked: NewStream) -> Answer:
        """Adds a stream from the next epoch on."""
        name = check_stream_name(asked.name)
        self._streams.add(name, asked.path, asked.options, asked=True, owner=asked.owner)
        return Answer([f"{name}: added, from the next epoch on"])

    def _add(self, request: Request, last: Manifest) -> Answer:
        return self._note_added(request, self._register_request(request, self._registry), last)

    def _register_request(self, request: Request, registry: Registry) -> list[Registered]:
        """Registers all queries of a request, or none."""
        batch = [
            QueryRequest(q.text, q.name, q.dialect, options_of(q.options)) for q in request.add
        ]
        for query in request.add:
            limits = QueryLimits.parse(check_limits(query.limits))
            check_state(limits, registry.planning.sharing)
        return self._register(batch, registry, {query.name: query.outputs for query in request.add})

    def _note_added(
        self, request: Request, registered: Sequence[Registered], last: Manifest
    ) -> Answer:
        """Records the registered queries of a request in the ledger."""
        said = {query.name: query for query in request.add}
        for query in registered:
            self._outputs.add(query, said[query.name].outputs, last)
        # an earlier query of a name may have stayed there, since a start could not run it
        others = [added for added in self._ledger.added_queries if added.name not in said]
        self._ledger.added_queries = others + [
            Added(
                r.name, r.text, r.dialect, r.options, last.plan, check_limits(said[r.name].limits),
                said[r.name].owner,
            )
            for r in _makers_first(registered, self._registry)
        ]  # fmt: skip
        for query in registered:
            self._ledger.dropped_queries.pop(query.name, None)
        return Answer(added=[query.name for query in registered])

    def _replace(self, request: Request, last: Manifest) -> Answer:
        """Drops a query and adds others, or leaves everything unchanged."""
        old = self._registry.get(request.drop)
        ledger = self._ledger
        before = list(ledger.added_queries), dict(ledger.dropped_queries)
        outputs, went = self._outputs.restore_point, set(self._registry.dropped)
        self._drop(request.drop, last)
        try:
            return self._add(request, last)
        except BaseException:
            ledger.added_queries, ledger.dropped_queries = before
            self._outputs.restore_point = outputs
            self._registry.bring_back(old)
            self._registry.dropped |= went
            raise

    def _register(
        self,
        batch: Sequence[QueryRequest],
        registry: Registry,
        to: Mapping[str, Sequence[OutputSpec]] | None = None,
    ) -> list[Registered]:
        """Registers queries that can be planned and written, all or none. ``to``: the outputs by
        query.
        """
        dropped = set(registry.dropped)
        registered = registry.add(batch)
        try:
            for query in registered:
                self._fits(query, len(registry.queries))
                self._outputs.check(query, (to or {}).get(query.name, ()))
                if not registry.is_trial:
                    asked = QueryRequest(query.text, query.name, query.dialect, query.options)
                    _ = prepare(asked, registry.known).physical
        except BaseException:
            for query in reversed(_makers_first(registered, registry)):
                registry.remove(query.name)
            registry.dropped &= dropped
            raise
        return registered

    def _drop(self, name: str, last: Manifest) -> Answer:
        """Removes a query, or the record of a query that this run does not have."""
        registry, ledger = self._registry, self._ledger
        kept = {*read_suspended(self._root), *(added.name for added in ledger.added_queries)}
        if name in registry.queries or name not in kept:
            query = registry.get(name)
            registry.remove(name)
            return self._note_dropped(query, last)
        registry.dropped.add(name)
        registry.changed = True
        return self._note_not_added(name, last)

    def _note_dropped(self, query: Registered, last: Manifest) -> Answer:
        """Records in the ledger that a query is dropped."""
        self._ledger.dropped_queries.pop(query.name, None)
        self._ledger.dropped_queries[query.name] = query.identity
        return self._note_not_added(query.name, last)

    def _note_not_added(self, name: str, last: Manifest) -> Answer:
        """Records in the ledger that a query is not added any more."""
        ledger = self._ledger
        ledger.added_queries = [added for added in ledger.added_queries if added.name != name]
        lines = [f"{name}: dropped after epoch {last.epoch:,}"]
        lines += [f"{name}: ends at {to}, too" for to in self._outputs.end(name, last.epoch)]
        return Answer(lines)

    # -- planned ahead --

    def trial(self, requests: Sequence[Request], *, attempt: int = 1) -> Trial:
        """Returns a trial of requests that add queries."""
        with self._registry.lock:
            return Trial(requests, self._registry.copy(), self._registry.edits, attempt)

    def register_apart(self, trial: Trial) -> None:
        """Registers the queries of a trial in its copy of the registry, or refuses requests."""
        for request in trial.requests:
            try:
                self._check_owner(request)
                if request.drop:
                    trial.registry.remove(request.drop)
                trial.added[request.id] = (
                    self._register_request(request, trial.registry) if request.add else []
                )
            except Exception as error:
                trial.refused[request.id] = self._refusal(error)

    def refuse(self, trial: Trial, error: BaseException, last: Manifest) -> None:
        """Refuses all requests of a trial. A query that shall be replaced is dropped in turn."""
        trial.added.clear()
        trial.refused = {
            request.id: self._refusal(error) if request.add else self._execute(request, last)
            for request in trial.requests
        }

    def adopt(self, trial: Trial, last: Manifest) -> None:
        """Executes the requests of a trial, durably."""
        with self._registry.lock:
            for request in trial.requests:
                answer = trial.refused.get(request.id)
                if answer is None:
                    answer = Answer(added=[q.name for q in trial.added[request.id]])
                    if request.drop:
                        query = self._registry.get(request.drop)
                        dropped = self._note_dropped(query, last)
                        answer = answer if request.add else dropped
                self._ledger.answers[request.id] = answer
                self._taken.append(request.id)
            if trial.added:
                self._registry.take_over(trial.registry)
            for request in trial.requests:
                if request.id in trial.added:
                    self._note_added(request, trial.added[request.id], last)
            self._write_ledger()

    def answer(self) -> None:
        """Answers the executed requests, once the plan includes them."""
        for name in self._taken:
            with self._registry.lock:
                answer = self._ledger.answers.pop(name, None)
            if answer is not None:
                put_answer(self._root, name, self._with_added_lines(answer))
        self._taken = []

    def _with_added_lines(self, answer: Answer) -> Answer:
        if not answer.added:
            return answer
        lines = [f"{name}: added{self._start_text(name)}" for name in answer.added]
        return Answer(lines, added=answer.added)

    def _start_text(self, name: str) -> str:
        """Describes from when on a query counts, and until when if it ends."""
        query = self._registry.queries.get(name)
        plan = None if query is None else query.lifetime.query
        if plan is None:
            return ""
        if not plan.streams:
            return ", and answered once"
        first = "from the beginning" if plan.start <= MIN else f"from {instant(plan.start)} on"
        return f", {first}" + (f", until {instant(plan.until)}" if plan.until < MAX else "")

    # -- for the plan --

    def lower_limits(self, limits: QueryLimits) -> dict[str, QueryLimits]:
        """Returns the limits of added queries, where these are lower than the general limits."""
        said = {a.name: a.limits for a in self._ledger.added_queries if a.limits}
        return {
            name: QueryLimits.parse(text, limits.rows).tightened_by(limits)
            for name, text in said.items()
        }

    def take_changed_names(self, version: int) -> set[str]:
        """Returns, once after the start, the queries that differ from those of the same names in
        the last plan, of this version.
        """
        replaced, self._restored = self._restored, ()
        return {added.name for added in replaced if version <= added.previous_plan}

    def forget(self, dropped: Collection[str], last: Manifest) -> None:
        """Forgets queries that the program itself has removed or registered again since requests
        named them.
        """
        ledger, queries = self._ledger, self._registry.queries
        left = [
            a
            for a in ledger.added_queries
            if a.name not in dropped or (a.name in queries and _is_same_query(a, queries[a.name]))
        ]
        gone = {n: i for n, i in ledger.dropped_queries.items() if n not in queries}
        over = {n: o for n, o in ledger.ended_queries.items() if n not in queries}
        before = len(ledger.added_queries), len(ledger.dropped_queries), len(ledger.ended_queries)
        if (len(left), len(gone), len(over)) != before:
            for added in ledger.added_queries:
                if added not in left:
                    self._outputs.end(added.name, last.epoch)
            ledger.added_queries, ledger.dropped_queries, ledger.ended_queries = left, gone, over
            write_ledger(self._root, ledger)
            self._outputs.follow()


def _lines(data: bytes) -> list[str]:
    return [line for line in data.decode().split("\n") if line]


def _identity_hash(identity: str) -> str:
    return xxhash.xxh3_128_hexdigest(identity.encode())


def _is_same_query(added: Added, query: Registered) -> bool:
    """Returns whether a query equals the added one."""
    return (added.text, added.dialect, added.options) == (query.text, query.dialect, query.options)


def _makers_first(batch: Sequence[Registered], registry: Registry) -> list[Registered]:
    """Orders queries of one batch so that each follows the queries whose streams it reads."""
    names = {query.name for query in batch}
    return [query for name, query in registry.queries.items() if name in names]
