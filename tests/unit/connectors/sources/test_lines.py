"""The boundary kernels equal twins that split bytes in plain Python."""

import csv
import io
import re
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.text.byte_ops import view_of
from levada.kernels.text.csv_records import (
    OPEN_QUOTE,
    RECORD_BYTES,
    RECORD_LINES,
    SOUND,
    STRAY_QUOTE,
    cut_records,
    scan_records,
)
from levada.kernels.text.line_boundaries import (
    GRAPH,
    SUBJECT,
    cut_blocks,
    cut_descriptions,
    cut_groups,
    cut_lines,
    number_blocks,
    number_elements,
)
from levada.kernels.text.subject_descriptions import PARTS, new_walk, step
from levada.kernels.text.subject_runs import count_byte, cut_subjects

LINES = st.sampled_from(
    [
        "<s1> <p> <o> .",
        "<s1> <p> <o2> .",
        "<s2> <p> <o> .",
        "  <s2> <p> <o> .",
        "_:b <p> <o> .",
        "_:b <p> _:o .",
        "_:c <p> _:b .",
        "_:o <p> <o> .",
        "_:c <p> _:c .",
        "<s1> <p> _:b.",
        "<s2> <p> _:c .",
        '<s1> <p> "a \\" <g> b"@en <g1> .',
        '<s1><p>"1"^^<http://x#integer><g1>.',
        "<s2> <p> _:o <g1> .",
        "<s2> <p> _:o <g2> . # comment",
        "<s2> <p> <o> _:g .",
        '<s1> <p> "x" "12"^^<t> .',
        "# comment",
        "   # comment",
        "",
        " \t",
        "garbage",
        "<s1",
        "<s1> <p>",
    ]
)
ENDS = st.sampled_from(["\n", "\n", "\r\n"])
TEXTS = st.lists(st.tuples(LINES, ENDS), max_size=20).map(
    lambda parts: "".join(a + b for a, b in parts)
)
TERM = r'(<[^>]*>|_:[^\s<"]+|"(?:[^"\\]|\\.)*"(?:\^\^<[^>]*>|@[\w-]+)?)'


def buffer(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def is_element(line: str) -> bool:
    return bool(line.strip(" \t\r\n")) and not line.lstrip(" \t").startswith("#")


def twin_cut_lines(text: str, rows: int, last: bool) -> tuple[int, int]:
    done = elements = 0
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n") and not last:
            break
        if is_element(line):
            if elements == rows:
                break
            elements += 1
        done += len(line.encode())
    return done, elements


def twin_key(line: str, element: int) -> str | None:
    line = line.strip()
    if not line.startswith(("<", "_:")):
        return None
    terms = re.findall(TERM, line.split(" #")[0])
    if element == SUBJECT:
        return terms[0] if terms else line
    if len(terms) < 3:
        return None
    return terms[3] if len(terms) > 3 and terms[3].startswith(("<", "_:")) else ""


class Part:
    """An element as far as its lines are known, or what may belong to it behind that."""

    def __init__(self, at: int, iri: str | None = None) -> None:
        self.at, self.iri = at, iri
        self.named: set[str] = set()
        self.described: set[str] = set()
        self.referred: set[str] = set()

    def add(self, other: "Part") -> None:
        self.named |= other.named
        self.described |= other.described
        self.referred |= other.referred


def twin_object(line: str) -> str:
    terms = re.findall(TERM, line.strip().split(" #")[0])
    blank = len(terms) > 2 and terms[1].startswith("<") and terms[2].startswith("_:")
    return terms[2].rstrip(".") if blank else ""


def twin_descriptions(text: str) -> list[int]:
    """The byte at which each element by subject begins."""
    starts: list[int] = []
    at, last = 0, None
    parts: list[Part] = []

    def merge(into: int) -> None:
        for part in parts[into + 1 :]:
            parts[into].add(part)
        del parts[into + 1 :]

    def release(n: int) -> None:
        starts.extend(part.at for part in parts[:n])
        del parts[:n]

    for line in text.splitlines(keepends=True):
        s, o = twin_key(line, SUBJECT), twin_object(line)
        if s is not None and s != last:
            indices = range(len(parts) - 1, -1, -1)
            named = next((i for i in indices if s in parts[i].named), -1)
            inner = next((i for i in indices if o in parts[i].described), -1)
            iri = parts[0].iri if parts else None
            if s.startswith("_:"):
                if any(o in part.referred for part in parts):
                    inner = -1
                home = named if named >= 0 else inner
                if home >= 0:
                    merge(home)
                else:
                    if len(parts) == PARTS:
                        release(1)
                    parts.append(Part(at))
            elif s == iri and (inner > 0 or len(parts) == 1):
                merge(0)
            elif s != iri and (inner > 0 or (inner == 0 and iri is None)):
                merge(inner)
                release(inner)
                parts[0].iri = s
            else:
                release(len(parts))
                parts.append(Part(at, s))
        if s is not None:
            part, last = parts[-1], s
            part.described |= {s}
            part.named |= {s, o} - {""}
            part.referred |= {o} - {"", s}
        at += len(line.encode())
    release(len(parts))
    return starts


def twin_groups(text: str, element: int) -> list[int]:
    """The byte at which each element begins."""
    if element == SUBJECT:
        return twin_descriptions(text)
    starts, at, current = [], 0, None
    for line in text.splitlines(keepends=True):
        key = twin_key(line, element)
        if key is not None and key != current:
            starts.append(at)
            current = key
        at += len(line.encode())
    return starts


@given(TEXTS, st.integers(0, 8), st.booleans(), st.sampled_from(["", "<s9> <p> <o> ."]))
def test_lines_equal_the_twin(text: Any, rows: Any, last: Any, tail: Any) -> None:
    text += tail
    assert cut_lines(buffer(text), rows, last) == twin_cut_lines(text, rows, last)


def test_a_subject_that_is_cut_off_is_not_continued() -> None:
    text = "<s1\n<s1> <p> <o> .\n<s1> <p> <o2> .\n<s2> <p> <o> .\n"
    assert cut_groups(buffer(text), SUBJECT, 1, True) == (4, 1)
    assert cut_groups(buffer(text), SUBJECT, 2, True) == (4 + 15 + 16, 2)


@given(
    st.lists(TEXTS, max_size=4),
    st.sampled_from((0, 3, 400, 1100)),
    st.integers(0, 3000),
    st.booleans(),
)
def test_lines_that_are_counted_by_blocks_equal_the_twin(
    odd: Any, plain: Any, rows: Any, last: Any
) -> None:
    block = "<http://example.org/subject> <http://example.org/predicate> <o> .\n" * plain
    text = block.join(["", *odd, ""])
    assert cut_lines(buffer(text), rows, last) == twin_cut_lines(text, rows, last)


@given(TEXTS, st.sampled_from([SUBJECT, GRAPH]), st.integers(1, 6))
def test_groups_equal_the_twin(text: Any, element: Any, rows: Any) -> None:
    text = text.replace("<s1\n", "<s1> <p> <o> .\n").replace("<s1\r\n", "<s1> <p> <o> .\n")
    starts = twin_groups(text, element)
    stop = starts[rows] if len(starts) > rows else len(text)
    assert cut_groups(buffer(text), element, rows, True) == (stop, min(rows, len(starts)))


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 20)), max_size=60),
    st.lists(TEXTS, max_size=2),
    st.data(),
)
def test_guessed_groups_equal_those_line_by_line(elements: Any, odd: Any, data: Any) -> None:
    """Elements that look alike, of lines of changing lengths, with odd lines and lines with more to
    them in between.
    """
    parts = [
        "".join((f"<http://example.org/{'s' * (subject % 3)}{subject}> <p{line % 3}> "
                f"\"{'x' * (line * subject % 5)}\" .\n") for line in range(lines))
        for subject, lines in elements
    ]  # fmt: skip
    for text in odd:
        parts.insert(data.draw(st.integers(0, len(parts))), text.replace("\r", ""))
    text = "".join(parts)
    rows, last = data.draw(st.integers(0, len(parts) + 2)), data.draw(st.booleans())
    assert cut_groups(buffer(text), SUBJECT, rows, last) == cut_descriptions(
        buffer(text), rows, last
    )
    at, before = cut_subjects(buffer(text), rows)
    assert before <= rows and (at == 0 or text[at - 1] == "\n")
    assert count_byte(buffer(text), len(text), 10) == text.count("\n")


def test_a_newline_that_a_guess_jumps_over_is_found() -> None:
    """The second element's only line is as long as the first's, but two lines and another subject
    are in it.
    """
    a = "<http://example.org/a> <http://example.org/p> <http://example.org/o> .\n"
    b = "<http://example.org/b> <http://example.org/p> .\n<c> <p> <oooooooooo> .\n"
    assert len(a) == len(b)
    text = a + b + a * 4 + "<http://example.org/d> <p> <o> .\n" * 4
    assert cut_subjects(buffer(text), 10) == (0, 0)
    assert cut_groups(buffer(text), SUBJECT, 10, True) == (len(text), 5)


@given(TEXTS, st.sampled_from([SUBJECT, GRAPH]), st.integers(1, 6))
def test_the_last_group_of_a_growing_file_is_held_back(text: Any, element: Any, rows: Any) -> None:
    stop, elements = cut_groups(buffer(text), element, rows, False)
    whole, most = cut_groups(buffer(text), element, rows, True)
    again = cut_groups(buffer(text + "<next> <p> <o> <gn> .\n"), element, rows, False)
    assert most - (1 if element == GRAPH else PARTS) <= elements <= most
    assert again == ((whole, most) if most else (len(text), 0))
    assert stop <= whole


@given(TEXTS, st.sampled_from([SUBJECT, GRAPH]), st.integers(1, 5))
def test_numbers_do_not_depend_on_the_cut(text: Any, element: Any, rows: Any) -> None:
    """Elements numbered in pieces are those of the whole: cuts fall between elements."""
    lines = [m.start() for m in re.finditer(r"[^\n]*\n", text) if is_element(m[0])]
    whole = number_elements(buffer(text), np.array(lines, np.int64), element)
    pieces, at, first = [], 0, 0
    while at < len(text):
        stop, elements = cut_groups(buffer(text[at:]), element, rows, True)
        inside = [line - at for line in lines if at <= line < at + stop]
        pieces += [
            first + int(e)
            for e in number_elements(
                buffer(text[at : at + stop]), np.array(inside, np.int64), element
            )
        ]
        at, first = at + stop, first + elements
    assert pieces == whole.tolist()


def test_a_malformed_line_does_not_split_an_element_unless_it_has_a_subject() -> None:
    text = "<s> <p> 1 .\ngarbage\n# c\n<s> <p> 2 .\n<t> oops\n<s> <p> 3 .\n"
    lines = np.array([0, text.index("<s> <p> 2"), text.index("<s> <p> 3")], np.int64)
    assert number_elements(buffer(text), lines, SUBJECT).tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("<o> p _:a|_:a q 1|<o> r 2|<n> p 1", "0001"),  # a node behind what refers to it
        ("_:a q 1|<o> p _:a|_:b q 2|<o> r _:b|<n> p 1", "00001"),  # a node before that
        ("_:c q 1|_:b r _:c|<o> p _:b|_:d q 1|<n> p _:d", "00011"),  # one within another
        ("<o> p _:l|_:l first 1|_:l rest _:m|_:m first 2|_:m rest nil|<o> r 2", "000000"),
        ("_:m first 2|_:l rest _:m|<o> p _:l|<n> p 1", "0001"),  # a list from its end
        ("_:a q 1|_:b q 1|_:c q 1|<n> p 1", "0123"),  # subjects that are blank nodes
        ("_:a p _:s|_:s q 1|_:b p _:s|_:s q 2", "0011"),
        ("<o> p _:a|_:a q _:b|_:b q _:a|<n> p _:a|_:a q 2", "00011"),  # a circle, a shared node
        ("_:a q _:b|_:b q _:a|<o> p _:a|<n> p _:a", "0001"),
        ("<o> p 1|_:z q 1|<o> p 2|_:y q 1", "0123"),
        ("_:a q 1|_:b q 1|<o> p _:a|<o> p _:b", "0000"),
        ("<o> p 1|_:a q 1|_:b q 1|_:c q 1|_:b r _:c|_:a r _:b|<o> p _:a|<n> p 1", "00000001"),
        ("<o> p 1|_:a q 1|_:b q 1|<n> p _:b", "0122"),
        ("|".join(f"_:a{i} q 1" for i in range(12)), "0123456789"),
    ],
)
def test_blank_nodes_belong_to_the_subject_beside_them(text: str, numbers: str) -> None:
    lines = [re.sub(r" ([a-z]+)", r" <\1>", line) + " .\n" for line in text.split("|")]
    starts = np.cumsum([0, *map(len, lines[:-1])])
    found = number_elements(buffer("".join(lines)), starts.astype(np.int64), SUBJECT)
    assert "".join(map(str, found))[:10] == numbers


def test_labels_of_elements_that_are_over_take_no_room_for_good() -> None:
    parts = [f"<s{i}> <p> _:a{i} .\n_:a{i} <p> _:b{i} .\n_:b{i} <p> <o> .\n" for i in range(2000)]
    text = "".join(parts)
    assert cut_descriptions(buffer(text), 5000, True) == (len(text), 2000)
    chain = "<s> <p> _:n0 .\n" + "".join(f"_:n{i} <p> _:n{i + 1} .\n" for i in range(3000))
    assert cut_descriptions(buffer(chain + text), 5000, True) == (len(chain + text), 2001)


def known_slot(label: str) -> int:
    """Where a table of 1,024 labels would have a label by a hash that everybody can compute."""
    hashed = 14695981039346656037
    for char in label.encode():
        hashed = (hashed ^ char) * 1099511628211 % 2**64
    hashed = (hashed ^ (hashed >> 29)) * 0xBF58476D1CE4E5B9 % 2**64
    return ((hashed ^ (hashed >> 32)) >> 1) % 1024


@pytest.mark.long
def test_labels_with_near_slots_by_a_known_hash_are_spread_over_the_table() -> None:
    chosen = [label for i in range(40_000) if known_slot(label := f"_:x{i}") < 16][:400]
    ends = np.cumsum([len(label) + 1 for label in chosen]) - 1
    starts = ends - [len(label) for label in chosen]

    @numba.njit
    def table_of(text, starts, ends):  # type: ignore[no-untyped-def]
        walk, view = new_walk(), view_of(text)
        for at, end in zip(starts, ends):  # noqa: B905 (numba has no strict)
            step(walk, view, at, at, end, 0, 0)
        return walk.label

    table = table_of(buffer(" ".join(chosen)), starts, ends)
    there = "".join("x" if label else " " for label in table)
    assert there.count("x") == len(chosen) > 300
    assert max(map(len, there.split())) < 100


def twin_blocks(text: str) -> list[tuple[int, int]]:
    """The byte at which each block begins, and the one behind the blank line that ends it (or the
    text's end).
    """
    blocks, at, inside = [], 0, False
    for line in text.splitlines(keepends=True):
        if not line.strip(" \t\r\n"):
            if inside:
                blocks[-1] = (blocks[-1][0], at + len(line))
            inside = False
        elif not inside and is_element(line):
            blocks.append((at, len(text)))
            inside = True
        at += len(line)
    return blocks


@given(TEXTS, st.integers(1, 6))
def test_blocks_equal_the_twin(text: Any, rows: Any) -> None:
    blocks = twin_blocks(text)
    stop = blocks[rows][0] if len(blocks) > rows else len(text)
    assert cut_blocks(buffer(text), rows, True) == (stop, min(rows, len(blocks)))
    stop, whole = cut_blocks(buffer(text), 1000, False)
    closed = [b for b in blocks if b[1] < len(text) or re.search(r"\n[ \t\r]*\n$", text)]
    assert whole == len(closed) and (not closed or stop >= closed[-1][1])


@given(TEXTS, st.integers(1, 5))
def test_numbers_of_blocks_do_not_depend_on_the_cut(text: Any, rows: Any) -> None:
    lines = [m.start() for m in re.finditer(r"[^\n]*\n", text) if is_element(m[0])]
    whole = number_blocks(buffer(text), np.array(lines, np.int64)).tolist()
    starts = [start for start, _ in twin_blocks(text)]
    assert whole == [sum(start <= line for start in starts) - 1 for line in lines]
    pieces, at, first = [], 0, 0
    while at < len(text):
        stop, elements = cut_blocks(buffer(text[at:]), rows, True)
        inside = np.array([line - at for line in lines if at <= line < at + stop], np.int64)
        pieces += [first + int(e) for e in number_blocks(buffer(text[at : at + stop]), inside)]
        at, first = at + stop, first + elements
    assert pieces == whole


FIELDS = st.text(st.sampled_from('ab,"\n\r '), max_size=5)


@settings(max_examples=200)
@given(
    st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 9),
)
def test_records_equal_the_csv_module(rows: Any, end: Any, most: Any) -> None:
    rows = [row for row in rows if row != [""]]
    out = io.StringIO()
    csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    text = buffer(out.getvalue())
    start, stop, fields, fault = scan_records(text, 44)
    n = len(start)
    assert n == len(rows)
    assert fields[:n].tolist() == [len(row) for row in rows]
    assert (fault[:n] == SOUND).all()
    for i in range(n):
        record = text[start[i] : stop[i]].tobytes().decode()
        assert next(csv.reader(io.StringIO(record, newline=""))) == rows[i]
    cut, records = cut_records(text, most, True, 44)
    assert records == min(most, n)
    assert cut == (int(start[most]) if most < n else len(text))


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a,b\n\n\r\nc,d\n", [SOUND, SOUND]),
        ('a"b,c\nd,e\n', [STRAY_QUOTE, SOUND]),
        ('"a"b,c\nd,e', [STRAY_QUOTE, SOUND]),
        ('d,e\n"a,c\nd', [SOUND, OPEN_QUOTE, SOUND]),
        ("a\rb,c\nd,e\r\n", [SOUND, SOUND, SOUND]),
        ('a,"b\nc,d\ne,"f",g\n', [OPEN_QUOTE, SOUND, SOUND]),
        ('a,"b\nc"x,d\ne,f\n', [OPEN_QUOTE, STRAY_QUOTE, SOUND]),
    ],
)
def test_what_is_wrong_with_a_record(text: str, faults: Any) -> None:
    assert scan_records(buffer(text), 44).fault.tolist() == faults


def test_a_record_without_newline_is_held_back_while_the_file_grows() -> None:
    assert cut_records(buffer('1,"x\ny"\n2,"z\n'), 9, False, 44) == (8, 1)
    assert cut_records(buffer("1,2\n3,4"), 9, False, 44) == (4, 1)
    assert cut_records(buffer("1,2\n3,4"), 9, True, 44) == (7, 2)


def test_an_open_quote_takes_its_own_line_alone() -> None:
    many = "3,c\n" * RECORD_LINES
    head = '1,a\n2,"b\n'
    # fewer lines than a record may have: the quote may still be closed
    assert cut_records(buffer(head + "3,c\n" * 9), 99, False, 44) == (4, 1)
    assert cut_records(buffer(head + many), 9, False, 44)[1] == 9
    found = scan_records(buffer(head + many), 44)
    assert found.fault[:3].tolist() == [SOUND, OPEN_QUOTE, SOUND]
    assert len(found.start) == RECORD_LINES + 2
    # fewer lines, but more bytes
    wide = head + ("3," + "c" * 5000 + "\n") * (RECORD_BYTES // 5000 + 1)
    assert cut_records(buffer(wide), 9, False, 44)[1] == 9
    # a record of one line is as long as it likes
    long = '1,"' + "c" * (RECORD_BYTES * 2) + '"\n2,b\n'
    assert scan_records(buffer(long), 44).fault.tolist() == [SOUND, SOUND]


@settings(max_examples=300)
@given(st.text(st.sampled_from('ab,"\n\r'), max_size=60), st.integers(1, 5), st.data())
def test_records_are_the_same_however_they_are_cut(text: str, most: int, data: Any) -> None:
    """What a task finds in a range is what the driver counted, and ranges make up the whole."""
    whole = scan_records(buffer(text), 44)
    at, found, faults = 0, [], []
    seen = data.draw(st.integers(0, len(text)))  # the file as it was at first
    for size, last in ((seen, False), (len(text), True)):
        while True:
            length, records = cut_records(buffer(text[at:size]), most, last, 44)
            if not length:
                break
            part = scan_records(buffer(text[at : at + length]), 44)
            assert len(part.start) == records
            found += (part.start + at).tolist()
            faults += part.fault.tolist()
            at += length
    assert at == len(text)
    assert (found, faults) == (whole.start.tolist(), whole.fault.tolist())
