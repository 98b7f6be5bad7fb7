"""No module but ``levada.core.code_loading`` imports by name, compiles texts or pickles."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import levada

ROOT = Path(levada.__file__).parent
EXCEPT = ROOT / "core" / "code_loading.py"
PICKLES = {"_pickle", "cloudpickle", "dill", "joblib", "marshal", "pickle", "pickletools", "shelve"}
SERIALIZERS = {"AutoBatched", "CPickle", "CloudPickle", "Pickle"}
MODULES = {
    *PICKLES, *(f"pyspark.serializers.{name}Serializer" for name in SERIALIZERS),
    "pyspark.cloudpickle", "code", "codeop", "imp", "runpy", "logging.config",
    "multiprocessing", "pkgutil.resolve_name",
    "concurrent.futures.ProcessPoolExecutor",
}  # fmt: skip
IMPORTLIB = {"metadata", "resources", "util"}
"""Parts of importlib that may be imported; of util only ``find_spec`` is called."""
BUILTINS = {"__import__", "compile", "eval", "exec"}
METHODS = {
    "deserialize", "exec_module", "full_load", "module_from_spec", "read_pickle",
    "spec_from_file_location", "unsafe_load",
}  # fmt: skip


def offences(tree: ast.AST) -> Iterator[str]:
    """The forbidden imports and calls of a piece of syntax."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from (n for n in names if n in MODULES or n == "importlib")
            yield from (n for n in names if is_importlib_part(n))
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (n for n in names if n in MODULES or str(node.module) in MODULES)
            yield from (n for n in names if is_importlib_part(n))
        elif isinstance(node, ast.Call):
            yield from called(node)


def is_importlib_part(name: str) -> bool:
    parts = name.split(".")
    return parts[0] == "importlib" and len(parts) > 1 and parts[1] not in IMPORTLIB


def called(node: ast.Call) -> Iterator[str]:
    function = node.func
    if isinstance(function, ast.Name) and function.id in BUILTINS:
        yield function.id
    if isinstance(function, ast.Attribute):
        owner = ast.unparse(function.value)
        if function.attr in METHODS or f"{owner}.{function.attr}" in {"yaml.load", "np.load"}:
            yield f"{owner}.{function.attr}"
    if any(keyword.arg == "allow_pickle" for keyword in node.keywords):
        yield "allow_pickle"


@pytest.mark.long
def test_code_is_loaded_by_one_module_alone() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in sorted(ROOT.rglob("*.py"))
        if path != EXCEPT and (names := sorted(set(offences(ast.parse(path.read_text())))))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import importlib",
        "from importlib import import_module",
        "import importlib.machinery",
        "from multiprocessing import Queue",
        "from concurrent.futures import ProcessPoolExecutor",
        "eval('1')",
        "exec(text)",
        "__import__(name)",
        "compile(text, '', 'exec')",
        "np.load(path)",
        "numpy.load(path, allow_pickle=True)",
        "yaml.load(text, Loader)",
        "yaml.unsafe_load(text)",
        "pl.DataFrame.deserialize(path)",
        "pd.read_pickle(path)",
        "importlib.util.module_from_spec(spec)",
    ],
)
def test_each_way_to_load_code_is_noticed(text: str) -> None:
    assert list(offences(ast.parse(text)))


@pytest.mark.parametrize(
    "text", ["from importlib.resources import files", "import importlib.util", "re.compile('a')"]
)
def test_harmless_calls_pass(text: str) -> None:
    assert not list(offences(ast.parse(text)))
