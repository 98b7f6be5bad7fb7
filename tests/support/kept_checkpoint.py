"""A checkpoint whose reports are kept, for readers of tables."""

from __future__ import annotations

from pathlib import Path

from levada.cli.main import main

QUERY = """PREFIX : <http://e/>
SELECT ?room ?t FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT2S]
WHERE { WINDOW :w { ?room :t ?t } }
"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def write_stream(folder: Path, start: int, stop: int) -> None:
    """Writes a file of readings, one each 100 ms."""
    (folder / "s").mkdir(exist_ok=True)
    lines = (
        f'<http://e/r{i % 5}> <http://e/t> "{i % 7}"^^<{INTEGER}> {i * 100} .\n'
        for i in range(start, stop)
    )
    (folder / "s" / f"{start:06d}.nt").write_text("".join(lines))


def run_kept(
    folder: Path, *options: str, start: int = 0, rows: int = 200, keep: str = "1GB"
) -> Path:
    """Runs the query warm over the readings from ``start`` to ``rows``; returns its checkpoint.
    With ``--keep-open`` a later run may continue.
    """
    (folder / "warm.rq").write_text(QUERY)
    write_stream(folder, start, rows)
    checkpoint = folder / "ck"
    end = "--once" if "--keep-open" in options else "--close"
    arguments = [
        "run", str(folder / "warm.rq"), "--stream", f"s={folder / 's'}", end,
        "--master", "none", "--checkpoint", str(checkpoint), "--epoch-rows", "40",
        "--out", str(folder / "out"), *options,
    ]  # fmt: skip
    assert main([*arguments, *(["--keep", keep] if keep else [])]) == 0
    return checkpoint
