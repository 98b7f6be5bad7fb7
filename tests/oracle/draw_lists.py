"""Lists of values by lot: of numbers in all forms, dates, dateTimes, texts of STR(), other terms,
as IN and as equations, beside ranges, negated, of what may be unbound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from oracle.queries import Call, Expression
from oracle.terms import XSD, string


def typed(kind: str, *texts: str) -> tuple[str, ...]:
    return tuple(f'"{text}"^^<{XSD}{kind}>' for text in texts)


EXACT = (*typed("integer", "0", "1", "2", "3", "7", "-1"), *typed("decimal", "2.5"))
FORMS = (
    *typed("integer", "01", "+3", "-0", "00"), *typed("decimal", "1.0", "-0.0", "2.50", "3."),
    *typed("double", "1e0", "-0.0", "-0.0e0", "0", "2.5E0", "1"), *typed("int", "3", "1"),
    *typed("byte", "2"), *typed("decimal", "0.1"), *typed("double", "0.1", "1e14"),
)  # fmt: skip
HARD = (
    *typed("double", "NaN", "INF", "-INF", "9007199254740992", "0.1", "1e-23", "1e-22", "1e15"),
    *typed("integer", str(2**53), str(2**53 + 1), str(10**15), str(10**15 - 1), str(10**30), "x"),
    *typed("decimal", "9007199254740992.0", "9007199254740993.0", "0.1", "0.10", f"0.{'0' * 22}1",
           f"0.{'0' * 22}10", f"0.{'0' * 21}1", "100000000000000.5", ""),
    *typed("byte", "300", "5"), *typed("float", "NaN", "INF", "1x", "1", "2.5"),
)  # fmt: skip
DAYS = typed("date", "2026-01-01", "2026-01-02", "2026-01-03", "2024-02-29")
ZONED = typed("date", "2026-01-01Z", "2026-01-02Z", "2026-01-02+14:00", "2026-01-01-10:00",
              "2026-01-04Z", "2026-02-30", "2026-1-01", "2026-02-30Z")  # fmt: skip
CLOCKS = ("2026-01-01T00:00:00", "2026-01-02T00:00:00", "2026-01-01T24:00:00",
          "2026-01-01T00:00:00.0", "2026-01-01T00:00:00.50", "2026-01-01T00:00:00.5")  # fmt: skip
LOCAL = typed("dateTime", *CLOCKS)
INSTANTS = (
    *typed("dateTime", *(f"{clock}Z" for clock in CLOCKS), "2026-01-01T02:00:00+02:00",
           "2026-01-01T00:00:00.0001Z", "2025-12-31T22:00:00-02:00"),
)  # fmt: skip
BROKEN = typed("dateTime", "2026-01-01T25:00:00", "2026-02-30T00:00:00Z", "2026-01-01", "x")
TEXTS = tuple(map(string, ("a", "b", "1", "2", "true", "http://e/a", "", "01", "2026-01-01")))
TERMS = (
    '"a"@en',
    '"b"@en',
    '"1"@en',
    "<http://e/a>",
    "<http://e/b>",
    "<a:b>",
    *typed("boolean", "true", "false", "1", "x"),
    '"a"^^<http://e/t>',
    '"1"^^<http://e/t>',
)
ALL = (*EXACT, *FORMS, *HARD, *DAYS, *ZONED, *LOCAL, *INSTANTS, *BROKEN, *TEXTS, *TERMS)
NUMBERS = (*EXACT, *EXACT, *FORMS)
Pools = tuple[Sequence[str], Sequence[str]]
POOLS: tuple[Pools, ...] = (
    (EXACT, NUMBERS), (EXACT, (*NUMBERS, *HARD)), (NUMBERS, NUMBERS), (NUMBERS, NUMBERS),
    (NUMBERS, (*NUMBERS, *HARD)), (NUMBERS, (*NUMBERS, *HARD)), (NUMBERS, ALL), (NUMBERS, ALL),
    ((*NUMBERS, *HARD), (*NUMBERS, *HARD)), (HARD, HARD), (DAYS, DAYS),
    (DAYS, (*DAYS, *ZONED)), ((*DAYS, *ZONED), (*DAYS, *ZONED, *LOCAL[:2], *INSTANTS[:2])),
    (DAYS, ALL), (LOCAL[:3], LOCAL), (LOCAL, (*LOCAL, *INSTANTS, *BROKEN)), (INSTANTS, INSTANTS),
    (INSTANTS, (*LOCAL, *INSTANTS, *DAYS, *BROKEN)), ((*LOCAL, *INSTANTS), (*LOCAL, *INSTANTS)),
    (TEXTS, (*TEXTS, *TERMS)), ((*TEXTS, *TERMS), ALL), (TERMS, (*TEXTS, *TERMS)), (ALL, ALL),
)  # fmt: skip
"""Of what the lists of a set are, and the rows beside."""
TEXTUAL = ((TEXTS, ALL), (TEXTS, (*TEXTS, *TERMS, *EXACT)), ((*TEXTS, *TERMS, *EXACT), ALL),
           ((*TEXTS, *TEXTS, *EXACT), (*TEXTS, *TERMS)))  # fmt: skip
"""The same where lists are of STR()."""
ORDER = ("<", "<=", ">", ">=")


def few(rng: Random, terms: Sequence[str], many: Sequence[int]) -> list[str]:
    return rng.sample(terms, min(len(terms), rng.choice(many)))


class Lists:
    """Conditions of a set: of few forms, on few names, with constants of one pool and lists of few
    lengths.
    """

    def __init__(self, rng: Random, names: Sequence[str]) -> None:
        self.rng = self.form = rng
        """What says which constants, and of which form a condition is."""
        self.names = names
        self.text = rng.random() < 0.25
        own, rows = rng.choice(TEXTUAL if self.text else POOLS)
        self.own = few(rng, own, (3, 4, 5, 8))
        self.rows = [*few(rng, rows, (2, 3, 6)), *rng.sample(self.own, 2)]
        forms = rng.choices((_in, _in, _equations, rng.choice(FORMS_OF)), k=2)
        self.forms = forms[: rng.choice((1, 1, 2))]
        self.lengths = rng.choice(((2,), (2,), (3,), (3,), (6,), (1, 2, 4)))

    def term(self) -> str:
        return self.rng.choice(self.own)

    def terms(self) -> tuple[str, ...]:
        return tuple(self.term() for _ in range(self.form.choice(self.lengths)))

    def subject(self) -> Expression:
        name = self.names[0] if self.form.random() < 0.85 else self.form.choice(self.names)
        of_text = self.form.random() < (0.95 if self.text else 0.02)
        return Call("str", (name,)) if of_text else name

    def condition(self) -> Call:
        """A condition of one of the set's forms; one in ten is of any."""
        form = self.form.choice(self.forms if self.form.random() < 0.9 else FORMS_OF)
        return form(self)


def _in(of: Lists) -> Call:
    return Call("in", (of.subject(), *of.terms()))


def _equations(of: Lists) -> Call:
    subject = of.subject()
    parts = [Call("=", (subject, term)) for term in (*of.terms(), of.term())]
    if of.form.random() < 0.2:
        parts = [Call("=", one.args[::-1]) for one in parts]
    return Call("||", tuple(parts))


def _both(of: Lists) -> Call:
    found = _in(of)
    return Call("||", (found, Call("=", (found.args[0], of.term()))))


def _beside(of: Lists) -> Call:
    """A list, and a range of the same or of another name."""
    found = of.form.choice((_in, _equations))(of)
    other = of.form.choice((_subject(found), of.form.choice(of.names)))
    return Call("&&", (found, Call(of.form.choice(ORDER), (other, of.term()))))


def _subject(found: Call) -> Expression:
    first = found.args[0]
    return first.args[0] if isinstance(first, Call) and first.op == "=" else first


def _two(of: Lists) -> Call:
    return Call("&&", (_in(of), Call("in", (of.form.choice(of.names), *of.terms()))))


def _differs(of: Lists) -> Call:
    return Call("&&", (_in(of), Call("!=", (of.form.choice(of.names), of.term()))))


def _out(of: Lists) -> Call:
    return Call("notin", (of.subject(), *of.terms()))


def _negated(of: Lists) -> Call:
    return Call("!", (of.form.choice((_in, _equations))(of),))


def _open(of: Lists) -> Call:
    """A list in which a name is, too."""
    return Call("in", (of.subject(), *of.terms(), of.form.choice(of.names)))


def _one(of: Lists) -> Call:
    return Call("=", (of.subject(), of.term()))


def _range(of: Lists) -> Call:
    return Call(of.form.choice(ORDER), (of.subject(), of.term()))


def _same(of: Lists) -> Call:
    """One value several times, in whatever forms."""
    term = of.term()
    return Call("in", (of.subject(), term, of.term(), term))


def _or_range(of: Lists) -> Call:
    return Call("||", (_in(of), Call(of.form.choice(ORDER), (of.form.choice(of.names), of.term()))))


def _or_unbound(of: Lists) -> Call:
    return Call("||", (_in(of), Call("!", (Call("bound", (of.form.choice(of.names),)),))))


FORMS_OF: tuple[Callable[[Lists], Call], ...] = (
    _in, _in, _equations, _both, _beside, _beside, _two, _differs, _out, _negated, _open, _one,
    _range, _same, _or_range, _or_unbound,
)  # fmt: skip
