r"""Parses templates of RML: texts with references in braces.

    http://e/{id}        the value of id in the text
    \{a\} {b}            braces of the text are escaped
    {$['x\}y']}          and so are those within a reference

A backslash escapes braces and itself. Cost: nothing a row.
"""

from __future__ import annotations

from collections.abc import Iterator

Pieces = tuple[tuple[str, bool], ...]
"""Texts, each with whether it is a reference."""


class TemplateError(ValueError):
    """A template that is not well-formed."""


def parse_template(template: str) -> Pieces:
    r"""Returns the texts and references of a template. Raises ``TemplateError``.

    >>> parse_template("http://e/{id}/\\{x\\}")
    (('http://e/', False), ('id', True), ('/{x}', False))
    """
    return tuple(_pieces(template))


def _pieces(template: str) -> Iterator[tuple[str, bool]]:
    text, in_braces, at = "", False, 0
    while at < len(template):
        letter = template[at]
        if letter == "\\":
            following = template[at + 1 : at + 2]
            if following not in ("{", "}", "\\"):
                raise TemplateError(
                    f"the backslash at character {at + 1} escapes neither a brace nor a backslash"
                )
            text, at = text + following, at + 2
            continue
        if letter in "{}":
            if (letter == "{") == in_braces:
                raise TemplateError(f"the brace at character {at + 1} has no partner")
            if in_braces and not text:
                raise TemplateError(f"the braces before character {at + 2} are empty")
            if text:
                yield text, in_braces
            text, in_braces = "", not in_braces
        else:
            text += letter
        at += 1
    if in_braces:
        raise TemplateError("a brace is not closed")
    if text:
        yield text, False
