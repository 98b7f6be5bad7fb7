"""Finds the values at paths in lines of JSON, and checks the lines (RFC 8259).

The paths are a tree of steps, ``PathTree``. A node of the tree that *opens* makes an instance of
each value that it meets: the elements of an array that become rows. The root opens, too: its
instances are the lines. Each value belongs to the nearest instance above it. If an object repeats a
name, its last value counts: what was found below the earlier one is dropped, instances included.

A value's place is that of its bytes in the text; ``null`` has no place. The text must be UTF-8.
Cost: byte by byte, some 500 MB a CPU-second. The twin in the tests uses the module ``json``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from levada.core.array_types import Bools, Bytes, Longs, Words
from levada.core.frozen import frozen
from levada.kernels import FLAG, I64, INT, U8, kernel, part
from levada.kernels.text.byte_ops import View, byte, get_number, put, routine, set_number, view_of

SOUND, BROKEN, HALF, DEEP = 0, 1, 2, 3
"""The fault of a line: none, not JSON, half of a surrogate pair, too many levels."""
MAX_DEPTH = 1024
INDEX, EACH = -1, -2
"""The sizes of labels that are not names."""

_OUT = types.Array(types.int64, 1, "C")
# the fields of a node: the place and size of its name (or the number of the element); the first of
# its children, the first with a name, and the end of them; the number of its value or -1; whether
# it opens; its part of ``below``; whether it or a node below it opens; the hash of its name
_LABEL, _SIZE, _FIRST, _NAMES, _LAST, _VALUE, _OPENS, _BELOW, _BELOW_END, _CHAIN, _HASH = range(11)
NODE = 11
MAX_COMPARED_NAMES = 8
"""The most names that are compared with each of an object without their hashes."""
# the fields of an instance: its line, the instance above, its place, and its number in an array or
# the place of its name in an object
LINE, PARENT, AT, STOP, ORDINAL, NAME, NAME_STOP = range(7)
INSTANCE = 7
# the fields of an open container: its first entry in the stack, its place, its serial number, the
# next element
_ENTRY, _PLACE, _SERIAL, _ELEMENT = range(4)
_FRAME = 4
_LONGEST = 38
"""The most digits of an integer of 128 bits."""
_OFFSET, _PRIME, _BYTE = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3), np.uint64(255)
_VALUE_DUE, _VALUE_OR_END, _NAME_OR_END, _NAME_DUE, _AFTER, _DONE = range(6)


@frozen
class PathTree:
    """Paths as columns. ``nodes``: ``NODE`` numbers each, the root first, children in a row: first
    those without names, then by the hashes of their names.
    ``labels``: the names. ``below``: the values of each node and below it that belong to the
    instance of its parent. ``values``: their number.
    """

    nodes: Longs
    labels: Bytes
    below: Longs
    values: int


@part
def _hex(buf: View, at: int, end: int) -> int:
    """The number of four digits; -1 if they are not there."""
    if at + 4 > end:
        return -1
    number = 0
    for i in range(at, at + 4):
        c = int(byte(buf, i))
        digit = c - 48 if c < 58 else (c | 32) - 87
        if digit < 0 or digit > 15:
            return -1
        number = number * 16 + digit
    return number


@part
def _escape(buf: View, at: int, end: int) -> tuple[int, int]:
    """Returns the character of the escape whose backslash is at ``at``, and where it ends."""
    c = int(byte(buf, at + 1)) if at + 1 < end else 0
    if c == 117:
        high = _hex(buf, at + 2, end)
        if (
            0xD800 <= high < 0xDC00
            and at + 7 < end
            and byte(buf, at + 6) == 92
            and byte(buf, at + 7) == 117
        ):
            low = _hex(buf, at + 8, end)
            return 0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF), at + 12
        return max(high, 0), at + 6
    for letter, value in ((98, 8), (102, 12), (110, 10), (114, 13), (116, 9)):
        if c == letter:
            return value, at + 2
    return c, at + 2


@part
def _digits_end(buf: View, at: int, end: int) -> int:
    while at < end and 48 <= byte(buf, at) <= 57:
        at += 1
    return at


@part
def _number_end(buf: View, at: int, end: int) -> int:
    """Where the number at ``at`` ends; ``at`` if none is there."""
    first = at + int(at < end and byte(buf, at) == 45)
    here = _digits_end(buf, first, end)
    if here == first or (here > first + 1 and byte(buf, first) == 48):
        return at
    if here < end and byte(buf, here) == 46:
        first = here + 1
        here = _digits_end(buf, first, end)
        if here == first:
            return at
    if here < end and (byte(buf, here) | 32) == 101:
        first = here + 1
        first += int(first < end and (byte(buf, first) == 43 or byte(buf, first) == 45))
        here = _digits_end(buf, first, end)
        if here == first:
            return at
    return here


@part
def _surrogates(buf: View, at: int, end: int) -> tuple[int, int]:
    """Checks the escape ``\\u`` whose backslash is at ``at``; returns where it ends."""
    code, stop = _escape(buf, at, end)
    for i in range(at + 2, at + 6):
        if i >= end or not (48 <= byte(buf, i) <= 57 or 97 <= (byte(buf, i) | 32) <= 102):
            return at, BROKEN
    if code >= 0x10000:
        for i in range(at + 8, at + 12):
            if i >= end or not (48 <= byte(buf, i) <= 57 or 97 <= (byte(buf, i) | 32) <= 102):
                return at, HALF
        low = int(byte(buf, at + 9) | 32)
        return (stop, SOUND) if (byte(buf, at + 8) | 32) == 100 and 99 <= low <= 102 else (at, HALF)
    return (at, HALF) if 0xD800 <= code < 0xE000 else (stop, SOUND)


@part
def _string_end(buf: View, at: int, end: int) -> tuple[int, int]:
    """Returns the place of the last quote of the string that begins at ``at``, and its fault."""
    at += 1
    while at < end:
        c = byte(buf, at)
        if c == 34:
            return at, SOUND
        if c < 32:
            return at, BROKEN
        if c != 92:
            at += 1
            continue
        letter = byte(buf, at + 1) if at + 1 < end else 0
        if letter == 117:
            at, fault = _surrogates(buf, at, end)
            if fault != SOUND:
                return at, fault
        elif (
            letter == 34 or letter == 92 or letter == 47 or letter == 98 or letter == 102
            or letter == 110 or letter == 114 or letter == 116
        ):  # fmt: skip
            at += 2
        else:
            return at, BROKEN
    return at, BROKEN


@part
def _word_end(buf: View, at: int, end: int) -> int:
    """Where ``true``, ``false`` or ``null`` at ``at`` ends; ``at`` for another word."""
    c = byte(buf, at)
    if at + 4 <= end and c == 116 and byte(buf, at + 1) == 114 and byte(buf, at + 2) == 117:
        return at + 4 if byte(buf, at + 3) == 101 else at
    if at + 4 <= end and c == 110 and byte(buf, at + 1) == 117 and byte(buf, at + 2) == 108:
        return at + 4 if byte(buf, at + 3) == 108 else at
    if at + 5 <= end and c == 102 and byte(buf, at + 1) == 97 and byte(buf, at + 2) == 108:
        return at + 5 if byte(buf, at + 3) == 115 and byte(buf, at + 4) == 101 else at
    return at


@part
def _scalar_end(buf: View, at: int, end: int) -> tuple[int, int]:
    """Returns where the value at ``at`` ends, which is neither array nor object, and its fault."""
    if byte(buf, at) == 34:
        close, fault = _string_end(buf, at, end)
        return close + 1, fault
    stop = _number_end(buf, at, end) if byte(buf, at) <= 57 else _word_end(buf, at, end)
    return stop, SOUND if stop > at else BROKEN


@part
def _utf8_byte(code: int, i: int) -> int:
    """The i-th byte of a character in UTF-8; -1 behind its last one."""
    if code < 0x80:
        return code if i == 0 else -1
    count = 2 if code < 0x800 else 3 if code < 0x10000 else 4
    if i >= count:
        return -1
    if i > 0:
        return 0x80 | (code >> 6 * (count - 1 - i)) & 63
    return (0xF00 >> count) & 0xFF | code >> 6 * (count - 1)


@part
def _add(h: np.uint64, byte: int) -> np.uint64:
    """FNV-1a by one byte more."""
    return (h ^ (np.uint64(byte) & _BYTE)) * _PRIME


@part
def _add_character(h: np.uint64, code: int) -> np.uint64:
    """The hash by the UTF-8 bytes of a character more."""
    i = 0
    octet = _utf8_byte(code, 0)
    while octet >= 0:
        h = _add(h, octet)
        i += 1
        octet = _utf8_byte(code, i)
    return h


@part
def _hash(buf: View, at: int, end: int) -> np.uint64:
    """The hash of the characters of a name."""
    h = _OFFSET
    while at < end:
        code = byte(buf, at)
        if code == 92:
            code, at = _escape(buf, at, end)
            h = _add_character(h, code)
        else:
            h = _add(h, code)
            at += 1
    return h


@part
def _same_name(buf: View, at: int, end: int, labels: View, label: int, size: int) -> bool:
    """Whether the name between two quotes is a label, escapes decoded."""
    done = 0
    while at < end:
        if byte(buf, at) != 92:
            if done >= size or byte(buf, at) != byte(labels, label + done):
                return False
            done += 1
            at += 1
            continue
        code, at = _escape(buf, at, end)
        i = 0
        octet = _utf8_byte(code, 0)
        while octet >= 0:
            if done >= size or octet != byte(labels, label + done):
                return False
            done += 1
            i += 1
            octet = _utf8_byte(code, i)
    return done == size


class Walk(NamedTuple):
    """The data of a walk through lines, as views: the text; a ``PathTree``; the nodes of
    open values with their instances; the open containers; for each node the last object that had
    it, and the number of instances then; what is found. The last entry of ``met`` counts objects.
    """

    text: View
    labels: View
    tree: View
    below: View
    stack: View
    frames: View
    met: View
    instances: View
    spans: View
    width: int


@part
def _field(walk: Walk, node: int, field: int) -> int:
    return get_number(walk.tree, node * NODE + field)


@part
def _has_room(walk: Walk, instance: int) -> bool:
    return (instance + 1) * INSTANCE * 8 <= walk.instances[1]


@part
def _enter(walk: Walk, node: int, owner: int, serial: int, count: int) -> int:
    """Notes that an object has a name; drops what an earlier value of that name had. Returns the
    number of instances.
    """
    if get_number(walk.met, 2 * node) != serial:
        set_number(walk.met, 2 * node, serial)
        set_number(walk.met, 2 * node + 1, count)
        return count
    if _has_room(walk, owner):
        for i in range(_field(walk, node, _BELOW), _field(walk, node, _BELOW_END)):
            value = get_number(walk.below, i)
            set_number(walk.spans, 2 * (owner * walk.width + value), -1)
    return get_number(walk.met, 2 * node + 1) if _field(walk, node, _CHAIN) else count


@part
def _open(
    walk: Walk, count: int, line: int, owner: int, at: int, ordinal: int, name: int, name_stop: int
) -> int:
    """Makes an instance without values; returns the number of instances."""
    if _has_room(walk, count):
        base = count * INSTANCE
        set_number(walk.instances, base + LINE, line)
        set_number(walk.instances, base + PARENT, owner)
        set_number(walk.instances, base + AT, at)
        set_number(walk.instances, base + ORDINAL, ordinal)
        set_number(walk.instances, base + NAME, name)
        set_number(walk.instances, base + NAME_STOP, name_stop)
        for value in range(count * walk.width, (count + 1) * walk.width):
            set_number(walk.spans, 2 * value, -1)
    return count + 1


@part
def _finish(walk: Walk, low: int, high: int, at: int, stop: int, null: bool) -> None:
    """Notes the place of a value for the nodes that it is at."""
    for i in range(low, high):
        node = get_number(walk.stack, 2 * i)
        owner = get_number(walk.stack, 2 * i + 1)
        if not _has_room(walk, owner):
            continue
        if _field(walk, node, _OPENS):
            set_number(walk.instances, owner * INSTANCE + STOP, stop)
        value = _field(walk, node, _VALUE)
        if value >= 0 and not null:
            set_number(walk.spans, 2 * (owner * walk.width + value), at)
            set_number(walk.spans, 2 * (owner * walk.width + value) + 1, stop)


@part
def _is_child(walk: Walk, node: int, name: int, name_stop: int, element: int) -> bool:
    """Whether a node is that of a member with a name (``element`` -1), or of an element."""
    size = _field(walk, node, _SIZE)
    if size < 0:
        return size == EACH or _field(walk, node, _LABEL) == element
    if name_stop - name < size:  # a name with escapes is longer
        return False
    return _same_name(walk.text, name, name_stop, walk.labels, _field(walk, node, _LABEL), size)


@routine
def _find_hash(walk: Walk, first: int, last: int, name: int, name_stop: int) -> tuple[int, int]:
    """The nodes from ``first`` to ``last`` whose names have the hash of a name."""
    code = np.int64(_hash(walk.text, name, name_stop))
    stop = last
    while first < stop:
        middle = (first + stop) // 2
        if _field(walk, middle, _HASH) < code:
            first = middle + 1
        else:
            stop = middle
    while stop < last and _field(walk, stop, _HASH) == code:
        stop += 1
    return first, stop


@part
def _visit(
    walk: Walk, entry: int, node: int, at: int, line: int, top: int, name: int, name_stop: int,
    element: int, frame: int, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Puts a node on the stack if the value at ``at`` is its; ``entry``: that of its parent."""
    if not _is_child(walk, node, name, name_stop, element):
        return top, count
    owner = get_number(walk.stack, 2 * entry + 1)
    if _field(walk, node, _SIZE) >= 0:
        serial = get_number(walk.frames, frame + _SERIAL)
        count = _enter(walk, node, owner, serial, count)
    if _field(walk, node, _OPENS):
        count = _open(walk, count, line, owner, at, element, name, name_stop)
        owner = count - 1
    set_number(walk.stack, 2 * top, node)
    set_number(walk.stack, 2 * top + 1, owner)
    return top + 1, count


@routine
def _children(
    walk: Walk, at: int, line: int, high: int, name: int, name_stop: int, frame: int, count: int
) -> tuple[int, int]:
    """Puts the nodes of the value at ``at`` on the stack, behind those of its container; it has a
    name there, or is an element. Returns the size of the stack and the number of instances.
    """
    top = high
    element = get_number(walk.frames, frame + _ELEMENT)
    if element >= 0:
        set_number(walk.frames, frame + _ELEMENT, element + 1)
    for i in range(get_number(walk.frames, frame + _ENTRY), high):
        parent = get_number(walk.stack, 2 * i)
        first, last = _field(walk, parent, _NAMES), _field(walk, parent, _LAST)
        for node in range(_field(walk, parent, _FIRST), first):
            top, count = _visit(
                walk, i, node, at, line, top, name, name_stop, element, frame, count
            )
        if element >= 0:
            continue
        if last - first > MAX_COMPARED_NAMES:
            first, last = _find_hash(walk, first, last, name, name_stop)
        for node in range(first, last):
            top, count = _visit(
                walk, i, node, at, line, top, name, name_stop, element, frame, count
            )
    return top, count


@part
def _skip_blanks(buf: View, at: int, end: int) -> int:
    while at < end and (
        byte(buf, at) == 32 or byte(buf, at) == 9 or byte(buf, at) == 13 or byte(buf, at) == 10
    ):
        at += 1
    return at


@part
def _name_end(buf: View, at: int, end: int) -> tuple[int, int, int]:
    """Returns where the name at ``at`` ends, where its colon ends, and its fault."""
    if byte(buf, at) != 34:
        return at, at, BROKEN
    stop, fault = _string_end(buf, at, end)
    colon = _skip_blanks(buf, stop + 1, end)
    if fault == SOUND and (colon >= end or byte(buf, colon) != 58):
        fault = BROKEN
    return stop, colon + 1, fault


@part
def _closes(c: int, opened: int, state: int) -> bool:
    """Whether a bracket may close the container that another one has opened."""
    if c == 125:
        return opened == 123 and state in (_NAME_OR_END, _AFTER)
    return opened == 91 and state in (_VALUE_OR_END, _AFTER)


@part
def _begin(walk: Walk, frame: int, low: int, at: int, c: int) -> int:
    """Opens a container at ``at``; returns the next state."""
    serial = get_number(walk.met, walk.met[1] // 8 - 1) + 1
    set_number(walk.met, walk.met[1] // 8 - 1, serial)
    set_number(walk.frames, frame + _ENTRY, low)
    set_number(walk.frames, frame + _PLACE, at)
    set_number(walk.frames, frame + _SERIAL, serial)
    set_number(walk.frames, frame + _ELEMENT, 0 if c == 91 else -1)
    return _NAME_OR_END if c == 123 else _VALUE_OR_END


@part
def _place(
    walk: Walk, at: int, line: int, depth: int, top: int, name: int, name_stop: int, count: int
) -> tuple[int, int]:
    """Puts the nodes of the value at ``at`` on the stack. Returns its size and the number of
    instances.
    """
    if depth == 0:
        set_number(walk.stack, 0, 0)
        set_number(walk.stack, 1, count)
        return 1, _open(walk, count, line, -1, at, -1, 0, 0)
    if get_number(walk.frames, depth * _FRAME + _ENTRY) == top:
        return top, count
    return _children(walk, at, line, top, name, name_stop, depth * _FRAME, count)


@part
def _line(walk: Walk, at: int, end: int, line: int, count: int, arrays: bool) -> tuple[int, int]:
    """Reads one line; returns the number of instances, and its fault."""
    buf = walk.text
    depth, top, name, name_stop = 0, 0, 0, 0
    state = _VALUE_DUE
    at = _skip_blanks(buf, at, end)
    if at >= end or not (byte(buf, at) == 123 or (arrays and byte(buf, at) == 91)):
        return count, BROKEN
    while at < end:
        c = byte(buf, at)
        frame = depth * _FRAME
        if c == 125 or c == 93:
            place = get_number(walk.frames, frame + _PLACE)
            if depth == 0 or not _closes(c, byte(buf, place), state):
                return count, BROKEN
            low = get_number(walk.frames, frame + _ENTRY)
            _finish(walk, low, top, place, at + 1, False)
            top = low
            depth -= 1
            at += 1
            state = _AFTER if depth else _DONE
        elif state == _AFTER and c == 44:
            at += 1
            opened = byte(buf, get_number(walk.frames, frame + _PLACE))
            state = _NAME_DUE if opened == 123 else _VALUE_DUE
        elif state in (_NAME_DUE, _NAME_OR_END):
            name = at + 1
            name_stop, at, fault = _name_end(buf, at, end)
            if fault != SOUND:
                return count, fault
            state = _VALUE_DUE
        elif state in (_AFTER, _DONE):
            return count, BROKEN
        else:
            low = top
            top, count = _place(walk, at, line, depth, top, name, name_stop, count)
            if c == 123 or c == 91:
                if depth == MAX_DEPTH:
                    return count, DEEP
                depth += 1
                state = _begin(walk, depth * _FRAME, low, at, c)
                at += 1
            else:
                stop, fault = _scalar_end(buf, at, end)
                if fault != SOUND:
                    return count, fault
                _finish(walk, low, top, at, stop, c == 110)
                top = low
                at = stop
                state = _AFTER
        at = _skip_blanks(buf, at, end)
    return count, SOUND if state == _DONE else BROKEN


@kernel((U8, _OUT, _OUT, types.Array(types.boolean, 1, "C")))
def cut_lines(buf: Bytes, start: Longs, stop: Longs, counted: Bools) -> int:
    """Finds the lines that are not blank; returns their number.

    Blank has the meaning of ``levada.kernels.text.line_boundaries``: a line of control characters
    is a line. ``counted``: whether the driver counts a line, since it does not begin as a comment.
    """
    view = view_of(buf)
    count = at = 0
    while at < len(buf):
        first = begin = at
        while first < len(buf) and (byte(view, first) == 32 or byte(view, first) == 9):
            first += 1
        ink = first
        while ink < len(buf) and (
            byte(view, ink) == 32 or byte(view, ink) == 9 or byte(view, ink) == 13
        ):
            ink += 1
        at = ink
        while at < len(buf) and byte(view, at) != 10:
            at += 1
        if at > ink:
            start[count] = begin
            stop[count] = at
            counted[count] = byte(view, first) != 35 and byte(view, first) != 13
            count += 1
        at += 1
    return count


@kernel((U8, I64, I64, types.Array(types.uint64, 1, "C")))
def hash_names(buf: Bytes, at: Longs, stop: Longs, hashes: Words) -> None:
    """Fills in the hashes of names, escapes decoded, from ``at`` to ``stop`` without the quotes."""
    view = view_of(buf)
    for i in range(len(at)):
        hashes[i] = _hash(view, at[i], stop[i])


def hash_of(name: bytes) -> int:
    """Returns the hash of a name (FNV-1a), as ``find_values`` has it: signed, of 64 bits."""
    h = int(_OFFSET)
    for octet in name:
        h = ((h ^ octet) * int(_PRIME)) % 2**64
    return h - (h >> 63 << 64)


def scratch(tree: PathTree) -> tuple[Longs, Longs, Longs]:
    """Returns the arrays that ``find_values`` works with."""
    nodes = len(tree.nodes) // NODE
    frames = np.zeros(_FRAME * (MAX_DEPTH + 2), np.int64)
    return np.zeros(2 * (nodes + 1), np.int64), frames, np.full(2 * nodes + 1, -1)


@kernel((U8, I64, I64, FLAG, U8, I64, I64, INT, *(6 * (_OUT,))))
def find_values(
    buf: Bytes, start: Longs, stop: Longs, arrays: bool, labels: Bytes, tree: Longs, below: Longs,
    width: int, stack: Longs, frames: Longs, met: Longs, fault: Longs, instances: Longs,
    spans: Longs,
) -> int:  # fmt: skip
    """Finds the values of a ``PathTree`` in lines; returns the number of instances.

    ``arrays``: a line may be an array. ``width``: the number of values. ``stack``, ``frames``,
    ``met``: the arrays of ``scratch``. ``fault``: filled for each
    line; a faulty one has no instances. ``instances``: ``INSTANCE`` numbers each. ``spans``: for
    each instance and value its begin and end, or -1. Both are filled as far as they reach: with too
    little room, call again.
    """
    walk = Walk(
        view_of(buf), view_of(labels), view_of(tree), view_of(below), view_of(stack),
        view_of(frames), view_of(met), view_of(instances), view_of(spans), width,
    )  # fmt: skip
    count = 0
    for line in range(len(start)):
        before = count
        count, code = _line(walk, start[line], stop[line], line, count, arrays)
        fault[line] = code
        if code != SOUND:
            count = before
    return count


@kernel((I64, INT, I64, I64, I64, _OUT))
def choose_values(
    spans: Longs, width: int, ancestors: Longs, columns: Longs, ends: Longs, values: Longs
) -> None:
    """Fills in begin and end of the value of each row and column: the first alternative with one.

    ``spans``, ``width``: as in ``find_values``. ``ancestors``: the instances of all rows by level.
    ``columns``: pairs of value and level, those of a column up to ``ends``.
    """
    rows = len(values) // (2 * len(ends))
    for row in range(rows):
        first = 0
        for column in range(len(ends)):
            place = 2 * (row * len(ends) + column)
            values[place] = -1
            for i in range(first, ends[column]):
                owner = ancestors[columns[2 * i + 1] * rows + row]
                at = 2 * (owner * width + columns[2 * i])
                if spans[at] >= 0:
                    values[place] = spans[at]
                    values[place + 1] = spans[at + 1]
                    break
            first = ends[column]


@part
def _is_quoted(buf: View, at: int, stop: int, size: int) -> bool:
    """Whether a value is written as a text: a number of ``size`` bytes or more, an integer of more
    than 128 bits, which Polars does not read, an array or an object.
    """
    if byte(buf, at) == 123 or byte(buf, at) == 91:
        return True
    if not (byte(buf, at) == 45 or 48 <= byte(buf, at) <= 57):
        return False
    if stop - at >= size:
        return True
    return stop - at > _LONGEST and _digits_end(buf, at + 1, stop) == stop


@part
def _is_escaped(c: int) -> bool:
    """Whether a byte of an array or object has an escape within a text."""
    return c == 34 or c == 92 or c < 32


@part
def _escapes(buf: View, at: int, stop: int) -> int:
    """The number of such bytes; 0 for a number."""
    if byte(buf, at) != 123 and byte(buf, at) != 91:
        return 0
    count = 0
    for i in range(at, stop):
        count += int(_is_escaped(byte(buf, i)))
    return count


@part
def _copy(buf: View, at: int, stop: int, out: View, place: int, escapes: bool) -> None:
    """Copies a value, with its escapes within a text."""
    for i in range(at, stop):
        c = byte(buf, i)
        if escapes and _is_escaped(c):
            put(out, place, 92)
            place += 1
            c = 110 if c == 10 else 114 if c == 13 else 116 if c == 9 else c
        put(out, place, c)
        place += 1


@kernel((U8, I64, I64, U8, I64, INT, _OUT, types.Array(types.uint8, 1, "C")))
def write_objects(
    buf: Bytes, spans: Longs, quoted: Longs, keys: Bytes, key_at: Longs, columns: int, ends: Longs,
    out: Bytes,
) -> int:  # fmt: skip
    """Writes rows of values as lines of JSON objects; returns the number of bytes.

    ``spans``: for each row and column begin and end of a value in ``buf``, or -1. ``quoted``: for
    each column the number of bytes from which on a number is put in quotes, as arrays and objects
    always are. ``keys``: their names with quotes and colon, at ``key_at``. ``ends``: filled with
    the end of each line. ``out`` is filled if it has room for all.
    """
    text, target = view_of(buf), view_of(out)
    size = 0
    for row in range(len(ends)):
        opened = size
        size += 1
        for column in range(columns):
            at = spans[2 * (row * columns + column)]
            if at < 0:
                continue
            stop = spans[2 * (row * columns + column) + 1]
            quote = int(_is_quoted(text, at, stop, quoted[column]))
            begin = size
            size += int(begin > opened + 1) + key_at[column + 1] - key_at[column]
            escapes = _escapes(text, at, stop) if quote else 0
            size += stop - at + escapes + 2 * quote
            if size + 2 > len(out):
                continue
            if begin > opened + 1:
                out[begin] = 44
                begin += 1
            for i in range(key_at[column], key_at[column + 1]):
                out[begin] = keys[i]
                begin += 1
            if quote:
                out[begin] = 34
                out[size - 1] = 34
                begin += 1
            _copy(text, at, stop, target, begin, escapes > 0)
        size += 2
        if size <= len(out):
            out[opened] = 123
            out[size - 2] = 125
            out[size - 1] = 10
        ends[row] = size
    return size
