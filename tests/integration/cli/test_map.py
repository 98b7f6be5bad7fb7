"""``levada map``: the quads of a mapping over the files that it names, and its exit codes."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from levada.cli.main import main

HEAD = """@prefix rml: <http://w3id.org/rml/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <http://e/> .
"""
Mapped = Callable[..., tuple[int, list[str], str]]


def source(path: str, words: str = "", iterator: str = "") -> str:
    ending = path.removesuffix(".gz").rpartition(".")[2]
    form = {"csv": "CSV", "json": "JSONPath", "xml": "XPath"}[ending]
    rows = f'; rml:iterator "{iterator}"' if iterator else ""
    return (
        f'rml:logicalSource [ rml:source [ rml:path "{path}" {words} ] ; '
        f"rml:referenceFormulation rml:{form} {rows} ]"
    )


def rooms(words: str = "", terms: str = 'rml:reference "v"', file: str = "a.csv") -> str:
    """A mapping of a table with the columns id and v."""
    return (
        f"{HEAD}:m {source(file, words)} ; "
        'rml:subjectMap [ rml:template "http://e/{id}" ] ;\n'
        f"rml:predicateObjectMap [ rml:predicate :v ; rml:objectMap [ {terms} ] ] .\n"
    )


@pytest.fixture
def mapped(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Mapped:
    """Maps files by a mapping; returns the exit code, the lines and standard error."""

    def run(mapping: str, *arguments: str, **files: str | bytes) -> tuple[int, list[str], str]:
        (tmp_path / "m.ttl").write_text(mapping)
        for name, content in files.items():
            path = tmp_path / name.replace("__", ".")
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        code = main(["map", str(tmp_path / "m.ttl"), *arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode().splitlines(), err.decode()

    return run


def test_rows_of_csv_are_quads(mapped: Mapped) -> None:
    table = 'id,v\na b,1\nb,"x ""y""\nz"\nü/,\n'
    code, lines, err = mapped(rooms(), a__csv=table)
    assert (code, err) == (0, "")
    assert lines == [
        '<http://e/a%20b> <http://e/v> "1" .',
        '<http://e/b> <http://e/v> "x \\"y\\"\\nz" .',
        '<http://e/ü%2F> <http://e/v> "" .',
    ]


def test_a_triple_of_constants_is_of_each_row(mapped: Mapped) -> None:
    mapping = rooms(terms="rml:constant :c")
    mapping = mapping.replace('rml:template "http://e/{id}"', "rml:constant :s")
    code, lines, _ = mapped(mapping, a__csv="id,v\na,1\nb,2\n")
    assert (code, lines) == (0, ["<http://e/s> <http://e/v> <http://e/c> ."] * 2)


def test_the_value_before_a_colon_may_be_a_scheme(mapped: Mapped) -> None:
    terms = 'rml:template "{v}://h/" '
    code, lines, _ = mapped(rooms(terms=terms), a__csv="id,v\na,ftp\nb,1\n")
    objects = [line.split()[2] for line in lines]
    assert (code, objects) == (0, ["<ftp://h/>", "<http://example.com/1://h/>"])


def test_a_literal_without_its_language_is_left_out(mapped: Mapped) -> None:
    mapping = (
        f"{HEAD}:m {source('a.json', iterator='$[*]')} ; "
        'rml:subjectMap [ rml:template "http://e/{$.id}" ] ; '
        'rml:predicateObjectMap [ rml:predicate :v ; rml:objectMap [ rml:reference "$.v" ; '
        'rml:languageMap [ rml:reference "$.l" ] ] ] .'
    )
    document = '[{"id": 1, "v": "a", "l": "en"}, {"id": 2, "v": "b"}]'
    code, lines, err = mapped(mapping, a__json=document)
    assert (code, lines, err) == (0, ['<http://e/1> <http://e/v> "a"@en .'], "")


@pytest.mark.parametrize("value", ["http://[::1]:80/a", "http://u@h/?a=%2F#b", "urn:ü:x"])
def test_a_value_that_is_an_iri_is_unchanged(value: str, mapped: Mapped) -> None:
    terms = 'rml:reference "v" ; rml:termType rml:IRI'
    code, lines, _ = mapped(rooms(terms=terms), a__csv=f"id,v\na,{value}\n")
    assert (code, lines) == (0, [f"<http://e/a> <http://e/v> <{value}> ."])


@pytest.mark.parametrize("value", ["http://e/]", "a:%2", "a:#b#", "a b", "a:|", "http://e/[::1]"])
def test_a_value_that_is_not_an_iri_is_reported(value: str, mapped: Mapped) -> None:
    terms = 'rml:reference "v" ; rml:termType rml:IRI'
    code, lines, err = mapped(rooms(terms=terms), a__csv=f"id,v\na,{value}\n")
    assert (code, lines) == (1, []) and "not an IRI" in err


def test_nulls_have_no_triple(mapped: Mapped) -> None:
    code, lines, _ = mapped(rooms('; rml:null "", "-"'), a__csv="id,v\na,1\nb,-\nc,\n")
    assert (code, lines) == (0, ['<http://e/a> <http://e/v> "1" .'])


def test_a_table_of_csvw_has_a_delimiter(mapped: Mapped) -> None:
    csvw = "http://www.w3.org/ns/csvw#"
    dialect = f"<{csvw}dialect> [ <{csvw}delimiter> ';' ]"
    mapping = rooms().replace('rml:path "a.csv"', f'<{csvw}url> "a.csv" ; {dialect}')
    code, lines, _ = mapped(mapping, a__csv="id;v\na;1,5\n")
    assert (code, lines) == (0, ['<http://e/a> <http://e/v> "1,5" .'])
    code, _, err = mapped(mapping.replace("#delimiter", "#quoteChar"), a__csv="id;v\n")
    assert code == 2 and "csvw:quoteChar" in err


def test_a_packed_file_is_read(mapped: Mapped) -> None:
    packed = gzip.compress(b"id,v\na,1\n")
    code, lines, _ = mapped(rooms(file="a.csv.gz"), a__csv__gz=packed)
    assert (code, len(lines)) == (0, 1)


def test_a_fault_of_the_data_has_its_place_and_exit_code_1(mapped: Mapped) -> None:
    terms = 'rml:reference "v" ; rml:datatype xsd:integer'
    code, lines, err = mapped(rooms(terms=terms), a__csv="id,v\na,1\nb,x\nc\nd,4\n")
    assert code == 1 and len(lines) == 2
    assert "record 2" in err and '"x"^^' in err and "not a xsd:integer" in err
    assert "a.csv, line 4: 1 fields where the header has 2: c" in err


@pytest.mark.parametrize(
    ("terms", "value"),
    [
        ('rml:reference "v" ; rml:termType rml:IRI', "x> <y"),
        ('rml:reference "v" ; rml:termType rml:UnsafeIRI', "x> . <a:s> <a:p> <a:o"),
        ('rml:reference "v" ; rml:languageMap [ rml:reference "v" ]',
         'en . <a:s> <a:p> ""x""@de'),
        ('rml:reference "id" ; rml:datatypeMap [ rml:reference "v" ]',
         'x> . <a:s> <a:p> ""q""^^<http://y'),
    ],
)  # fmt: skip
def test_a_value_injects_no_quad(terms: str, value: str, mapped: Mapped) -> None:
    code, lines, err = mapped(rooms(terms=terms), a__csv=f'id,v\na,"{value}"\n')
    assert (code, lines) == (1, []) and "record 1" in err


def test_values_of_json_have_their_datatypes(mapped: Mapped) -> None:
    mapping = (
        f"{HEAD}:m {source('a.json', iterator='$.rooms[*]')} ; "
        'rml:subjectMap [ rml:template "http://e/{$.id}" ] ;\n'
        'rml:predicateObjectMap [ rml:predicate :v ; rml:objectMap [ rml:reference "$.v[*]" ] ] .'
    )
    document = '{"rooms": [{"id": 1, "v": [1, 2.50, true, "x", null]}, {"id": 2, "v": []}]}'
    code, lines, err = mapped(mapping, a__json=document)
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert (code, err) == (0, "")
    assert [line.split(maxsplit=2)[2] for line in lines] == [
        f'"1"^^<{xsd}integer> .', f'"2.50"^^<{xsd}double> .', f'"true"^^<{xsd}boolean> .', '"x" .',
    ]  # fmt: skip


def test_a_reference_that_never_matches_is_reported_with_members(mapped: Mapped) -> None:
    mapping = (
        f"{HEAD}:m {source('a.json', iterator='$[*]')} ; "
        'rml:subjectMap [ rml:template "http://e/{$.ID}" ] ; '
        'rml:predicateObjectMap [ rml:predicate :v ; rml:objectMap [ rml:reference "$.v" ] ] .'
    )
    code, lines, err = mapped(mapping, a__json='[{"id": 1, "v": null}]')
    assert (code, lines) == (1, [])
    assert "$.ID has no value in any record. There are id, v." in err and "$.v" not in err


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (rooms(terms='rml:reference "w"'), "no column w"),
        (rooms(file="../a.csv"), "outside"),
        (rooms(file="/etc/passwd.csv"), "outside"),
        (rooms(file="missing.csv"), "does not exist"),
        ("nothing", "line 1"),
        (rooms(file="a\\u0000.csv"), "it has a NUL"),
        (
            rooms(terms="rml:functionExecution :f")
            + ":f rml:function <http://users.ugent.be/~bjdmeest/function/grel.ttl#toUpperCase> ; "
            "rml:input [ rml:parameter "
            "<http://users.ugent.be/~bjdmeest/function/grel.ttl#valueParameter> ; "
            "rml:inputValueMap [ rml:functionExecution :f ] ] .",
            "functions are nested too deeply",
        ),
    ],
)
def test_a_wrong_mapping_has_exit_code_2(mapping: str, said: str, mapped: Mapped) -> None:
    code, lines, err = mapped(mapping, a__csv="id,v\na,1\n")
    assert (code, lines) == (2, []) and said in err


def test_a_folder_that_is_allowed_is_read(mapped: Mapped, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.csv").write_text("id,v\na,1\n")
    (tmp_path / "inner" / "m.ttl").write_text(rooms(file="../a.csv"))
    assert main(["map", str(tmp_path / "inner" / "m.ttl")]) == 2
    assert main(["map", str(tmp_path / "inner" / "m.ttl"), "--allow", str(tmp_path)]) == 0


def test_the_base_is_that_of_relative_iris(mapped: Mapped) -> None:
    terms = 'rml:reference "v" ; rml:termType rml:IRI'
    table = "id,v\na,b\nb,urn:x\n"
    code, lines, _ = mapped(rooms(terms=terms), "--base", "http://b/", a__csv=table)
    assert code == 0 and [line.split()[2] for line in lines] == ["<http://b/b>", "<urn:x>"]
    assert mapped(rooms(), "--base", "no iri", a__csv=table)[0] == 2


GREL = "http://users.ugent.be/~bjdmeest/function/grel.ttl#"
IDLAB = "https://w3id.org/imec/idlab/function#"


def called(function: str, **inputs: str) -> str:
    """A call of a function. An input is a reference, a text in quotes, or a call."""
    words = []
    for name, value in inputs.items():
        kind = "functionExecution" if value[0] == "[" else "constant" if value[0] == '"' else ""
        shown = value if kind else f'"{value}"'
        words.append(
            f"[ rml:parameter <{GREL}{name}> ; "
            f"rml:inputValueMap [ rml:{kind or 'reference'} {shown} ] ]"
        )
    return f"[ rml:function <{function}> ; rml:input {', '.join(words)} ]"


@pytest.mark.parametrize(
    ("function", "inputs", "value"),
    [
        (f"{GREL}toUpperCase", {"valueParameter": "v"}, "A B"),
        (f"{GREL}toLowerCase", {"valueParam": "v"}, "a b"),
        (f"{GREL}string_trim", {"valueParameter": '" x "'}, "x"),
        (f"{GREL}string_replace",
         {"valueParameter": "v", "p_string_find": '" "', "p_string_replace": '"-{0}"'}, "a-{0}B"),
        (f"{IDLAB}concat", {"str": "id", "otherStr": "v", "delimiter": '"/"'}, "k/a B"),
        (f"{IDLAB}concat", {"str": "id", "otherStr": "v"}, "ka B"),
        (f"{IDLAB}equal", {"valueParameter": "id", "valueParameter2": '"k"'}, "true"),
        (f"{GREL}controls_if", {
            "bool_b": called(f"{IDLAB}notEqual", valueParameter="id", valueParameter2='"k"'),
            "any_true": '"yes"', "any_false": called(f"{GREL}toUpperCase", valueParameter="id"),
        }, "K"),
    ],
)  # fmt: skip
def test_a_function_makes_a_value(
    function: str, inputs: dict[str, str], value: str, mapped: Mapped
) -> None:
    terms = f"rml:functionExecution {called(function, **inputs)}"
    code, lines, err = mapped(rooms(terms=terms), a__csv="id,v\nk,a B\n")
    assert (code, lines, err) == (0, [f'<http://e/k> <http://e/v> "{value}" .'], "")


XML = f"""{HEAD}:m {source("a.xml", iterator="ITERATOR")} ;
rml:subjectMap [ rml:template "http://e/{{@id}}" ] ;
rml:predicateObjectMap [ rml:predicate :v ; rml:objectMap [ rml:reference "v" ] ] .
"""


def test_elements_of_xml_are_rows(mapped: Mapped) -> None:
    document = '<all><r id="1"><v>a</v><v>b<i>c</i></v></r><r id="2"/></all>'
    code, lines, err = mapped(XML.replace("ITERATOR", "/all/r"), a__xml=document)
    assert (code, err) == (0, "")
    assert lines == ['<http://e/1> <http://e/v> "a" .', '<http://e/1> <http://e/v> "bc" .']


@pytest.mark.parametrize(
    ("iterator", "document", "code", "said"),
    [
        ("/all/r", '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><all>&x;</all>', 1,
         "declares entities"),
        ("/all/r", '<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><all>&z;</all>', 1,
         "declares entities"),
        ("/all/r", "<all>", 1, "not XML"),
        ("/all/[r", "<all/>", 2, "not well-formed"),
        ("//a//b//c//d//e", "<all/>", 2, "too expensive"),
        ("/all/" + "r/" * 600 + "r", "<all/>", 2, "too expensive"),
        ("count(/all)", "<all/>", 1, "not elements"),
    ],
)  # fmt: skip
def test_hostile_xml_is_refused(
    iterator: str, document: str, code: int, said: str, mapped: Mapped
) -> None:
    actual, lines, err = mapped(XML.replace("ITERATOR", iterator), a__xml=document)
    assert (actual, lines) == (code, []) and said in err


def test_combinations_of_lists_are_bounded(mapped: Mapped) -> None:
    mapping = (
        f"{HEAD}:m {source('a.json', iterator='$')} ; "
        'rml:subjectMap [ rml:template "http://e/{$.a[*]}{$.b[*]}" ] ; '
        'rml:predicateObjectMap [ rml:predicate :v ; rml:objectMap [ rml:reference "$.a[*]" ] ] .'
    )
    many = str([1] * 5000)
    code, lines, err = mapped(mapping, a__json=f'{{"a": {many}, "b": {many}}}')
    assert (code, lines) == (1, []) and "combinations" in err


WITH_LESS = """
import sys
from levada.cli import main, map_command
map_command.MAX_MEMORY, map_command.MEMORY_GROWTH = 200 << 20, 1
sys.exit(main.main(sys.argv[1:]))
"""


def replaced(levels: int) -> str:
    """Calls within calls; each makes its text eight times as long."""
    inner = '"xxxxxxxx"'
    for _ in range(levels):
        words = {"valueParameter": inner, "p_string_find": '"x"', "p_string_replace": '"xxxxxxxx"'}
        inner = called(f"{GREL}string_replace", **words)
    return f"rml:functionExecution {inner}"


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        (rooms(terms=replaced(9)), "more than 0.2 GiB of memory"),
        (rooms(file="b.csv.gz"), "more than 0.2 GiB of memory"),
        (
            XML.replace("ITERATOR", "//r").replace('"v"', '"count(//r[.//v])"'),
            "more than 1 CPU seconds",
        ),
    ],
    ids=["nested calls", "packed file", "xpath"],
)
def test_a_mapping_that_multiplies_its_data_ends_with_exit_code_5(
    mapping: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.ttl").write_text(mapping)
    (tmp_path / "a.csv").write_text("id,v\n1,2\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"id,v\n1," + bytes(1 << 29), 1))
    rows = "".join(f'<r id="{row}"><v>1</v></r>' for row in range(20_000))
    (tmp_path / "a.xml").write_text(f"<a>{rows}</a>")
    monkeypatch.setenv("LEVADA_WATCHDOG", "1")
    done = subprocess.run(
        [sys.executable, "-c", WITH_LESS, "map", str(tmp_path / "m.ttl")],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (5, "") and f"m.ttl has taken {said}" in done.stderr
