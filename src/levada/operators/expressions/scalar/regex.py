"""XPath regular expressions as Python's (XPath functions 7.6; SPARQL 1.1, 17.4.3.14 and 15).

The flags are s, m, i, x and q. Patterns of the common subset (literal characters, escaped
punctuation, dots, single quantifiers, anchors) mean the same in both languages; the rest is
translated by elementpath, which knows character classes with subtraction, blocks and categories,
``\\i`` and ``\\c``, and refuses what XPath refuses.
"""

from __future__ import annotations

import re
from functools import lru_cache

from levada.operators.expressions.scalar.numbers import ExpressionError

_FLAGS = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE, "x": 0, "q": 0}
_ATOM = r"(?:[\w :;,<>=!@#%&'\"/~`-]|\.|\\[.\-\\$^()|*+?{}\[\]])"
_COMMON = re.compile(rf"\^?(?:{_ATOM}[*+?]?)*\$?")
_CLASSES_AND_BLANKS = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\])|[ \t\r\n]+", re.DOTALL)
_REFERENCE = re.compile(r"\\([\\$])|\$([0-9]+)|([\\$])")


@lru_cache(maxsize=1024)
def compile_(pattern: str, flags: str) -> re.Pattern[str]:
    """The Python pattern of an XPath pattern and its flags; an error if one of them is not valid.

    >>> compile_("^A.*z$", "i").search("abz") is not None
    True
    """
    if not set(flags) <= set(_FLAGS):
        raise ExpressionError("an unknown flag of a regular expression")
    options = re.NOFLAG
    for flag in flags:
        options |= _FLAGS[flag]
    if "q" in flags:
        return re.compile(re.escape(pattern), options)
    if "x" in flags:
        pattern = _CLASSES_AND_BLANKS.sub(lambda m: m.group(1) or "", pattern)
    try:
        return re.compile(_translate(pattern, options), options)
    except (re.error, OverflowError, RecursionError) as error:
        raise ExpressionError("an invalid regular expression") from error


def _translate(pattern: str, options: re.RegexFlag) -> str:
    if _COMMON.fullmatch(pattern) and not options & re.MULTILINE:
        return (
            pattern[:-1] + r"\Z"
            if pattern.endswith("$") and not pattern.endswith(r"\$")
            else pattern
        )
    # Imported late: most patterns are common, and the package takes a quarter of a second to load.
    from elementpath.regex import RegexError, translate_pattern

    try:
        # With DOTALL a dot stays a dot: Python's leaves out the newline only, as XPath says.
        return str(translate_pattern(pattern, options | re.DOTALL, xsd_version="1.1"))
    except (RegexError, ValueError) as error:
        raise ExpressionError("an invalid regular expression") from error


def replace(text: str, pattern: str, replacement: str, flags: str) -> str:
    """``fn:replace``: ``$n`` is a group, ``\\$`` and ``\\\\`` are themselves; a pattern that
    matches "" is an error.

    >>> replace("abcd", "(b)(c)", "$2$1", "")
    'acbd'
    """
    regex = compile_(pattern, flags)
    if regex.search("") is not None:
        raise ExpressionError("a pattern that matches the empty string")
    if "q" in flags:
        return regex.sub(lambda _: replacement, text)
    template = _template(replacement, regex.groups)
    return regex.sub(
        lambda m: "".join(p if isinstance(p, str) else m.group(p) or "" for p in template), text
    )


@lru_cache(maxsize=1024)
def _template(replacement: str, groups: int) -> tuple[str | int, ...]:
    """The replacement as literal parts and numbers of groups."""
    parts: list[str | int] = []
    end = 0
    for match in _REFERENCE.finditer(replacement):
        parts.append(replacement[end : match.start()])
        end = match.end()
        escaped, digits, stray = match.groups()
        if stray:
            raise ExpressionError("a stray \\ or $ in a replacement")
        parts += [escaped] if escaped else _group(digits, groups)
    return (*parts, replacement[end:])


def _group(digits: str, groups: int) -> list[str | int]:
    """``$12`` is group 12, or group 1 and a 2 if there are fewer; a group that does not exist is
    empty.
    """
    length = len(digits)
    while length > 1 and int(digits[:length]) > groups:
        length -= 1
    number = int(digits[:length])
    return ([number] if number <= groups else []) + [digits[length:]]
