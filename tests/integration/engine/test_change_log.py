"""A relation's changes, applied one after the other as they are written, are the relation: at one
instant what goes is written before what comes.
"""

import random
from pathlib import Path

import pytest

import levada

TOTALS = "Select k, Sum(v) As total From A [Range 3 s] Group By k"
FORMATS = pytest.mark.parametrize("form", ["csv", "tsv"])


@FORMATS
def test_a_table_by_key_follows_the_log(tmp_path: Path, form: str, random_seed: int) -> None:
    drawn = random.Random(random_seed)
    rows = [(drawn.randrange(3), drawn.randrange(9), 700 * i) for i in range(60)]
    (tmp_path / "a.csv").write_text("k,v,ts\n" + "".join(f"{k},{v},{t}\n" for k, v, t in rows))
    with levada.Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=17) as engine:
        engine.stream("A", tmp_path / "a.csv", schema="k:integer;v:integer")
        engine.register(TOTALS, name="totals", out=tmp_path / "out", format=form)
        engine.start(once=True)
        engine.await_end()
    separator = "," if form == "csv" else "\t"
    table: dict[str, str] = {}
    seen = 0
    for path in sorted((tmp_path / "out" / "totals").iterdir()):
        for line in path.read_text().splitlines()[1:]:
            report, change, k, total = line.split(separator)
            if int(report) > 20_000 and not seen:
                seen = int(report)
                assert table == _totals(rows, max(t for *_, t in rows if t <= 20_000))
            if change == "delete":
                assert table.pop(k) == total, f"{line}: no such row is there"
            else:
                assert k not in table, f"{line}: the row of before has not gone yet"
                table[k] = total
    assert seen and not table, "in the end the windows are empty"


def _totals(rows: list[tuple[int, int, int]], at: int) -> dict[str, str]:
    """The relation at an instant at which something came and nothing leaves before 20 s."""
    at = max(at, max((t + 3000 for *_, t in rows if t + 3000 <= 20_000), default=at))
    inside = [(k, v) for k, v, t in rows if t <= at < t + 3000]
    return {str(k): str(sum(v for j, v in inside if j == k)) for k, _ in inside}
