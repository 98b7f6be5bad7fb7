"""What is public is there, documented, and hands out nothing of the runtime."""

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

import levada
import levada.testing

ROOT = Path(__file__).parents[2]
API = "".join(p.read_text() for p in (ROOT / "docs/api.md", *(ROOT / "docs/api").glob("*.md")))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PUBLIC = ("levada", "levada.testing")


@pytest.mark.parametrize("package", PUBLIC)
def test_what_is_listed_can_be_imported_and_is_documented(package: str) -> None:
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert re.search(rf"\b{name}\b", API), f"docs/api has no word on {package}.{name}"
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = module.Nothing


@pytest.mark.parametrize("package", PUBLIC)
def test_what_is_documented_is_listed(package: str) -> None:
    listed = set(importlib.import_module(package).__all__)
    said = re.compile(
        rf"\b{re.escape(package)}\.(__version__|[A-Z]\w+)|from {re.escape(package)} import "
        r"([\w, ]+)"
    )
    for document in DOCUMENTS:
        for one, several in said.findall(document.read_text()):
            names = {one} if one else set(re.split(r", *", several))
            assert names <= listed, f"{document.name} uses {names - listed} of {package}"


def members(owner: type) -> set[str]:
    """Also those that it has from classes of ours."""
    return {
        name
        for one in owner.__mro__
        if one.__module__.startswith("levada.")
        for name in vars(one)
        if not name.startswith("_")
    }


def test_methods_are_documented_or_listed_as_not_public() -> None:
    said = set(re.findall(r"\bengine\.(\w+)", API))
    assert not members(levada.Engine) - said
    known = members(levada.Engine) | {"root"}
    assert not said - known, "it is documented, but not there"
    said = set(re.findall(r"\b(?:query|top|names|pairs|warm|first)\.(\w+)|`(to_\w+)\(", API))
    assert not members(levada.Query) - {name for pair in said for name in pair}


def test_options_have_types_by_which_editors_complete_them() -> None:
    from levada.connectors.config.stream_options import OPTIONS
    from levada.connectors.spool.python_spool import _OWN
    from levada.plan.logical.query_options import WORDS

    said = {word.removesuffix("_") for word in levada.StreamOptions.__annotations__}
    assert said == {*OPTIONS, *_OWN}
    assert tuple(levada.QueryWords.__annotations__) == WORDS
    for function in (levada.query, levada.Engine, levada.Engine.stream, levada.Engine.register):
        assert not re.search(r"\bAny\b", str(inspect.signature(function)))


def test_arguments_of_an_engine_are_documented_with_their_defaults() -> None:
    said = re.search(r"^`Engine\((\*, .*?)\)`$", API, re.MULTILINE | re.DOTALL)
    assert said is not None
    tree = ast.parse(f"def engine({said[1]}): pass").body[0]
    assert isinstance(tree, ast.FunctionDef)
    defaults = [d and ast.literal_eval(d) for d in tree.args.kw_defaults]
    documented = dict(zip((a.arg for a in tree.args.kwonlyargs), defaults, strict=True))
    parameters = inspect.signature(levada.Engine).parameters
    assert documented == {name: p.default for name, p in parameters.items()}


def mentioned(hint: object) -> Iterator[type]:
    """The classes that a type names, at any depth."""
    if isinstance(hint, type):
        yield hint
    for part in typing.get_args(hint):
        yield from mentioned(part)


def test_nothing_public_hands_out_types_of_the_runtime() -> None:
    from levada.engine.status.status import PatternStatus, QueryStatus
    from levada.engine.status.summary import StreamCounts

    values = (
        levada.Status,
        levada.Progress,
        levada.Report,
        QueryStatus,
        PatternStatus,
        StreamCounts,
    )
    hints = {(v.__name__, k): h for v in values for k, h in typing.get_type_hints(v).items()}
    assert all(map(dataclasses.is_dataclass, values))
    for name in members(levada.Engine):
        function = inspect.getattr_static(levada.Engine, name)
        function = function.fget if isinstance(function, property) else function
        hints["Engine", name] = typing.get_type_hints(function)["return"]
    for where, hint in hints.items():
        for found in mentioned(hint):
            assert not found.__module__.startswith("levada.runtime"), f"{where} is a {found}"


def test_importing_the_package_loads_no_engine() -> None:
    program = (
        "import sys, levada, levada.testing; print(sorted(m for m in sys.modules if 'levada' in m))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['levada', 'levada.errors', 'levada.testing']"


def test_the_reference_alone_loads_no_engine() -> None:
    program = (
        "import sys; from levada.testing import evaluate; "
        "print([m for m in sys.modules if 'levada' in m])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not re.search(r"levada\.(engine|runtime|operators|kernels|plan|algebra)", done.stdout)
