"""What docs/deployment.md and its folder show beside queries is well-formed: the unit by systemd's
own check, where there is one; the manifest by its names; the job as a program. The examples of
queries are run with those of all pages (``test_docs.py``).
"""

import ast
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import levada
from levada.cli import main as cli

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "deployment.md", *(DOCS / "deployment").glob("*.md"))
PAGE = "".join(page.read_text() for page in PAGES)
FILES = dict(re.findall(r"^```\w+ ([\w.]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
RUN = re.compile(r"\blevada run ((?:--?[\w-]+(?: [\w./:@$-]+)? ?)+)")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = shutil.which("true")
    assert program is not None
    unit = tmp_path / "levada.service"
    unit.write_text(FILES["levada.service"].replace("/opt/levada/bin/levada", program))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "levada" in line]
    assert not ours, "\n".join(ours)
    unit.write_text(unit.read_text().replace("KillMode=mixed", "KillMode=mixedd"))
    found = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert "mixedd" in found.stderr, "it would have been told"


def test_commands_have_the_options_that_are_shown() -> None:
    group: Any = typer.main.get_command(cli.app)
    known = {option for parameter in group.commands["run"].params for option in parameter.opts}
    shown = [re.findall(r"--[\w-]+", found) for found in RUN.findall(PAGE)]
    container = re.search(r"^CMD (\[.*\])$", FILES["Containerfile"], re.MULTILINE)
    assert container is not None
    arguments = ast.literal_eval(container[1])
    assert arguments[0] == "run"
    shown.append([word for word in arguments if word.startswith("--")])
    assert len(shown) >= 4, "the unit, the cluster, the first run and the container"
    for options in shown:
        assert set(options) <= known


def test_the_manifest_names_what_it_has() -> None:
    claim, deployment = yaml.safe_load_all(FILES["levada.k8s.yaml"])
    pod = deployment["spec"]["template"]
    labels = deployment["spec"]["selector"]["matchLabels"]
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    (container,) = pod["spec"]["containers"]
    assert deployment["spec"]["replicas"] == 1
    assert pod["metadata"]["labels"] == labels
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    assert volumes["state"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert f"configmap {volumes['app']['configMap']['name']}" in " ".join(
        re.findall(r"kubectl create configmap [\w-]+", PAGE)
    )


def test_the_job_calls_what_there_is() -> None:
    tree = ast.parse(FILES["job.py"])
    called = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "engine"
    }
    assert called == {"stream", "register", "start", "await_end"}
    assert all(hasattr(levada.Engine, name) for name in called)
