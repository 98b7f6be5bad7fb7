"""Random SQL over the windows of two streams, as texts that CQL and DuckDB read alike.

``{A a}`` stands for the stream A in a window under the name a (``support.sql_judge``). Left out is
only what engines decide differently: quotients, casts of fractions, and orders of equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

Types = dict[str, str]
INT, DOUBLE, TEXT, BOOL = "integer", "double", "string", "boolean"
COLUMNS: Mapping[str, Types] = {
    "A": {"k": INT, "v": DOUBLE, "s": TEXT},
    "B": {"k": INT, "w": INT, "s": TEXT},
}
CONSTANTS = {
    INT: ("0", "1", "2", "3", "-1"), DOUBLE: ("0.5", "1.0", "2.5", "-1.5"),
    TEXT: ("''", "'a'", "'ab'", "'b c'"), BOOL: ("True", "False"),
}  # fmt: skip


class Draw:
    """Draws one query; ``types`` are those of its columns after ``text``."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.aliases = iter("abcdefghijklmnop")
        self.types: Types = {}

    def text(self) -> str:
        """A query."""
        kind = self.rng.choice(("rows", "rows", "groups", "groups", "sets", "numbers", "cut"))
        match kind:
            case "groups":
                return self._groups()
            case "sets":
                return self._sets()
            case "numbers":
                return self._numbers()
            case "cut":
                return self._cut()
            case _:
                return self._rows()

    # -- expressions --

    def value(self, columns: Types, kind: str, depth: int = 2) -> str:
        """An expression of a type over some columns."""
        rng = self.rng
        own = [name for name, column_type in columns.items() if column_type == kind]
        if kind == BOOL:
            return self.condition(columns, depth)
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(own) if own and rng.random() < 0.8 else rng.choice(CONSTANTS[kind])

        def inner(of: str = kind) -> str:
            return self.value(columns, of, depth - 1)

        general: tuple[Callable[[], str], ...] = (
            lambda: (
                f"Case When {self.condition(columns, depth - 1)} Then {inner()} "
                + (f"Else {inner()} End" if rng.random() < 0.6 else "End")
            ),
            lambda: f"Coalesce({inner()}, {inner()})",
            lambda: f"NullIf({inner()}, {inner()})",
        )
        numeric: tuple[Callable[[], str], ...] = (
            lambda: f"({inner()} {rng.choice('+-*')} {inner()})",
            lambda: f"({inner()} % {inner()})",
            lambda: f"Abs({inner()})",
            lambda: f"{rng.choice(('Greatest', 'Least'))}({inner()}, {inner()})",
            lambda: f"(- {inner()})",
        )
        by_kind: dict[str, tuple[Callable[[], str], ...]] = {
            INT: (*numeric, lambda: f"Length({inner(TEXT)})",
                  lambda: f"Position({inner(TEXT)} In {inner(TEXT)})"),
            DOUBLE: (*numeric, lambda: f"Floor({inner()})", lambda: f"Ceil({inner()})",
                     lambda: f"Cast({inner(INT)} As Double)"),
            TEXT: (
                lambda: f"({inner()} || {inner()})", lambda: f"Upper({inner()})",
                lambda: f"Replace({inner()}, 'b', {inner()})", lambda: f"Trim({inner()})",
                lambda: f"Substring({inner()} From 2 For 2)", lambda: f"Reverse({inner()})",
                lambda: f"Cast({inner(INT)} As Varchar)", lambda: f"Lpad({inner()}, 4, 'x')",
            ),
        }  # fmt: skip
        drawn: str = rng.choice((*by_kind[kind], *general))()
        return drawn

    def condition(self, columns: Types, depth: int = 2) -> str:
        """A condition on some columns."""
        rng = self.rng
        kind = rng.choice((INT, DOUBLE, TEXT))

        def inner(of: str = kind) -> str:
            return self.value(columns, of, max(depth - 1, 0))

        def both() -> str:
            one, other = (self.condition(columns, depth - 1) for _ in "12")
            return f"({one} {rng.choice(('And', 'Or'))} {other})"

        choices: list[Callable[[], str]] = [
            lambda: f"{inner()} {rng.choice(('=', '<>', '<', '<=', '>', '>='))} {inner()}",
            lambda: f"{inner()} Is {rng.choice(('', 'Not '))}Null",
            lambda: f"{inner()} {rng.choice(('', 'Not '))}In ({inner()}, {inner()}, Null)",
            lambda: f"{inner()} {rng.choice(('', 'Not '))}Between {inner()} And {inner()}",
            lambda: (
                f"{inner(TEXT)} {rng.choice(('', 'Not '))}Like "
                f"'{rng.choice(('a%', '%b', '_', '%b%', 'a_'))}'"
            ),
            lambda: f"{inner()} Is {rng.choice(('', 'Not '))}Distinct From {inner()}",
        ]
        if depth > 0:
            choices += [both, lambda: f"(Not {self.condition(columns, depth - 1)})"]
        return f"({rng.choice(choices)()})"

    # -- tables --

    def table(self) -> tuple[str, Types]:
        """A table of From, and its columns with their alias."""
        stream, alias = self.rng.choice("AB"), next(self.aliases)
        columns = {f"{alias}.{name}": kind for name, kind in COLUMNS[stream].items()}
        return f"{{{stream} {alias}}}", columns

    def tables(self) -> tuple[str, Types]:
        """One table, or a join of two or three."""
        text, columns = self.table()
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            other, more = self.table()
            word = self.rng.choice(("Join", "Left Join", "Left Join", "Right Join", "Full Join"))
            one = self.rng.choice([c for c in columns if c.endswith((".k", ".s"))])
            pair = next(c for c in more if c.endswith(one[-2:]))
            on = f"{one} = {pair}"
            # DuckDB has no Full Join with other conditions
            if word != "Full Join" and self.rng.random() < 0.3:
                on += f" And {self.condition({**columns, **more}, 1)}"
            text, columns = f"{text} {word} {other} On {on}", {**columns, **more}
        return text, columns

    def where(self, columns: Types) -> str:
        """A Where clause, or none."""
        parts = []
        if self.rng.random() < 0.5:
            parts.append(self.condition(columns))
        if self.rng.random() < 0.3:
            parts.append(self._query_condition(columns))
        if self.rng.random() < 0.2:
            parts.append(f"({self._query_condition(columns)} Or {self.condition(columns, 1)})")
        return " Where " + " And ".join(parts) if parts else ""

    def _query_condition(self, columns: Types) -> str:
        inner, own = self.table()
        outer = next(c for c in columns if c.endswith(".k"))
        key = next(c for c in own if c.endswith(".k"))
        negated = self.rng.choice(("", "Not "))
        match self.rng.randrange(5):
            case 0:
                where = f" Where {self.condition(own, 1)}" if self.rng.random() < 0.5 else ""
                return f"{outer} {negated}In (Select {key} From {inner}{where})"
            case 1:
                more = f" And {self.condition({**own, **columns}, 1)}"
                more = more if self.rng.random() < 0.5 else ""
                return f"{negated}Exists (Select 1 From {inner} Where {key} = {outer}{more})"
            case 2:
                return f"{outer} <= (Select Max({key}) From {inner})"
            case 3:
                more = f" And {self.condition(own, 1)}" if self.rng.random() < 0.5 else ""
                value = self._aggregate(own, "", INT)
                return f"{outer} <= (Select {value} From {inner} Where {key} = {outer}{more})"
            case _:
                both = self.condition({**own, **columns}, 1)
                return (
                    f"{outer} <= (Select {self._aggregate(own, '', INT)} From {inner} Where {both})"
                )

    # -- queries --

    def _items(self, columns: Types, count: int) -> list[str]:
        items = []
        for i in range(count):
            kind = self.rng.choice((INT, DOUBLE, TEXT, BOOL))
            self.types[f"c{i}"] = kind
            value = self.value(columns, kind)
            if self.rng.random() < 0.15:
                value = f"Case When {self._query_condition(columns)} Then {value} End"
            items.append(f"{value} As c{i}")
        return items

    def _rows(self) -> str:
        text, columns = self.tables()
        distinct = self.rng.choice(("", "", "Distinct "))
        items = ", ".join(self._items(columns, self.rng.randrange(1, 4)))
        return f"Select {distinct}{items} From {text}{self.where(columns)}"

    def _groups(self) -> str:
        text, columns = self.tables()
        keys = self.rng.sample(sorted(columns), self.rng.randrange(3))
        items = []
        for i, key in enumerate(keys):
            self.types[f"k{i}"] = columns[key]
            items.append(f"{key} As k{i}")
        count = self.rng.randrange(1, 4)
        items += [f"{self._aggregate(columns, f'g{i}')} As g{i}" for i in range(count)]
        group = ""
        if keys:
            word = self.rng.choice(("", "", "Rollup", "Cube"))
            shown = ", ".join(keys)
            group = f" Group By {word}({shown})" if word else f" Group By {shown}"
        having = " Having Count(*) > 1" if keys and self.rng.random() < 0.3 else ""
        return f"Select {', '.join(items)} From {text}{self.where(columns)}{group}{having}"

    def _aggregate(self, columns: Types, name: str, kind: str = "") -> str:
        number = kind or self.rng.choice((INT, DOUBLE))
        word = self.rng.choice(
            ("Sum", "Avg", "Min", "Max", "Count", "Count(*)", "Count(Distinct", "Stddev", "Median")
        )
        spread = word in ("Avg", "Stddev", "Median")
        if name:
            self.types[name] = DOUBLE if spread else INT if word.startswith("Count") else number
        only = f" Filter (Where {self.condition(columns, 1)})" if self.rng.random() < 0.2 else ""
        if word == "Count(*)":
            return word + only
        if word == "Count(Distinct":
            return f"{word} {self.value(columns, number, 1)})"
        return f"{word}({self.value(columns, number, 1)}){only}"

    def _sets(self) -> str:
        kinds = [self.rng.choice((INT, DOUBLE, TEXT)) for _ in range(self.rng.randrange(1, 3))]
        self.types = {f"c{i}": kind for i, kind in enumerate(kinds)}
        sides = []
        for _ in "12":
            text, columns = self.table()
            items = ", ".join(
                f"{self.value(columns, kind, 1)} As c{i}" for i, kind in enumerate(kinds)
            )
            sides.append(f"Select {items} From {text}{self.where(columns)}")
        word = self.rng.choice(("Union All", "Intersect", "Intersect All"))
        return f" {word} ".join(sides)

    def _numbers(self) -> str:
        text, columns = self.table()
        every = list(columns)
        self.types = {f"c{i}": kind for i, kind in enumerate(columns.values())} | {"n": INT}
        items = ", ".join(f"{c} As c{i}" for i, c in enumerate(every))
        order = ", ".join([f"{self.rng.choice(every)} Desc", *every])
        by = f"Partition By {self.rng.choice(every)} " if self.rng.random() < 0.7 else ""
        word = self.rng.choice(("Row_Number", "Rank", "Dense_Rank"))
        inner = f"Select {items}, {word}() Over ({by}Order By {order}) As n From {text}"
        shown = ", ".join(f"x.{name}" for name in self.types)
        return f"Select {shown} From ({inner}{self.where(columns)}) As x Where n <= 2"

    def _cut(self) -> str:
        rows = self._rows()
        names: Sequence[str] = list(self.types)
        order = ", ".join(f"{n} {self.rng.choice(('', 'Desc'))}" for n in names)
        return f"{rows} Order By {order} Limit {self.rng.randrange(1, 4)}"


def random_query(seed: int) -> tuple[str, Types]:
    """A query, and the types of its columns.

    >>> random_query(1) == random_query(1)
    True
    """
    draw = Draw(Random(seed))
    text = draw.text()
    return text, draw.types


def random_row(rng: Random, stream: str) -> tuple[object, ...]:
    """A row of a stream; some values are missing."""
    values = {
        INT: (None, 1, 2, 3, -1), DOUBLE: (None, 0.5, 1.0, 2.5, -1.5),
        TEXT: (None, "a", "ab", "b c", "Ab"),
    }  # fmt: skip
    return tuple(rng.choice(values[kind]) for kind in COLUMNS[stream].values())
