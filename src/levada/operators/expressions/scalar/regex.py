"""REGEX and REPLACE (XPath functions 7.6; SPARQL 1.1, 17.4.3.14 and 15), over many texts at once.

The flags are s, m, i, x and q. Patterns run on Polars' engine, an automaton: the time for a text is
proportional to its length times the pattern's. A pattern that this engine does not support (a
back-reference, a pattern that is too large for it, ``^`` and ``$`` with the flag m in a text that
ends with a newline) runs on a backtracking engine, for ``MOST_SECONDS`` a text at most: a text that
takes longer is an error. The steps of all texts of an operator are counted (``Account``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import polars as pl
import regex as tries

from levada.core import query_limits
from levada.core import xpath_patterns as syntax
from levada.core.expression_budget import Account, unlimited_account
from levada.core.frozen import frozen
from levada.operators.expressions.scalar.numbers import ExpressionError

MOST_SECONDS = 1.0
"""The seconds that a text may take on the backtracking engine."""

_REFERENCE = re.compile(r"\\([\\$])|\$([0-9]+)|([\\$])")


@frozen
class Regex:
    """A valid pattern. ``linear``: how Polars' engine has it, or None; ``has_line_anchors``:
    whether that means something else in a text that ends with a newline.
    """

    linear: str | None
    has_line_anchors: bool
    tried: str
    groups: int
    literal: bool

    def search(self, texts: pl.Series, account: Account | None = None) -> pl.Series:
        """Whether the pattern matches somewhere in each text; null where that is not known in time.

        >>> compile_("(a)b*$", "").search(pl.Series(["ba", "bc"])).to_list()
        [True, False]
        """
        if self.linear is None:
            return self._search_each(texts, lambda p, t: _search(p, t), account)
        done = texts.str.contains(self.linear)
        return self._retry_newline_texts(texts, done, lambda r, rest: r.search(rest, account))

    def replace_all(
        self, texts: pl.Series, replacement: str, account: Account | None = None
    ) -> pl.Series:
        """Each text with all matches replaced; null where that is not known in time. An error if
        the replacement is not valid, or if the pattern matches the empty string.
        """
        if self.search(pl.Series([""]), account).item():
            raise ExpressionError("a pattern that matches the empty string")
        template = (replacement,) if self.literal else _template(replacement, self.groups)
        texts = self._check_lengths(texts, template, account or unlimited_account())
        if self.linear is None:
            return self._search_each(texts, lambda p, t: _sub(p, template, t), account)
        value = "".join(
            p.replace("$", "$$") if isinstance(p, str) else f"${{{p}}}" for p in template
        )
        done = texts.str.replace_all(self.linear, value)
        return self._retry_newline_texts(
            texts, done, lambda r, rest: r.replace_all(rest, replacement, account)
        )

    def _check_lengths(
        self, texts: pl.Series, template: Sequence[str | int], account: Account
    ) -> pl.Series:
        """The texts, null where the replaced one may be too long: each ``$n`` may be a whole match,
        and there are at most as many matches as characters.
        """
        parts = [p for p in template if isinstance(p, str)]
        most = 1 + len(template) - len(parts) + sum(len(p.encode()) for p in parts)
        sizes = texts.str.len_bytes().fill_null(0).to_numpy().astype(np.int64)
        if int(sizes.max(initial=0)) * most <= query_limits.LONGEST_TEXT // max(len(texts), 1):
            account.add(0)
            return texts
        if self.linear is not None:
            counts = texts.str.count_matches(self.linear).fill_null(0).to_numpy().astype(np.int64)
            written = sum(len(p.encode()) for p in parts)
            sizes = sizes * (1 + len(template) - len(parts)) + counts * written
        else:
            sizes = sizes * most
        return texts.set(pl.Series(account.make(sizes)), None)

    def _retry_newline_texts(
        self, texts: pl.Series, done: pl.Series, again: Callable[[Regex, pl.Series], pl.Series]
    ) -> pl.Series:
        """The values of the texts that end with a newline from the other engine, if need be."""
        if not self.has_line_anchors:
            return done
        other = Regex(None, False, self.tried, self.groups, self.literal)
        rows = texts.str.ends_with("\n").fill_null(False).arg_true()
        return done.scatter(rows, again(other, texts.gather(rows))) if len(rows) else done

    def _search_each(self, texts: pl.Series, of: _Try, account: Account | None) -> pl.Series:
        pattern, charged = _compile_tries(self.tried), account or unlimited_account()
        return pl.Series(
            [None if t is None else _in_time(of, pattern, t, charged) for t in texts.to_list()]
        )


_Try = Callable[["tries.Pattern[str]", str], "bool | str"]


def _in_time(
    of: _Try, pattern: tries.Pattern[str], text: str, account: Account
) -> bool | str | None:
    account.look()
    try:
        return of(pattern, text)
    except TimeoutError:
        return None


@lru_cache(maxsize=1024)
def _compile_tries(translated: str) -> tries.Pattern[str]:
    try:
        return tries.compile(translated, tries.VERSION1, cache_pattern=False)
    except (tries.error, OverflowError, RecursionError) as error:
        raise ExpressionError("an invalid regular expression") from error


def _search(pattern: tries.Pattern[str], text: str) -> bool:
    # concurrent: other threads go on
    return pattern.search(text, concurrent=True, timeout=MOST_SECONDS) is not None


def _sub(pattern: tries.Pattern[str], template: Sequence[str | int], text: str) -> str:
    return pattern.sub(
        lambda m: "".join(p if isinstance(p, str) else m.group(p) or "" for p in template),
        text,
        concurrent=True,
        timeout=MOST_SECONDS,
    )


@lru_cache(maxsize=1024)
def compile_(pattern: str, flags: str) -> Regex:
    """Compiles an XPath pattern with flags; an error if one of them is not valid."""
    try:
        translated = syntax.translate(pattern, flags)
    except syntax.PatternError as error:
        raise ExpressionError(str(error)) from None
    linear = translated.text if translated.is_regular and _runs(translated.text) else None
    if (linear is None or translated.has_line_anchors) and translated.size > syntax.MAX_SIZE:
        raise ExpressionError("a regular expression that is too large")
    tried = translated.text
    for anchor in (syntax.LINE_START, syntax.LINE_END):
        tried = tried.replace(anchor, rf"(?:{anchor}(?<!\n\Z))")
    if linear is None:
        _compile_tries(tried)  # an error if the pattern is not valid there, either
    has_line_anchors = translated.has_line_anchors and linear is not None
    return Regex(linear, has_line_anchors, tried, translated.groups, "q" in flags)


def _runs(linear: str) -> bool:
    """Whether Polars' engine takes a pattern; there is a bound on its size."""
    try:
        pl.Series([""]).str.contains(linear)
    except pl.exceptions.ComputeError:
        return False
    return True


@lru_cache(maxsize=1024)
def _template(replacement: str, groups: int) -> tuple[str | int, ...]:
    """The replacement as literal parts and numbers of groups: ``$n`` is a group, ``\\$`` and
    ``\\\\`` are themselves.
    """
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
    number, length = int(digits[0]), 1
    while length < len(digits) and 10 * number + int(digits[length]) <= groups:
        number, length = 10 * number + int(digits[length]), length + 1
    return ([number] if number <= groups else []) + [digits[length:]]
