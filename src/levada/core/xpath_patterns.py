"""XPath regular expressions in a syntax that two engines read.

The grammar is that of XSD 1.1 part 2, appendix G, with the additions of XPath functions 3.1, 5.6.1:
anchors, reluctant quantifiers, groups that capture or do not, back-references, flags. ``translate``
writes it piece by piece, in the order of the pattern, in the common part of the syntaxes of Rust's
engine and of Python's ``regex`` in its version 1 (where ``[[a-z]--[aeiou]]`` subtracts). Neither
engine's own classes, flags or defaults are used: each letter under the flag ``i`` is the set of its
case variants, ``\\w`` is a set of categories, an anchor says its mode. Only back-references, which
Rust's engine does not have, and anchors under the flag ``m`` differ between the two.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

from levada.core.frozen import frozen

FLAGS = frozenset("smixq")
LINE_START, LINE_END = "(?:(?m:^))", "(?:(?m:$))"
"""Anchors under the flag m, which the engines also match behind a newline that ends the text."""
MAX_LENGTH = 1 << 20
"""Characters of a translated pattern; a longer one is an error."""
MAX_SIZE = 1 << 18
"""Size of a pattern up to which an engine may write its repetitions out, in some 80 MB."""

_BLANKS = " \t\r\n"
_ESCAPED = {c: c for c in r"\|.?*+(){}$-[]^"} | {"n": "\n", "r": "\r", "t": "\t"}
_CATEGORY = re.compile("L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|Z[slp]?|S[mcko]?|C[cfon]?")
_PROPERTY = re.compile(r"\{([a-zA-Z0-9-]+)\}")
_QUANTIFIER = re.compile(r"([?*+]|\{([0-9]+)(?:(,)([0-9]*))?\})\??")
_MAX_DIGITS = 10

Range = tuple[int, int]
"""The first and the last code point of a range."""

_NAME_START = (
    "A-Z_a-z:\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_CLASSES = {
    "s": _BLANKS,
    "d": r"\p{Nd}",
    "W": r"\p{P}\p{Z}\p{C}",
    "i": _NAME_START,
    "c": _NAME_START + "0-9.\\-\xb7\u0300-\u036f\u203f\u2040",
}
"""The members of the classes that a letter names; those of the other case are their complements."""


class PatternError(ValueError):
    """A pattern or flags that are not valid."""


@frozen
class Translation:
    """A pattern as the engines read it, and its number of groups. ``size``: its characters, each
    ``{n,m}`` written out ``n`` times, counted up to ``MAX_SIZE``. ``is_regular``: whether it has no
    back-reference. ``has_line_anchors``: whether it has an anchor under the flag ``m``.
    """

    text: str
    groups: int
    size: int
    is_regular: bool
    has_line_anchors: bool


def translate(pattern: str, flags: str) -> Translation:
    """Translates an XPath pattern; raises ``PatternError`` if it or its
    flags are not valid.

    >>> translate("^A+[b-z-[x]]$", "").text
    '(?:\\\\A)A+[[b-z]--x](?:\\\\z)'
    >>> translate("k", "i").text
    '[Kk\\\\U0000212a]'
    """
    if not set(flags) <= FLAGS:
        raise PatternError("an unknown flag of a regular expression")
    if "q" in flags:
        text = "".join(_members([(ord(c), ord(c))], "i" in flags, "[]") for c in pattern)
        return Translation(_check_length(text), 0, len(text), True, False)
    return _Translator(_without_blanks(pattern) if "x" in flags else pattern, flags).run()


def _without_blanks(pattern: str) -> str:
    """Drops blanks outside of brackets, also between a backslash and its letter."""
    letters: list[str] = []
    depth, is_escaped = 0, False
    for c in pattern:
        if c in _BLANKS and not depth:
            continue
        letters.append(c)
        depth += 0 if is_escaped else (c == "[") - (c == "]" and depth > 0)
        is_escaped = c == "\\" and not is_escaped
    return "".join(letters)


class _Translator:
    """Reads a pattern from its start to its end, and writes each piece where it ends."""

    def __init__(self, pattern: str, flags: str) -> None:
        self._pattern, self._at, self._flags = pattern, 0, flags
        self._written: list[str] = []
        self._length = 0
        self._sizes = [0]
        self._groups = 0
        self._open: list[int | None] = []
        self._closed: set[int | None] = set()
        self._is_regular = True

    def run(self) -> Translation:
        while self._at < len(self._pattern):
            self._piece()
        if self._open:
            raise _invalid("a group without its end")
        text = "".join(self._written)
        lines = LINE_START in text or LINE_END in text
        return Translation(text, self._groups, self._sizes[0], self._is_regular, lines)

    def _piece(self) -> None:
        match c := self._next():
            case "(":
                self._write(self._group())
                self._sizes.append(0)
            case "|":
                self._write(c)
            case ")":
                if not self._open:
                    raise _invalid("a ) without its (")
                self._closed.add(self._open.pop())
                self._write(c)
                self._quantifier(self._sizes.pop() + 1)
            case _:
                atom = self._atom(c)
                self._write(atom)
                self._quantifier(len(atom))

    def _atom(self, c: str) -> str:
        match c:
            case ".":
                return "(?s:.)" if "s" in self._flags else r"[^\n\r]"
            case "^":
                return LINE_START if "m" in self._flags else r"(?:\A)"
            case "$":
                return LINE_END if "m" in self._flags else r"(?:\z)"
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case _ if c in "?*+{}]":
                raise _invalid(f"a {c} where it means nothing")
        return self._literal(c)

    def _next(self) -> str:
        if self._at == len(self._pattern):
            raise _invalid("an unexpected end")
        self._at += 1
        return self._pattern[self._at - 1]

    def _starts_with(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _write(self, text: str) -> None:
        self._length += len(text)
        self._written.append(_check_length(text, self._length))

    def _literal(self, c: str) -> str:
        return _members([(ord(c), ord(c))], "i" in self._flags, "[]")

    def _group(self) -> str:
        if self._starts_with("?"):
            if not self._starts_with("?:"):
                raise _invalid("a group that is not of XPath")
            self._at += 2
            self._open.append(None)
            return "(?:"
        self._groups += 1
        self._open.append(self._groups)
        return "("

    def _quantifier(self, size: int) -> None:
        """Reads the allowed repetitions of a piece of some size, and counts it."""
        least = "1"
        if (match := _QUANTIFIER.match(self._pattern, self._at)) is not None:
            least, most = match[2] or "1", match[4] or ""
            if max(len(least), len(most)) > _MAX_DIGITS or (most and int(most) < int(least)):
                raise _invalid("a quantifier without a number that fits")
            self._at = match.end()
            self._write(match[0])
        times = max(int(least), 1)
        self._sizes[-1] = min(self._sizes[-1] + size * times, MAX_SIZE + 1)

    def _escape(self) -> str:
        """The meaning of a backslash and its letters outside of brackets."""
        c = self._next()
        if c in "123456789":
            return self._reference(c)
        if c in _ESCAPED:
            return self._literal(_ESCAPED[c])
        return f"[{self._named_class(c)}]"

    def _reference(self, digits: str) -> str:
        """A back-reference, which takes further digits while there are as many groups before it.
        A group that has not matched is empty.
        """
        while (more := self._pattern[self._at : self._at + 1]) and more in "0123456789":
            if int(digits + more) > self._groups:
                break
            digits, self._at = digits + more, self._at + 1
        if int(digits) not in self._closed:
            raise _invalid("a back-reference to no group before it")
        self._is_regular = False
        same = rf"(?i-f:\{digits})" if "i" in self._flags else rf"\{digits}"
        return f"(?({digits}){same}|)"

    def _named_class(self, c: str) -> str:
        """A class that a letter or a property names, as a member of a class."""
        if c in _CLASSES:
            return _CLASSES[c]
        if c.swapcase() in _CLASSES:
            return f"[^{_CLASSES[c.swapcase()]}]"
        named = _PROPERTY.match(self._pattern, self._at) if c in "pP" else None
        if named is None:
            raise _invalid(f"an escape \\{c}")
        self._at = named.end()
        if named[1].startswith("Is"):
            return _members(_block(named[1]), False, "[]" if c == "p" else "[^]")
        if not _CATEGORY.fullmatch(named[1]):
            raise _invalid("a category that Unicode does not have")
        return rf"\{c}{{{named[1]}}}"

    def _class(self) -> str:
        """A class in brackets: a group from which each further class is subtracted."""
        levels = [self._class_group()]
        while self._starts_with("-["):
            self._at += 2
            levels.append(self._class_group())
        for _ in levels:
            if self._next() != "]":
                raise _invalid("a class that goes on behind a subtraction")
        return "".join(f"[{level}--" for level in levels[:-1]) + levels[-1] + "]" * len(levels[1:])

    def _class_group(self) -> str:
        brackets = "[]"
        if self._starts_with("^"):
            self._at += 1
            brackets = "[^]"
        ranges: list[Range] = []
        classes: list[str] = []
        while not (self._starts_with("]") or self._starts_with("-[")):
            c = self._next()
            if c == "\\" and (escaped := self._next()) not in _ESCAPED:
                classes.append(self._named_class(escaped))
                continue
            ranges.append(self._range(ord(_ESCAPED[escaped] if c == "\\" else _single(c))))
        if not ranges and not classes:
            raise _invalid("a class without a member")
        return _members(ranges, "i" in self._flags, brackets, "".join(classes))

    def _range(self, low: int) -> Range:
        """The range that starts with a letter: of that letter alone if no hyphen and letter follow,
        or if the hyphen is the last of its group.
        """
        if not self._starts_with("-") or any(map(self._starts_with, ("-[", "-]", "--["))):
            return low, low
        self._at += 1
        c = self._next()
        if c == "-":
            raise _invalid("a range up to a hyphen that is not escaped")
        high = _ESCAPED.get(self._next()) if c == "\\" else _single(c)
        if high is None or ord(high) < low:
            raise _invalid("a range whose end is not behind its start")
        return low, ord(high)


def _invalid(reason: str) -> PatternError:
    return PatternError(f"an invalid regular expression: {reason}")


def _check_length(text: str, length: int | None = None) -> str:
    if (len(text) if length is None else length) > MAX_LENGTH:
        raise _invalid("it is too long")
    return text


def _single(c: str) -> str:
    if c == "[":
        raise _invalid("a [ in brackets that is not escaped")
    return c


def _members(ranges: Sequence[Range], fold: bool, brackets: str, classes: str = "") -> str:
    """Returns a class of these ranges, with their case variants if ``fold``, and of the members
    ``classes``; without brackets if it is a letter of ASCII alone.
    """
    all_ranges = _with_variants(tuple(ranges)) if fold else ranges
    if not all_ranges and not classes:  # a block of surrogates, of which no text has any
        all_ranges = [(0, 0x10FFFF)]
        brackets = "[]" if brackets == "[^]" else "[^]"
    written = "".join(_letter(a) if a == b else f"{_letter(a)}-{_letter(b)}" for a, b in all_ranges)
    if brackets == "[]" and len(all_ranges) == 1 and len(written) == 1 and not classes:
        return written
    return brackets[:-1] + written + classes + "]"


def _letter(code: int) -> str:
    return chr(code) if chr(code).isalnum() and code < 128 else f"\\U{code:08x}"


def _block(name: str) -> list[Range]:
    """The ranges of a block of Unicode, without surrogates: no text has any."""
    # Imported late: few patterns name a block, and the package takes 0.2 s to load.
    from elementpath.regex import RegexError, unicode_subset

    try:
        points = unicode_subset(name).codepoints
    except RegexError as error:
        raise _invalid("a block that Unicode does not have") from error
    ends = [(p, p) if isinstance(p, int) else (p[0], p[1] - 1) for p in points]
    return [(a, b) for a, b in ends if not 0xD800 <= a <= 0xDFFF]


@lru_cache(maxsize=1)
def _case_variants() -> tuple[list[int], list[list[int]]]:
    """The letters that have case variants, in order, and the variants of each: the letters that
    have the same lower or the same upper case (XPath functions 5.6.2). Plane 1 has the last.
    """
    variants: defaultdict[int, set[int]] = defaultdict(set)
    for change in (str.lower, str.upper):
        same: defaultdict[str, list[int]] = defaultdict(list)
        for code in range(0x20000):
            same[change(chr(code))].append(code)
        for codes in same.values():
            if len(codes) > 1:
                for code in codes:
                    variants[code].update(codes)
    letters = sorted(variants)
    return letters, [sorted(variants[code]) for code in letters]


@lru_cache(maxsize=1024)
def _with_variants(ranges: tuple[Range, ...]) -> list[Range]:
    """Sorted ranges that are apart, of all letters of some ranges and of their case variants."""
    letters, variants = _case_variants()
    merged = _merge(sorted(ranges))
    added = {
        (code, code)
        for low, high in merged
        for code in set().union(*variants[bisect_left(letters, low) : bisect_right(letters, high)])
        if not low <= code <= high
    }
    return _merge(sorted(added.union(merged)))


def _merge(ranges: Iterable[Range]) -> list[Range]:
    merged: list[Range] = []
    for low, high in ranges:
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged
