"""Letters, outputs and the topology, as the page asks for them."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from levada.checkpoint.delivery_progress import Delivered, write_deliveries
from levada.server.dead_letter_routes import FILES, LONGEST, TAIL, LetterFilter, newest
from levada.server.security.tokens import add_token
from levada.server.settings import Settings
from support.http_server import Run, served, until

BOTH = ("dead", "late")


def write(folder: Path, kind: str, epoch: int, *letters: dict) -> Path:
    path = folder / kind / f"{epoch:09d}-0000.ndjson"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(letter) + "\n" for letter in letters))
    return path


def test_letters_of_a_run(client: httpx.Client, run: Run) -> None:
    assert client.get("/letters").json()["letters"] == []
    (run.folder / "s" / "90000.nt").write_text(
        "no triple <script>\n"
        '<http://e/a> <http://e/p> "1" 100 .\n'
        '<http://e/a> <http://e/p> "1" 20000 .\n'
    )
    until(lambda: client.get("/status").json()["streams"]["s"]["dead_letters"])
    until(lambda: len(client.get("/letters").json()["letters"]) == 2)
    found = client.get("/letters").json()
    assert found["counts"] == {"s": {"dead_letters": 1, "late": 1}}
    dead, late = found["letters"]
    if dead["kind"] == "late":
        dead, late = late, dead
    assert (dead["stream"], dead["source"], dead["offset"]) == ("s", "90000.nt", 0)
    assert dead["text"] == "no triple <script>"
    assert "dot" in dead["reason"]
    assert late["reason"] == (
        "Its time 1970-01-01T00:00:00.100Z is below the watermark 1970-01-01T00:00:04.500Z."
    )
    only = client.get("/letters?kind=dead&stream=s&limit=1").json()
    assert ([letter["kind"] for letter in only["letters"]], only["has_more"]) == (["dead"], False)
    for asked, status in (
        ("stream=t", 404),
        ("kind=x", 400),
        ("limit=0", 400),
        ("limit=101", 400),
        ("limit=x", 400),
    ):
        assert client.get(f"/letters?{asked}").status_code == status, asked


def test_who_may_read_letters(run: Run, tmp_path: Path) -> None:
    made = {role: add_token(tmp_path / "tokens", role, role) for role in ("read", "push")}
    with served(Settings(run.root, port=0, tokens=tmp_path / "tokens")) as url:
        for role, status in (("read", 200), ("push", 403)):
            headers = {"Authorization": f"Bearer {made[role]}"}
            assert httpx.get(f"{url}/letters", headers=headers).status_code == status
        assert httpx.get(f"{url}/letters").status_code == 401


def test_an_answer_is_bounded(tmp_path: Path) -> None:
    for epoch in range(1, FILES + 10):
        write(tmp_path, "dead-letter", epoch, {"stream": "s", "reason": f"{epoch}"})
    write(tmp_path, "late", 3, {"stream": "t", "ts": 1, "watermark": 2})
    (tmp_path / "dead-letter" / ".new").write_text("{")
    (tmp_path / "dead-letter" / "notes.ndjson").write_text("{}")
    last = newest(tmp_path, LetterFilter("", BOTH, 2))
    assert ([letter["reason"] for letter in last.letters], last.more) == (["73", "72"], True)
    absent = newest(tmp_path, LetterFilter("u", BOTH, 5))
    assert absent == ([], True)
    assert newest(tmp_path, LetterFilter("t", ("late",), 5)).letters[0]["epoch"] == 3
    assert newest(tmp_path / "nowhere", LetterFilter("", BOTH, 5)) == ([], False)


def test_long_letters_are_cut(tmp_path: Path) -> None:
    long = {"stream": "s", "source": "f", "offset": 1, "reason": "r" * 900, "text": "x" * 900}
    write(tmp_path, "dead-letter", 1, long)
    (cut,) = newest(tmp_path, LetterFilter("", BOTH, 5)).letters
    assert (len(cut["reason"]), len(cut["text"]), cut["characters"]) == (LONGEST, LONGEST, 900)
    path = write(tmp_path, "dead-letter", 2, long | {"text": "x" * 2 * TAIL}, long)
    last, rest, before = newest(tmp_path, LetterFilter("", BOTH, 5)).letters
    assert (last["epoch"], before["epoch"]) == (2, 1)
    assert rest["source"] == path.name
    assert rest["reason"].startswith("What else is in")
    write(tmp_path, "dead-letter", 3).write_bytes(b'{"half\n[]\n\xff\n')
    assert len(newest(tmp_path, LetterFilter("", BOTH, 5)).letters) == 3


def test_letters_that_lie_elsewhere(run: Run, tmp_path: Path) -> None:
    (run.folder / "s" / "90000.nt").write_text('x\n<http://e/a> <http://e/p> "1" 9000 .\n')
    elsewhere = tmp_path / "out"
    with served(Settings(run.root, port=0, letters=elsewhere)) as url:
        until(lambda: httpx.get(f"{url}/letters").json()["counts"].get("s", {}).get("dead_letters"))
        assert "below its --out" in httpx.get(f"{url}/letters").json()["message"]
        write(elsewhere, "dead-letter", 1, {"stream": "s", "reason": "It is none."})
        found = httpx.get(f"{url}/letters").json()
        assert (found["message"], found["letters"][0]["reason"]) == ("", "It is none.")


def test_status_tells_of_outputs(client: httpx.Client, run: Run) -> None:
    assert client.get("/status").json()["outputs"] == []
    away = Delivered("hot", "kafka://127.0.0.1/hot", 0, 0, 0, 0, "It is away.", True)
    write_deliveries(run.root, [away, Delivered("hot", "kafka://b/hot", 0, 0, 0, 1 << 40)])
    first, second = client.get("/status").json()["outputs"]
    assert (first["target"], first["reason"], first["blocks_intake"]) == (
        away.target,
        "It is away.",
        True,
    )
    assert first["pending_reports"] == 4
    assert first["age_seconds"] >= 0
    assert (second["pending_reports"], second["oldest_pending_ms"], second["age_seconds"]) == (
        0,
        None,
        None,
    )


def test_what_a_picture_needs(client: httpx.Client) -> None:
    headers = {"Accept": "application/json"}
    found = client.get("/explain?max_nodes=300", headers=headers).json()
    assert found["node_count"] == len(found["nodes"])
    (leaf,) = [node for node in found["nodes"] if node["reads"]]
    assert leaf["reads"] == [{"stream": "s", "text": "?a <http://e/p> ?b"}]
    (pattern,) = client.get("/queries/hot").json()["patterns"]
    assert (pattern["stream"], pattern["text"]) == ("s", leaf["reads"][0]["text"])
    assert found["queries"][0]["node"] in {node["name"] for node in found["nodes"]}
    few = client.get("/explain?max_nodes=2", headers=headers).json()
    assert (few["node_count"], few["nodes"], few["edges"]) == (found["node_count"], [], [])
    assert client.get("/explain?max_nodes=x", headers=headers).status_code == 400
