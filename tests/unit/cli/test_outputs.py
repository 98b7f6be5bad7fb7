"""Outputs as they are said on the command line and in app files."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.cli.app.app_file import To, load_app
from levada.cli.app_builder import CommandArguments, assemble
from levada.cli.argument_parsing import parse_output
from levada.cli.run import Mode, check_run
from levada.errors import UsageError

APP = """
queries:
  a: {text: "SELECT ?x WHERE { BIND(1 AS ?x) }", to: "kafka://h:9092/a"}
  b:
    text: "SELECT ?x WHERE { BIND(1 AS ?x) }"
    to:
      - kafka://h:9092,i:9092/b
      - {url: "postgresql://h/db", as: state, key: x, password: env:PG}
      - {url: "kafka://h:9092/c", tls: true, tls_ca: ca.pem}
"""


def test_an_app_file_has_outputs(tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(APP)
    a, b = load_app(path).queries
    assert a.to == (To("kafka://h:9092/a", {}),)
    assert b.to == (
        To("kafka://h:9092,i:9092/b", {}),
        To("postgresql://h/db", {"as": "state", "key": "x", "password": "env:PG"}),
        To("kafka://h:9092/c", {"tls": True, "tls_ca": str(tmp_path / "ca.pem")}),
    )
    more = assemble(CommandArguments(app=path, to=("a=kafka://h:9092/d,format=csv",))).queries
    assert more[0].to[1:] == (To("kafka://h:9092/d", {"format": "csv"}),)
    with pytest.raises(UsageError, match=r"no query of this run: c\..*"):
        assemble(CommandArguments(app=path, to=("c=kafka://h:9092/d",)))
    with pytest.raises(UsageError, match="takes a checkpoint"):
        check_run(assemble(CommandArguments(app=path)), Mode())


def test_mistakes_in_outputs(tmp_path: Path) -> None:
    for text in ("kafka://u:hunter2@h:1/t", "a", "a=b", "postgresql://u:hunter2@h/db?x=1"):
        with pytest.raises(UsageError, match=r"Say QUERY=URL\.") as caught:
            parse_output(text)
        assert "hunter2" not in str(caught.value)
    path = tmp_path / "app.yaml"
    for to, sentence in (("5", "queries.a.to"), ("{format: csv}", "needs a url")):
        path.write_text(f'queries:\n  a: {{text: "SELECT ?x {{}}", to: {to}}}\n')
        with pytest.raises(UsageError, match=sentence):
            load_app(path)
