"""Defines the tags of the classes in plans, and encodes plans and group tables.

Each class in a plan needs a line here. A tag never changes, even if the class is renamed or moved.
The meaning of a tag's fields may change only with the format of checkpoints
(``checkpoint/checkpoint_folder.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from levada.core import expressions as e
from levada.core import query_model as q
from levada.core import rdf_terms as t
from levada.core.event_time import Window
from levada.errors import unreadable
from levada.plan.encoding.columns import DecodedValues, EncodedValues, Number
from levada.plan.encoding.tag_registry import Fields, Registry
from levada.plan.execution import steps as s
from levada.plan.execution.key_group_table import DividedTable, Division, GroupTable, SplitKeyGroup
from levada.plan.execution.member_table import MemberTable
from levada.plan.execution.plan import Consumer, FanOut, Plan, PlanNode, QueryPlan, QuerySettings
from levada.plan.execution.plan_delta import PlanChange, Revised
from levada.plan.execution.report_schedules import Schedule, Schedules
from levada.plan.execution.row_layout import Layout, Span
from levada.plan.execution.shapes import Edge
from levada.plan.execution.window_table import WindowTable

# Encodes a value with all values that it refers to as bytes, and decodes it: the content of the
# files of plans and setups.
#
#     LEVADA, the version of this encoding   8 bytes
#     xxh3 of all that follows               8 bytes
#     the length of the head                 8 bytes
#     head     msgpack: (tags with the names of their fields, blocks, arrays)
#     arrays   each from a multiple of 8 on
#
# A block has some values of one class, as a column for each field. Values are numbered in order and
# refer to smaller numbers only. The last one is the written value. Nested values are written level
# by level, so depth needs no recursion, and a shared value is written once.
#
# Decoding creates only values of registered classes, regardless of the file, and validates
# everything. Arrays are views of one copy of their bytes; equal numbers, texts and tuples of these
# are one object. A fault in a file is a ``CheckpointError`` with its name. Cost:
# docs/decisions/0014-plans-are-data.md.


T = TypeVar("T")
MAGIC = b"LEVADA"
VERSION = 1
_DTYPES = ("|b1", "|u1", "<i4", "<i8")
_START = 24
_HEAD = msgspec.msgpack.Decoder(
    tuple[
        list[tuple[str, list[str]]],
        list[tuple[Number, Number, list[msgspec.Raw]]],
        list[tuple[str, Number]],
    ]
)
WRONG = (
    msgspec.MsgspecError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    MemoryError,
)


class _Group(NamedTuple):
    """Values of one class, with their columns."""

    fields: Fields
    values: list[Any]
    columns: list[list[Any]]


class _Writer:
    """A document that is being encoded."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.values = EncodedValues()
        self.tags: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.blocks: list[tuple[int, int, list[Any]]] = []
        self._equal: dict[type, dict[Any, int]] = {}  # by the value
        self._count = 0

    def add(self, root: object) -> None:
        """Writes a value after all values that it refers to."""
        for level in reversed(list(self._levels(root))):
            for group in level:
                self._add(group)

    def _levels(self, root: object) -> Iterable[list[_Group]]:
        """Returns the value, the values that it refers to, and so on; each on its deepest level."""
        waiting: Iterable[Any] = [root]
        while level := self._group_by_class(waiting):
            yield level
            waiting = chain.from_iterable(
                column.children(values)
                for group in level
                for column, values in zip(group.fields.columns, group.columns, strict=True)
            )

    def _group_by_class(self, values: Iterable[Any]) -> list[_Group]:
        distinct = {id(value): value for value in values}
        groups: dict[type, list[Any]] = {}
        for value in distinct.values():
            groups.setdefault(type(value), []).append(value)
        return [self._group(self.registry.fields(cls), members) for cls, members in groups.items()]

    @staticmethod
    def _group(fields: Fields, values: list[Any]) -> _Group:
        return _Group(fields, values, fields.split(values))

    def _add(self, group: _Group) -> None:
        """Writes the values of a group that have not been written."""
        fields = group.fields
        new = self._assign_numbers(fields, group.values)
        if not new:
            return
        if len(new) < len(group.values):
            group = self._group(fields, new)
        held = [
            column.put(values, self.values)
            for column, values in zip(fields.columns, group.columns, strict=True)
        ]
        tag = self.tags.setdefault(fields.tag, (len(self.tags), fields.names))[0]
        self.blocks.append((tag, len(new), held))

    def _assign_numbers(self, fields: Fields, values: list[Any]) -> list[Any]:
        """Numbers values and returns the new ones."""
        numbers, new = self.values.numbers, []
        equal = self._equal.setdefault(type(values[0]), {}) if fields.shared else None
        for value in values:
            if id(value) in numbers:
                continue
            number = self._count if equal is None else equal.setdefault(value, self._count)
            numbers[id(value)] = number
            if number == self._count:
                self._count += 1
                new.append(value)
        return new


def encode(root: object, registry: Registry) -> bytes:
    """Encodes a value of a registered class; equal values that are built alike have equal bytes."""
    writer = _Writer(registry)
    writer.add(root)
    arrays = [(a.dtype.str, len(a)) for a in writer.values.arrays]
    assert {dtype for dtype, _ in arrays} <= set(_DTYPES), "an array of a kind that can be written"
    tags = [(tag, names) for tag, (_, names) in writer.tags.items()]
    head = msgspec.msgpack.encode((tags, writer.blocks, arrays))
    body = [len(head).to_bytes(8, "little"), head, bytes(-len(head) % 8)]
    for array in writer.values.arrays:
        body += [array.tobytes(), bytes(-array.nbytes % 8)]
    held = b"".join(body)
    start = MAGIC + VERSION.to_bytes(2, "little")
    return start + xxhash.xxh3_64_intdigest(held).to_bytes(8, "little") + held


def decode(data: npt.NDArray[np.uint8], cls: type[T], registry: Registry) -> T:
    """Decodes a value of this class. Raises one of ``WRONG`` for other bytes."""
    end = _head_end(data)
    tags, blocks, arrays = _HEAD.decode(data[_START:end].data)
    classes = [_class_of_tag(tag, names, registry) for tag, names in tags]
    # the arrays keep only their own bytes in memory, without the head
    document = DecodedValues(_views(data[end + -end % 8 :].copy(), arrays))
    for tag, count, columns in blocks:
        fields = classes[tag]
        decoded_columns = [
            column.get(raw, count, document)
            for column, raw in zip(fields.columns, columns, strict=True)
        ]
        document.values += fields.build(decoded_columns, count)
    root = document.values[-1]
    if not isinstance(root, cls):
        raise ValueError("it holds something else")
    return root


def read_file(path: Path, cls: type[T], registry: Registry) -> T:
    """Reads a value of this class from a file. Raises ``CheckpointError``."""
    try:
        return decode(np.fromfile(path, np.uint8), cls, registry)
    except OSError as error:
        raise unreadable(path, str(error.strerror)) from error
    except WRONG as error:
        raise unreadable(path, str(error) or "it is damaged") from error


def _head_end(data: npt.NDArray[np.uint8]) -> int:
    """Returns the end of the head, after validating the checksum."""
    start = data[:_START].tobytes()
    if len(start) < _START or not start.startswith(MAGIC):
        raise ValueError("it is cut short, or none of Levada's")
    version = int.from_bytes(start[6:8], "little")
    if version != VERSION:
        raise ValueError(f"it is written in version {version}, and this is version {VERSION}")
    if xxhash.xxh3_64_intdigest(data[16:].data) != int.from_bytes(start[8:16], "little"):
        raise ValueError("it is cut short or altered")
    end = _START + int.from_bytes(start[16:24], "little")
    if end > len(data):
        raise ValueError("its head is longer than the file")
    return end


def _views(data: npt.NDArray[np.uint8], arrays: list[tuple[str, int]]) -> list[npt.NDArray[Any]]:
    """Returns the arrays, which fill the bytes."""
    at = 0
    views: list[npt.NDArray[Any]] = []
    for dtype, count in arrays:
        if dtype not in _DTYPES:
            raise ValueError(f"an array of {dtype}")
        size = count * np.dtype(dtype).itemsize
        views.append(data[at : at + size].view(dtype))
        at += size + -size % 8
    if at != len(data):
        raise ValueError("its arrays are not as long as the file says")
    return views


def _class_of_tag(tag: str, names: list[str], registry: Registry) -> Fields:
    """Returns the class of a tag if it has the same fields."""
    if tag not in registry.classes:
        raise ValueError(f"this version of Levada does not know the tag {tag!r}")
    fields = registry.fields(registry.classes[tag])
    if list(fields.names) != names:
        raise ValueError(f"the tag {tag!r} has other fields in this version of Levada")
    return fields


STEPS: dict[str, type] = {
    "match": s.Match,
    "entailed": s.Entailed,
    "star": s.Star,
    "scan": s.Scan,
    "constant": s.Constant,
    "count window": s.CountWindow,
    "user operator": s.UserOperator,
    "numbered": s.Numbered,
    "instants": s.Instants,
    "narrow": s.Narrow,
    "recent": s.Recent,
    "session": s.Session,
    "select": s.Select,
    "lift": s.SubqueryWindow,
    "once": s.StaticSubplan,
    "filter": s.Filter,
    "pick": s.Pick,
    "by window": s.ByWindow,
    "extend": s.Extend,
    "union": s.Union,
    "occur": s.Occur,
    "hold": s.Hold,
    "arrange": s.Arrange,
    "join": s.Join,
    "arrange distinct": s.ArrangeDistinct,
    "relaxed static": s.RelaxedStatic,
    "arranged join": s.ArrangedJoin,
    "arrange stream": s.ArrangeStream,
    "relaxed stream": s.RelaxedStream,
    "stream join": s.StreamJoin,
    "multiway join": s.MultiwayJoin,
    "adaptive join": s.AdaptiveJoin,
    "linked join": s.LinkedJoin,
    "report": s.Report,
    "panes": s.Panes,
    "report join": s.ReportJoin,
    "arranged report join": s.ArrangedReportJoin,
    "report group": s.RGroup,
    "report distinct": s.RDistinct,
    "report except": s.RExcept,
    "report order": s.ROrder,
    "report number": s.RNumber,
    "closure": s.Closure,
    "changes": s.Changes,
    "ranged changes": s.RangedChanges,
    "deltas": s.Deltas,
    "running": s.Running,
    "tally": s.Multiplicity,
    "net": s.Net,
    "snapshot": s.Snapshot,
    "standing": s.Standing,
    "emit": s.Emit,
}
VALUES: dict[str, type] = STEPS | {
    "iri": t.Iri,
    "blank": t.Blank,
    "literal": t.Literal,
    "variable": e.Var,
    "term": e.Const,
    "parameter": e.Param,
    "call": e.Call,
    "aggregate call": e.Aggregate,
    "triple pattern": q.TriplePattern,
    "window": Window,
    "window on": q.StreamWindow,
    "layout": Layout,
    "span": Span,
    "edge": Edge,
    "form": s.Form,
    "way": s.EntailmentAlternative,
    "aggregate": s.Aggregate,
    "key": s.Key,
    "comparison": s.Comparison,
    "manner": QuerySettings,
}
RECORDS: dict[str, type] = {
    "members": MemberTable,
    "schedule": Schedule,
    "schedules": Schedules,
    "window table": WindowTable,
    "fan": FanOut,
    "consumer": Consumer,
    "node": PlanNode,
    "query": QueryPlan,
    "plan": Plan,
    "revised": Revised,
    "plan change": PlanChange,
}
_PLANS = Registry(VALUES, RECORDS)
_GROUPS = Registry(
    {"heavy group": SplitKeyGroup, "division": Division},
    {"group table": GroupTable, "divided table": DividedTable},
)


def encode_plan(plan: Plan | PlanChange) -> bytes:
    """Returns the file content of a sealed plan: all of it, or its differences."""
    return encode(plan, _PLANS)


def read_plan(path: Path, load: Callable[[Path], Plan] | None = None) -> Plan:
    """Reads a sealed plan. Raises ``CheckpointError``.

    If the file has differences, ``load`` returns the previous plan (None: it is read).
    """
    content = read_file(path, object, _PLANS)
    if isinstance(content, PlanChange):
        base = (load or read_plan)(previous_path(path, content.base))
        try:
            return content.apply_to(base)
        except (LookupError, StopIteration, ValueError) as error:
            raise unreadable(path, "it is of another plan") from error
    if not isinstance(content, Plan):
        raise unreadable(path, "it holds something else")
    return content


def previous_path(path: Path, version: int) -> Path:
    """Returns the path of another version's file in the same folder."""
    number, _, rest = path.name.partition("-")
    if not number.isdigit() or not version < int(number):
        raise unreadable(path, "the version before it is none")
    return path.with_name(f"{version}-{rest}")


def encode_groups(table: GroupTable) -> bytes:
    """Returns the file content of a group table."""
    return encode(table, _GROUPS)


def read_groups(path: Path) -> GroupTable:
    """Reads a group table. Raises ``CheckpointError``."""
    return read_file(path, GroupTable, _GROUPS)
