"""What one translation carries through its functions: names that the query declares, fresh variables, errors with their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from levada.errors import Span, UnsupportedError


@dataclass(slots=True)
class Context:
    """One query's translation.

    ``windows``: name to index in ``Query.windows``. ``graphs``: the named graphs of the query's dataset, in order (None: not
    known, any can be there). ``base``: the IRI of BASE, or None. Fresh variables start with a dot, which no written variable can.
    """

    text: str
    windows: Mapping[str, int]
    graphs: Sequence[str] | None
    base: str | None
    _used: dict[str, int] = field(default_factory=dict)

    def fresh(self, letter: str) -> str:
        """A new variable: ``.g0``, ``.g1``, ... for keys, ``.a0``, ... for aggregates."""
        number = self._used.get(letter, 0)
        self._used[letter] = number + 1
        return f".{letter}{number}"

    def unsupported(self, feature: str, span: Span, *, hint: str = "") -> UnsupportedError:
        """The refusal of what SPARQL has and Levada does not evaluate; ``feature`` in the words of the language."""
        return UnsupportedError(f"{feature} is not supported yet.", span=span, text=self.text, hint=hint)
