"""Reads nested JSON as rows: the values at paths in each line, and a row for each element that an
iterator meets.

    lines --kernel--> places of values --kernel--> lines of flat objects --json_rows--> columns

``levada.connectors.config.json_path`` has the paths. Cost: two kernels, and Polars' reader for the
values that columns read; no Python object a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from levada.connectors.config.json_path import (
    EACH,
    Step,
    Steps,
    column_path,
    show_steps,
)
from levada.core.array_types import Bools, Bytes, Longs
from levada.core.frozen import frozen
from levada.kernels.text import json_values
from levada.kernels.text.json_values import (
    INSTANCE,
    NODE,
    PathTree,
    choose_values,
    find_values,
    hash_names,
    hash_of,
    scratch,
    write_objects,
)

_NO_NUMBER = 1 << 62  # digits that no number has


@frozen
class NestedRows:
    """Rows of nested lines. ``text``: a flat object for each row, with ``keys`` as names; the line
    k is ``text[begin[k] : end[k]]``. ``line``: the line of each row; ``at``, ``stop``: the bytes of
    its element. ``fault``: of each line (``levada.kernels.text.json_values``). ``values``: where
    the value of each column begins, -1 without one. ``place``: where a row is in its line.
    """

    keys: tuple[str, ...]
    text: Bytes
    begin: Longs
    end: Longs
    line: Longs
    at: Longs
    stop: Longs
    fault: Longs
    values: Longs
    place: Callable[[int], str]


@frozen
class _Plan:
    """A tree of paths; for each column its values in order of preference, as pairs of value and
    level, up to ``ends``; the level of rows.
    """

    tree: PathTree
    columns: Longs
    ends: Longs
    level: int


def nested_rows(
    data: Bytes,
    lines: tuple[Longs, Longs],
    names: Sequence[str],
    iterator: Steps | None,
    digits: Sequence[int | None],
) -> NestedRows:
    """Finds the columns ``names`` in lines, which are UTF-8. ``digits``: for each column, a number
    of more characters is written as a text.
    """
    start, stop = lines
    plan = _plan(tuple(names), iterator or ())
    fault, instances, spans = _find(data, start, stop, plan.tree, _may_be_array(iterator))
    above = instances[:, json_values.PARENT]
    level = _levels(above, plan.level)
    alive = _last_members(data, instances, level) if plan.level else np.ones(len(above), np.bool_)
    rows = np.flatnonzero((level == plan.level) & alive)
    ancestors = [rows]
    for _ in range(plan.level):
        ancestors.append(above[ancestors[-1]])
    ancestors.reverse()
    values = np.empty(2 * len(rows) * len(names), np.int64)
    choose_values(
        spans.reshape(-1), plan.tree.values, np.concatenate(ancestors), plan.columns, plan.ends,
        values,
    )  # fmt: skip
    keys = tuple(map(str, range(len(names))))
    spans = values.reshape(len(rows), len(names), 2)
    text, end = _write(data, spans, keys, digits)
    begin = np.concatenate([np.zeros(1, np.int64), end])[:-1]
    line, _, at, stop = instances[rows, : json_values.STOP + 1].T

    def place(row: int) -> str:
        return _show_place(data, instances, [int(a[row]) for a in ancestors], iterator or ())

    return NestedRows(keys, text, begin, end, line, at, stop, fault, spans[:, :, 0], place)


def _may_be_array(iterator: Steps | None) -> bool:
    """Whether a line may be an array: the iterator begins at its elements."""
    return bool(iterator) and not isinstance((iterator or ("",))[0], str)


def _find(
    data: Bytes, start: Longs, stop: Longs, tree: PathTree, arrays: bool
) -> tuple[Longs, Longs, Longs]:
    """Returns the fault of each line, the instances, and the values of each."""
    fault = np.empty(len(start), np.int64)
    room = len(start) + 1
    while True:
        instances = np.empty(room * INSTANCE, np.int64)
        spans = np.empty(2 * room * tree.values, np.int64)
        count = find_values(
            data, start, stop, arrays, tree.labels, tree.nodes, tree.below, tree.values,
            *scratch(tree), fault, instances, spans,
        )  # fmt: skip
        if count <= room:
            break
        room = count
    return (
        fault,
        instances.reshape(-1, INSTANCE)[:count],
        spans.reshape(-1, tree.values, 2)[:count],
    )


def _levels(above: Longs, last: int) -> Longs:
    """Returns the number of instances above each one."""
    level = np.where(above < 0, 0, -1)
    for depth in range(1, last + 1):
        inner = np.flatnonzero(level < 0)
        level[inner[level[above[inner]] == depth - 1]] = depth
    return level


def _last_members(data: Bytes, instances: Longs, level: Longs) -> Bools:
    """Returns a mask of instances without members whose object repeats their names later, and
    without what is in such members.
    """
    alive = np.ones(len(level), np.bool_)
    above, name = instances[:, json_values.PARENT], instances[:, json_values.NAME]
    members = np.flatnonzero((level > 0) & (instances[:, json_values.ORDINAL] < 0))
    if len(members):
        stop = np.ascontiguousarray(instances[members, json_values.NAME_STOP])
        hashes = np.empty(len(members), np.uint64)
        hash_names(data, np.ascontiguousarray(name[members]), stop, hashes)
        order = np.lexsort((members, hashes, above[members]))
        group, same = above[members][order], hashes[order]
        superseded = (group[1:] == group[:-1]) & (same[1:] == same[:-1])
        alive[members[order[:-1][superseded]]] = False
    for depth in range(1, int(level.max(initial=0)) + 1):
        inner = np.flatnonzero(level == depth)
        alive[inner] &= alive[above[inner]]
    return alive


def _write(
    data: Bytes, values: Longs, keys: Sequence[str], digits: Sequence[int | None]
) -> tuple[Bytes, Longs]:
    """Returns flat objects, one a line, and the end of each."""
    rows, columns, _ = values.shape
    names = [f'"{key}":'.encode() for key in keys]
    key_at = np.cumsum([0, *map(len, names)])
    sizes = np.where(values[:, :, 0] < 0, 0, values[:, :, 1] - values[:, :, 0])
    room = int(sizes.sum()) + rows * (int(key_at[-1]) + 3 * columns + 3)
    end = np.empty(rows, np.int64)
    quoted = np.array([_NO_NUMBER if n is None else n + 1 for n in digits], np.int64)
    label = np.frombuffer(b"".join(names), np.uint8)
    while True:
        out = np.empty(room, np.uint8)
        size = write_objects(data, values.reshape(-1), quoted, label, key_at, columns, end, out)
        if size <= room:
            return out[:size], end
        room = size


def _show_place(data: Bytes, instances: Longs, ancestors: Sequence[int], iterator: Steps) -> str:
    """Returns the path of an element with its numbers, such as ``items[2]``."""
    steps: list[Step] = []
    inner = iter(ancestors[1:])
    for step in iterator:
        if step is not EACH:
            steps.append(step)
            continue
        element = instances[next(inner)]
        name = data[element[json_values.NAME] : element[json_values.NAME_STOP]].tobytes()
        ordinal = int(element[json_values.ORDINAL])
        steps.append(name.decode("utf-8", "replace") if ordinal < 0 else ordinal)
    return show_steps(steps)


@lru_cache(maxsize=64)
def _plan(names: tuple[str, ...], iterator: Steps) -> _Plan:
    """Returns the tree of the paths of columns."""
    root = _Node(opens=True)
    here = root
    for i, step in enumerate(iterator):
        here = here.child(step)
        here.opens = step is EACH or i == len(iterator) - 1
    columns: list[list[_Node]] = []
    for name in names:
        columns.append([])
        for steps in column_path(name, iterator).places:
            node = root
            for step in steps:
                node = node.child(step)
            node.is_value = True
            columns[-1].append(node)
    nodes = root.number()
    tree, level = _tree(nodes)
    return _Plan(
        tree,
        np.array(
            [x for each in columns for n in each for x in (n.value, level[n.place])], np.int64
        ),
        np.cumsum([len(each) for each in columns]),
        sum(node.opens for node in nodes) - 1,
    )


class _Node:
    """A node of a tree of paths while it grows."""

    def __init__(self, step: Step = "", *, opens: bool = False) -> None:
        self.step, self.opens, self.is_value = step, opens, False
        self.children: dict[Step, _Node] = {}
        self.place, self.value = 0, -1

    def child(self, step: Step) -> _Node:
        """Returns the node behind a step."""
        return self.children.setdefault(step, _Node(step))

    @property
    def name(self) -> bytes | None:
        """The name of the members that it stands for."""
        return self.step.encode() if isinstance(self.step, str) else None

    @property
    def hash(self) -> int:
        """The hash of its name."""
        return 0 if self.name is None else hash_of(self.name)

    def number(self) -> list[_Node]:
        """Returns all nodes in the order of ``PathTree``; numbers nodes and values."""
        nodes = [self]
        for node in nodes:  # grows
            children = node.children.values()
            nodes.extend(sorted(children, key=lambda each: (each.name is not None, each.hash)))
        for number, node in enumerate(node for node in nodes if node.is_value):
            node.value = number
        for place, node in enumerate(nodes):
            node.place = place
        return nodes


def _tree(nodes: Sequence[_Node]) -> tuple[PathTree, list[int]]:
    """Returns the nodes as columns, and the level of each."""
    labels, below = bytearray(), list[int]()
    level = [0] * len(nodes)
    within: list[list[int]] = [[] for _ in nodes]
    chain = [node.opens for node in nodes]
    for node in reversed(nodes):
        for child in node.children.values():
            within[node.place] += [] if child.opens else within[child.place]
            chain[node.place] |= chain[child.place]
        within[node.place] += [node.value] if node.is_value else []
    table = np.zeros((len(nodes), NODE), np.int64)
    for node in nodes:
        for child in node.children.values():
            level[child.place] = level[node.place] + child.opens
        places = sorted(child.place for child in node.children.values())
        named = sum(child.name is not None for child in node.children.values())
        first, last = (places[0], places[-1] + 1) if places else (0, 0)
        values = [] if node.opens else within[node.place]
        size = json_values.EACH if node.step is EACH else json_values.INDEX
        table[node.place] = (
            node.step if isinstance(node.step, int) else len(labels),
            size if node.name is None else len(node.name),
            first, last - named, last, node.value, node.opens, len(below),
            len(below) + len(values), chain[node.place], node.hash,
        )  # fmt: skip
        labels += node.name or b""
        below += values
    count = sum(node.is_value for node in nodes)
    names = np.frombuffer(bytes(labels), np.uint8)
    return PathTree(table.reshape(-1), names, np.array(below, np.int64), count), level
