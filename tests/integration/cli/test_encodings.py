"""A file in UTF-16 or UTF-32, with a byte order mark or without, or packed and without the ending
that says so, is named so in each format.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from levada.cli.main import main

PACKERS = {"gz": "gzip", "zst": "zstd"}
ENCODINGS = ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", *PACKERS]
TEXTS = {
    "s.nt": '<http://e/a> <http://e/v> "é" 1000 .\n<http://e/b> <http://e/v> "é" 2000 .\n',
    "s.nq": '<http://e/a> <http://e/v> "é" <http://e/g> 1000 .\n',
    "s.ttl": '@prefix e: <http://e/> .\ne:a e:v "é" .\n',
    "s.trig": "@prefix e: <http://e/> .\ne:g { e:a e:v 1 }\n",
    "s.jsonld": '{"@id": "http://e/a", "http://e/v": "é"}',
    "s.rdf": '<?xml version="1.0"?><rdf:RDF '
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
    "m.csv": "ts,a\n1000,é\n",
    "m.ndjson": '{"ts": 1000, "a": "é"}\n{"ts": 2000, "a": "b"}\n',
}
SPARQL = """PREFIX : <http://e/>
SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT10S] WHERE { WINDOW :w { ?s :v ?o } }
"""


def fault(encoding: str) -> str:
    if encoding in PACKERS:
        return (
            f"It is packed with {PACKERS[encoding]}. Names of packed data files end in .{encoding}"
        )
    return f"It is {encoding[:6].upper()}, and only UTF-8 is read"


def encoded(text: str, encoding: str) -> bytes:
    if encoding in PACKERS:
        packed: bytes = pa.compress(text.encode(), PACKERS[encoding], asbytes=True)
        return packed
    return text.encode(encoding)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text(SPARQL)
    (tmp_path / "q.cql").write_text("Rstream(Select a From M [Now])")


@pytest.mark.long
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", TEXTS)
def test_stream_in_another_encoding_is_refused_by_name(
    name: str, encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_bytes(encoded(TEXTS[name], encoding))
    table = name.startswith("m")
    time = "" if name.endswith(("nt", "nq")) else ",time=arrival"
    stream = f"M={name},schema=a:string" if table else f"http://e/s={name}{time}"
    query = "q.cql" if table else "q.rq"
    code = main(["run", query, "--stream", stream, "--once", "--master", "none"])
    assert code == (1 if name == "m.csv" else 3)
    assert fault(encoding) in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_query_file_in_another_encoding_is_refused_by_name(
    encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("w.rq").write_bytes(encoded(SPARQL, encoding))
    assert main(["check", "w.rq"]) == 2
    assert fault(encoding) in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", ["s.ttl", "s.jsonld"])
def test_static_file_in_another_encoding_is_refused_by_name(
    name: str, encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_bytes(encoded(TEXTS[name], encoding))
    Path("d.nt").write_text(TEXTS["s.nt"])
    Path("q.rq").write_text(SPARQL.replace("?o }", "?o } ?s :k ?k"))
    words = ["--stream", "http://e/s=d.nt", "--static", name, "--once", "--master", "none"]
    assert main(["run", "q.rq", *words]) == 1
    assert fault(encoding) in capsys.readouterr().err
