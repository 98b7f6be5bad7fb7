"""Reads YAML files of users: without repeated keys, and with errors that name the place."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from levada.errors import UsageError


class _Loader(yaml.SafeLoader):
    """Loads YAML without repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for i, (where, _) in enumerate(node.value):
            if keys[i] in keys[:i]:
                problem = f"the key {keys[i]} is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, where.start_mark)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, kind: str) -> Any:
    """Reads the document of a file; ``kind`` is its name for people. Raises ``UsageError``."""
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"The {kind} {path} cannot be read: {reason}.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"The {kind} {path}{place}: {error.problem}.") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # such as an invalid date
        raise UsageError(f"The {kind} {path} is not YAML: {error}.") from error
    except RecursionError as error:
        raise UsageError(f"The {kind} {path} is nested too deeply.") from error
