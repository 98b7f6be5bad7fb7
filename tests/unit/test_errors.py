"""The tree of errors as it is drawn is the tree that there is."""

from __future__ import annotations

import inspect
import re

from levada import errors

LINE = re.compile(r"^    ([│ ]*)[├└]── (\w+)", re.MULTILINE)


def drawn() -> dict[str, str]:
    """Each error of the picture in the module's head, with the one that it stands below."""
    above = ["LevadaError"]
    found = {}
    for indent, name in LINE.findall(errors.__doc__ or ""):
        depth = len(indent) // 4 + 1
        found[name] = above[depth - 1]
        above[depth:] = [name]
    return found


def test_the_drawn_tree_is_the_tree() -> None:
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]
    real = {
        cls.__name__: cls.__mro__[1].__name__
        for cls in classes
        if issubclass(cls, errors.LevadaError) and cls is not errors.LevadaError
    }
    assert drawn() == real
