"""XPath regular expressions in the syntax of other engines (XPath functions 7.6).

``backtracking`` is the syntax of Python's engines: character classes with subtraction, blocks,
categories, ``\\i`` and ``\\c`` are translated by elementpath, which refuses what XPath refuses.
``linear`` is that of Rust's engine, an automaton whose time is bounded by the length of the pattern
times that of the text; it is printed from Python's parse of the former, so that both mean the same.
Automata have no back-references: for a pattern with one there is no ``linear``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from levada.code_loading import load_module
from levada.operators.expressions.scalar.numbers import ExpressionError

FLAGS = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE, "x": 0, "q": 0}
LINE_START, LINE_END = r"(?<!\n\Z)^", r"$(?!\n\Z)"
"""How elementpath writes XPath's anchors, which differ from Python's at a final newline."""

_ATOM = r"(?:[\w :;,<>=!@#%&'\"/~`-]|\.|\\[.\-\\$^()|*+?{}\[\]])"
_COMMON = re.compile(rf"\^?(?:{_ATOM}[*+?]?)*\$?")
_CLASSES_AND_BLANKS = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\])|[ \t\r\n]+", re.DOTALL)


def options_of(flags: str) -> re.RegexFlag:
    """The flags s, m and i as Python's; an error for a letter that is no flag."""
    if not set(flags) <= set(FLAGS):
        raise ExpressionError("an unknown flag of a regular expression")
    options = re.NOFLAG
    for flag in flags:
        options |= FLAGS[flag]
    return options


def backtracking(pattern: str, flags: str) -> str:
    """An XPath pattern as Python's; an error if it or its flags are not valid.

    >>> backtracking("^A.*z$", "i")
    '^A.*z\\\\Z'
    """
    options = options_of(flags)
    if "q" in flags:
        return re.escape(pattern)
    if "x" in flags:
        pattern = _CLASSES_AND_BLANKS.sub(lambda m: m.group(1) or "", pattern)
    if _COMMON.fullmatch(pattern) and not options & re.MULTILINE:
        ends = pattern.endswith("$") and not pattern.endswith(r"\$")
        return pattern[:-1] + r"\Z" if ends else pattern
    # Imported late: most patterns are common, and the package takes a quarter of a second to load.
    from elementpath.regex import RegexError, translate_pattern

    try:
        # With DOTALL a dot stays a dot: Python's leaves out the newline only, as XPath says.
        return str(translate_pattern(pattern, options | re.DOTALL, xsd_version="1.1"))
    except (RegexError, ValueError, OverflowError, RecursionError) as error:
        raise ExpressionError("an invalid regular expression") from error


def linear(translated: str, options: re.RegexFlag) -> str | None:
    """A pattern of Python's in the syntax of Rust's engine; None if it has what automata have not.

    Under ``re.MULTILINE`` a ``^`` matches behind every newline, also the last: XPath's does not
    there.

    >>> linear("a(b|c)+", re.NOFLAG)
    '\\\\x{61}(?:([\\\\x{62}\\\\x{63}])){1,}'
    """
    plain = translated.replace(LINE_START, "^")
    plain = plain.replace(LINE_END, "$" if options & re.MULTILINE else r"\Z")
    # the parser of the standard library, which has no public name
    parsed = load_module("re._parser").parse(plain, options)
    try:
        text = _sequence(parsed, options)
    except _NotLinear:
        return None
    return f"(?i:{text})" if options & re.IGNORECASE else text


class _NotLinear(Exception):  # noqa: N818 (it is a decision, not a failure)
    """There is something that automata have not."""


def _sequence(items: Iterable[tuple[Any, Any]], options: re.RegexFlag) -> str:
    return "".join(_item(str(op), value, options) for op, value in items)


def _item(op: str, value: Any, options: re.RegexFlag) -> str:
    match op:
        case "LITERAL":
            return _letter(value)
        case "NOT_LITERAL":
            return f"[^{_letter(value)}]"
        case "ANY":
            return "(?s:.)" if options & re.DOTALL else r"[^\n]"
        case "IN":
            return _class(value)
        case "AT":
            return _anchor(str(value), options)
        case "BRANCH":
            return "(?:" + "|".join(_sequence(part, options) for part in value[1]) + ")"
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, inner = value
            above = "" if str(most) == "MAXREPEAT" else str(most)
            lazy = "?" if op == "MIN_REPEAT" else ""
            return f"(?:{_sequence(inner, options)}){{{least},{above}}}{lazy}"
        case "SUBPATTERN":
            group, added, removed, inner = value
            if added or removed:
                raise _NotLinear
            return f"({'?:' if group is None else ''}{_sequence(inner, options)})"
    raise _NotLinear


def _anchor(name: str, options: re.RegexFlag) -> str:
    lines = bool(options & re.MULTILINE)
    match name:
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return "(?m:^)" if lines and name == "AT_BEGINNING" else r"\A"
        case "AT_END_STRING":
            return r"\z"
        case "AT_END" if lines:
            return "(?m:$)"
    raise _NotLinear


# as Python's, whose blanks are some more than Unicode's and whose words are letters and numbers
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\p{Nd}",
    "CATEGORY_NOT_DIGIT": r"\P{Nd}",
    "CATEGORY_SPACE": r"\s\x{1c}-\x{1f}",
    "CATEGORY_NOT_SPACE": r"[^\s\x{1c}-\x{1f}]",
    "CATEGORY_WORD": r"\p{L}\p{N}_",
    "CATEGORY_NOT_WORD": r"[^\p{L}\p{N}_]",
}


def _class(items: Iterable[tuple[Any, Any]]) -> str:
    parts: dict[str, Callable[[Any], str]] = {
        "NEGATE": lambda _: "^",
        "LITERAL": _letter,
        "RANGE": lambda ends: _range(*ends),
        "CATEGORY": lambda name: _CATEGORIES[str(name)],
    }
    return "[" + "".join(parts[str(op)](value) for op, value in items) + "]"


def _letter(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        raise _NotLinear  # no text has one
    return f"\\x{{{code:x}}}"


def _range(low: int, high: int) -> str:
    """A range, whose ends may be surrogates: no text has these."""
    low = 0xE000 if 0xD800 <= low <= 0xDFFF else low
    high = 0xD7FF if 0xD800 <= high <= 0xDFFF else high
    return f"{_letter(low)}-{_letter(high)}" if low <= high else ""
