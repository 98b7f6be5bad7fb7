"""Translates the built-in functions of RML-FNML to formulas over columns
(``levada.connectors.config.mapping_formula``).

A function is known by its IRI in the vocabularies of GREL and of IDLab, its parameters by their
names. Cost: a few column operations of Polars a function.
"""

from __future__ import annotations

from collections.abc import Mapping

from levada.core.frozen import frozen

GREL = "http://users.ugent.be/~bjdmeest/function/grel.ttl#"
IDLAB = "https://w3id.org/imec/idlab/function#"
_VALUE = ("valueParameter", "valueParam", "inputString", "str", "input")
_OTHER = ("valueParameter2", "valueParam2", "otherStr")
_CONDITION = ("bool_b", "param_b")


@frozen
class ValueFunction:
    """A function. ``parameters``: the names of each parameter; the formula has their numbers in
    braces. ``optional``: the text of a parameter that may be missing.
    """

    parameters: tuple[tuple[str, ...], ...]
    formula: str
    is_boolean: bool = False
    optional: str | None = None


_UPPER = ValueFunction((_VALUE,), "upper({0})")
_LOWER = ValueFunction((_VALUE,), "lower({0})")
_TRIM = ValueFunction((_VALUE,), "trim({0})")
_EQUAL = ValueFunction((_VALUE, _OTHER), "({0} == {1})", is_boolean=True)
_NOT_EQUAL = ValueFunction((_VALUE, _OTHER), "({0} != {1})", is_boolean=True)
_REPLACE = ValueFunction(
    (_VALUE, ("p_string_find", "param_find", "find"), ("p_string_replace", "param_replace",
                                                       "replace")),
    "replace({0}, {1}, {2})",
)  # fmt: skip
_IF = ValueFunction(
    (_CONDITION, ("any_true", "param_true"), ("any_false", "param_false")),
    "({1} if {0} else {2})",
)
FUNCTIONS: dict[str, ValueFunction] = {
    f"{GREL}toUpperCase": _UPPER,
    f"{GREL}toLowerCase": _LOWER,
    f"{GREL}string_trim": _TRIM,
    f"{GREL}string_replace": _REPLACE,
    f"{GREL}controls_if": _IF,
    f"{IDLAB}toUpperCase": _UPPER,
    f"{IDLAB}toLowerCase": _LOWER,
    f"{IDLAB}trim": _TRIM,
    f"{IDLAB}equal": _EQUAL,
    f"{IDLAB}notEqual": _NOT_EQUAL,
    f"{IDLAB}concat": ValueFunction(
        (_VALUE, _OTHER, ("delimiter",)), "({0} + {2} + {1})", optional="''"
    ),
}
"""The built-in functions by their IRIs."""


@frozen
class Formula:
    """The text of a formula, and whether its values are booleans."""

    text: str
    is_boolean: bool = False

    @property
    def as_text(self) -> str:
        """The formula of a text."""
        return f"string({self.text})" if self.is_boolean else self.text

    @property
    def as_condition(self) -> str:
        """The formula of a condition: a text holds if it is ``true``."""
        return self.text if self.is_boolean else f"({self.text} == 'true')"


def call(function: ValueFunction, arguments: Mapping[str, Formula]) -> Formula:
    """Returns the formula of a call, with arguments by the names of parameters. Raises ``KeyError``
    for a parameter that is missing, ``ValueError`` for one that the function does not have.

    >>> call(FUNCTIONS[GREL + "toUpperCase"], {"valueParameter": Formula("column('a')")}).text
    "upper(column('a'))"
    """
    left, values = dict(arguments), []
    for names in function.parameters:
        name = next((each for each in names if each in left), None)
        if name is None and function.optional is None:
            raise KeyError(names[0])
        if name is None:
            values.append(str(function.optional))
            continue
        value = left.pop(name)
        values.append(value.as_condition if names is _CONDITION else value.as_text)
    if left:
        raise ValueError(next(iter(left)))
    return Formula(function.formula.format(*values), function.is_boolean)
