"""More input than the engine can read: memory stays bounded, the backlog is reported, and pushes
are refused until there is room again.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx
import psutil

from levada import Engine
from levada.server.settings import Limits, Settings
from support.http_server import served
from support.polling import PATIENCE, until

QUERY = """PREFIX : <http://e/> SELECT ?a (COUNT(?o) AS ?n)
FROM NAMED WINDOW :w ON :s [RANGE PT0.1S STEP PT0.1S] WHERE { WINDOW :w { ?a :p ?o } }
GROUP BY ?a"""
ROWS = 100  # of an epoch
LIMIT = 100_000  # bytes that may wait
BODY = 1000  # lines
MEMORY = 150 << 20  # bytes by which the process may grow


def lines(first: int, count: int = BODY) -> str:
    line = "<http://e/a{}> <http://e/p> <http://e/o> {} .\n"
    return "".join(line.format(k % 10, k) for k in range(first, first + count))


def sample(text: str, name: str) -> float | None:
    found = re.search(rf"^{name}{{[^}}]*}} (\S+)$", text, re.MULTILINE)
    return None if found is None else float(found[1])


def test_a_stream_gets_more_than_is_read(tmp_path: Path) -> None:
    root = tmp_path / "ck"
    with Engine(spark=False, checkpoint=root, keep_results=False, epoch_rows=ROWS) as engine:
        engine.stream("http://e/s", "push:", format="nt")
        engine.register(QUERY, name="q")
        engine.start()
        settings = Settings(root, port=0, limits=Limits(backlog=LIMIT))
        with served(settings) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
            until(lambda: client.get("/queries/q").status_code == 200)
            post = "/streams/http://e/s"
            assert client.post(post, content=lines(0)).status_code == 202
            until(lambda: engine.progress().elements > 0)
            before, peak, taken, refused = psutil.Process().memory_info().rss, 0, BODY, 0
            seen, ages = [], []
            end = time.monotonic() + 2
            while time.monotonic() < end or not (refused and seen and ages):
                answer = client.post(post, content=lines(taken))
                assert answer.status_code in (202, 429)
                if answer.status_code == 429:
                    assert int(answer.headers["retry-after"]) >= 1
                    refused += 1
                    time.sleep(0.05)
                    text = client.get("/metrics").text
                    seen += [sample(text, "levada_stream_backlog_elements") or 0]
                    ages += [sample(text, "levada_stream_backlog_age_seconds") or 0]
                else:
                    taken += BODY
                peak = max(peak, psutil.Process().memory_info().rss)
            assert peak - before < MEMORY
            assert 0 < max(seen) <= 2 * LIMIT / len(lines(taken, 1)) + BODY
            assert max(ages) > 0
            until(lambda: engine.progress().elements == taken)
            until(lambda: client.post(post, content=lines(taken)).status_code == 202)

            def is_read() -> bool:
                backlog = client.get("/status").json()["streams"]["http://e/s"]["backlog"]
                return backlog["elements"] == 0 and backlog["catch_up_seconds"] == 0

            until(is_read)


def test_catching_up_takes_as_long_as_predicted(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "0.nt").write_text(lines(0, 10_000))
    with Engine(spark=False, keep_results=False, epoch_rows=ROWS) as engine:
        engine.stream("http://e/s", tmp_path / "s")
        engine.register(QUERY, name="q")
        engine.start()

        def predicted() -> float | None:
            backlog = engine.status().streams["http://e/s"].backlog
            assert backlog is not None
            return backlog.catch_up_seconds

        until(lambda: engine.progress().elements >= 1000)
        at = time.monotonic()
        until(lambda: time.monotonic() - at > 1)
        begin, expected = time.monotonic(), predicted()
        assert expected is not None
        until(lambda: engine.progress().elements == 10_000)
        took = time.monotonic() - begin
        assert expected / 3 < took + 1 < 3 * (expected + 1), "a busy machine changes its speed"
