"""The page: files under a policy that lets nothing else in, small and without markup made of data.
What needs a browser is in ``tests/browser``; what needs a parser of its language asks Node, where
that is there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from levada.server.security.tokens import add_token
from levada.server.settings import Settings
from support.http_server import Run, served
from support.npm_packages import packages
from support.polling import PATIENCE

FOLDER = Path(__file__).parents[3] / "src" / "levada" / "server" / "page"
CASES = Path(__file__).parents[2] / "browser" / "layout_cases.js"
FILES = sorted(p for p in FOLDER.iterdir() if p.suffix in (".html", ".css", ".js"))
MODULES = sorted((FOLDER / "modules").glob("*.js"))
IMPORTS = (FOLDER / "index.html").read_text().partition('"importmap">')[2].partition("</script>")[0]
EDITOR = (
    "@codemirror/autocomplete@6.20.4", "@codemirror/commands@6.11.1",
    "@codemirror/language@6.13.1", "@codemirror/lint@6.9.8", "@codemirror/state@6.7.6",
    "@codemirror/streamparser@6.0.0", "@codemirror/view@6.43.15",
)  # fmt: skip
BENEATH = (
    "@lezer/common@1.5.5", "@lezer/highlight@1.2.5", "@marijn/find-cluster-break@1.0.4",
    "crelt@1.0.7", "style-mod@4.1.5", "w3c-keyname@2.2.8",
)  # fmt: skip
MOST = 69_000  # bytes
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node is not installed")


def test_the_page_is_there_for_all(run: Run, tmp_path: Path) -> None:
    add_token(tmp_path / "tokens", "a", "read")
    with served(Settings(run.root, port=0, tokens=tmp_path / "tokens")) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        hash_of_map = base64.b64encode(hashlib.sha256(IMPORTS.encode()).digest()).decode()
        parts = [f"/page/{file.relative_to(FOLDER)}" for file in (*FILES, *MODULES)]
        for path in ("/", *parts):
            found = client.get(path)
            assert found.status_code == 200
            is_versioned = path.startswith("/page/modules/")
            assert ("immutable" in found.headers["cache-control"]) == is_versioned
            policy = found.headers["content-security-policy"]
            scripts = f"script-src 'self' 'sha256-{hash_of_map}'; style-src 'self';"
            assert policy.startswith(f"default-src 'none'; {scripts}")
            assert "unsafe" not in policy
            if path.endswith(".js"):
                assert found.headers["content-type"].startswith("text/javascript")
        for path in ("..%2f__init__.py", "__init__.py", "x.js", "modules/../x.js"):
            assert client.get(f"/page/{path}").status_code == 404
        assert client.get("/status").status_code == 401


def test_what_the_page_holds() -> None:
    html = (FOLDER / "index.html").read_text()
    for inline in ("style=", "onclick", "<style", "javascript:", "http://", "https://"):
        assert inline not in html
    script = "".join(file.read_text() for file in FILES if file.suffix == ".js")
    unsafe = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
    for word in (*unsafe, "https://cdn", "localStorage", "document.cookie"):
        assert word not in script
    assert script.count("href") == 2 and "link.href = URL.createObjectURL(" in script
    assert sum(file.stat().st_size for file in FILES) < MOST


def test_modules_import_each_other_alone() -> None:
    names = {file.name for file in FILES}
    for file in FILES:
        if file.suffix == ".js":
            imported = re.findall(r'^import .*?"(.*?)";', file.read_text(), re.M)
            there = names | json.loads(IMPORTS)["imports"].keys()
            assert {name.removeprefix("./") for name in imported} <= there, file.name


@pytest.mark.parametrize("wanted", [EDITOR, BENEATH])
def test_modules_are_the_files_of_their_packages(wanted: tuple[str, ...]) -> None:
    folder, imports = packages(*wanted) / "node_modules", json.loads(IMPORTS)["imports"]
    for package in wanted:
        name = package.rpartition("@")[0]
        said = json.loads((folder / name / "package.json").read_text())
        exported = (
            said["exports"] if isinstance(said["exports"], str) else said["exports"]["import"]
        )
        ours = FOLDER / imports[name].removeprefix("/page/")
        assert ours.name == f"{package.removeprefix('@').replace('/', '-')}.js"
        assert ours.read_bytes() == (folder / name / exported).read_bytes(), name


def test_modules_are_those_of_the_import_map() -> None:
    there = {
        path.removeprefix("/page/modules/") for path in json.loads(IMPORTS)["imports"].values()
    }
    assert there == {file.name for file in MODULES}
    assert len(there) == len(EDITOR) + len(BENEATH)


@needs_node
def test_modules_can_be_parsed() -> None:
    for file in FILES:
        if file.suffix == ".js":
            asked = [str(NODE), "--input-type=module", "--check"]
            found = subprocess.run(asked, input=file.read_bytes(), capture_output=True, check=False)
            assert found.returncode == 0, found.stderr.decode()


@needs_node
def test_the_layout_of_random_graphs(tmp_path: Path) -> None:
    """Here by Node; ``tests/browser`` does the same in Chromium."""
    shutil.copy(FOLDER / "layout.js", tmp_path / "layout.mjs")
    shutil.copy(CASES, tmp_path / "cases.mjs")
    (tmp_path / "run.mjs").write_text(
        'import * as layout from "./layout.mjs";\nimport { check } from "./cases.mjs";\n'
        "console.log(check(layout, 20));\n"
    )
    asked = [str(NODE), str(tmp_path / "run.mjs")]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "20\n"), found.stderr
