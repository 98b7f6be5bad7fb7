"""--stream and --static: where a name ends and an option begins."""

from pathlib import Path

import pytest

from levada.checkpoint.result_index import Keep
from levada.cli.argument_parsing import parse_static, parse_stream, split_name, split_options
from levada.cli.main import main
from levada.core.query_limits import QueryLimits
from levada.errors import UsageError


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("temp=a=b.nt", "temp", "a=b.nt"),
        ("http://e/s=data.nt", "http://e/s", "data.nt"),
        ("http://e/s?id=5=data.nt", "http://e/s?id=5", "data.nt"),
        ("http://e/s?id=5=/x/data.nt", "http://e/s?id=5", "/x/data.nt"),
        ("http://e/s?a=1&b=2=~/data.nt,lateness=1s", "http://e/s?a=1&b=2", "~/data.nt,lateness=1s"),
        ("http://e/s?id=5=there.nt,unit=s", "http://e/s?id=5", "there.nt,unit=s"),
        ("<http://e/s?id=5>=missing=x.nt", "http://e/s?id=5", "missing=x.nt"),
        ("http://e/s=missing.nt", "http://e/s", "missing.nt"),
        ("urn:x=./a.nt", "urn:x", "./a.nt"),
    ],
)
def test_where_a_name_ends(text: str, name: str, rest: str) -> None:
    assert split_name(text, {"data.nt", "there.nt"}.__contains__) == (name, rest)


@pytest.mark.parametrize("text", ["data.nt", "=data.nt", ""])
def test_a_stream_needs_a_name(text: str) -> None:
    with pytest.raises(UsageError, match="has no name"):
        parse_stream(text)


def test_where_options_begin() -> None:
    assert split_options("a,b.nt,unit=s,time=filename:(\\d{1,3})-(x=y)") == (
        "a,b.nt",
        {"unit": "s", "time": "filename:(\\d{1,3})-(x=y)"},
    )
    with pytest.raises(UsageError, match="The option unit is there twice"):
        split_options("a.nt,unit=s,unit=ms")


def test_a_stream_with_all_kinds_of_options(tmp_path: Path) -> None:
    stream = parse_stream(
        f"A={tmp_path}/a.csv,schema=k:integer;v:double,time=field:at,unit=s,lateness=10s,from=5,limit=7"
    )
    assert (stream.name, stream.path, stream.format) == ("A", f"{tmp_path}/a.csv", "csv")
    assert stream.schema == (("k", "integer"), ("v", "double"))
    assert (stream.time, stream.unit, stream.lateness, stream.from_, stream.limit) == (
        "field:at",
        "s",
        10_000,
        5,
        7,
    )


def test_an_existing_path_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.nt").write_text("")
    assert parse_stream("http://e/s?id=5=x.nt").name == "http://e/s?id=5"
    assert parse_stream("http://e/s?id=5=x.*,format=nt").path == "x.*"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=x.nt,latness=5s", r"The stream a has no option latness\. Did you mean lateness\?"),
        ("a=x.nt,name=b", r"The stream a has no option name\."),
        ("a=x.nt,unit=h", r"unit of the stream a"),
        ("a=", r"needs a name and a path"),
        ("a b=./x.nt", r"'a b' is not a name of a stream"),
    ],
)
def test_wrong_streams(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_stream(text)


def test_counts_have_units_wherever_they_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = parse_stream("a=x.nt,limit=5k,ahead=2M")
    assert (stream.limit, stream.ahead) == (5000, 2_000_000)
    assert QueryLimits.parse("reports=10k,solutions=2M").reports == 10_000
    assert Keep.parse("1h,5k").reports == 5000
    monkeypatch.chdir(tmp_path)
    for option in ("--epoch-rows", "--max-rows"):
        assert main(["run", "q.rq", option, "100k", "--once"]) == 2
        assert "q.rq" in capsys.readouterr().err  # that there is no such file is all that is wrong
        assert main(["run", "q.rq", option, "100x", "--once"]) == 2
        err = capsys.readouterr().err
        assert option in err and "'100x'" in err and "Write it as 5000, 100k or 2M." in err


def test_static() -> None:
    assert (parse_static("a.ttl").path, parse_static("a.ttl").graph) == ("a.ttl", None)
    assert parse_static("a,b.ttl,graph=<http://e/g?x=1>").graph == "http://e/g?x=1"
    assert parse_static("a.data,format=Turtle,graph=http://e/g").format == "ttl"
    with pytest.raises(UsageError, match="csv is no format of static RDF"):
        parse_static("a.csv,format=csv")
    for wrong, message in [
        ("a.ttl,graph=rooms", "not an absolute IRI"),
        ("a.ttl,grph=http://e/g", "Did you mean graph"),
        (",graph=http://e/g", "names no file"),
    ]:
        with pytest.raises(UsageError, match=message):
            parse_static(wrong)
