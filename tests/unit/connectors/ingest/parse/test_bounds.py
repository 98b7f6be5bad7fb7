"""What would end the process in a parser is refused before; what is sound is read as it was; and
nothing that a document names is fetched.
"""

import io
import json
import re
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.ingest.parse import document_limits
from levada.connectors.ingest.parse.document_limits import AUTOMATA, DEEPEST, Bounded, Malformed
from levada.connectors.ingest.parse.documents import document_chunks
from levada.connectors.ingest.parse.fallback_parser import Refused, read_line
from levada.connectors.ingest.static_files import check_sound, static_file
from levada.errors import SourceError
from levada.kernels.nesting_depth import descend

RDF = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
ONE = {
    "nt": b"<http://e/a> <http://e/p> <http://e/b> .",
    "nq": b"<http://e/a> <http://e/p> <http://e/b> .",
    "ttl": b"<http://e/a> <http://e/p> <http://e/b> .",
    "trig": b"<http://e/a> <http://e/p> <http://e/b> .",
    "rdf": RDF
    + b'<rdf:Description rdf:about="http://e/a"><e:p rdf:resource="http://e/b"/></rdf:Description></rdf:RDF>',
    "jsonld": b'{"@id": "http://e/a", "http://e/p": {"@id": "http://e/b"}}',
}
BOM = b"\xef\xbb\xbf"


def nested(kind: str, k: int) -> tuple[str, bytes]:
    """A document that is k levels deep, and its format."""
    start = b"<a:s> <a:p> "
    return {
        "objects": ("jsonld", b'{"http://e/p":' * k + b"1" + b"}" * k),
        "arrays": ("jsonld", b"[" * k + b"]" * k),
        "blank nodes": ("ttl", start + b"[ <a:p> " * k + b"1" + b"]" * k + b" ."),
        "collections": ("trig", start + b"(" * k + b"1" + b")" * k + b" ."),
        "triples": ("ttl",
            start + b"<<( <a:s> <a:p> " * (k // 2) + b"<a:o>" + b" )>>" * (k // 2) + b" ."),
        "elements": ("rdf", RDF + b"<e:C><e:p>" * ((k - 2) // 2) + b"<e:D/>"
            + b"</e:p></e:C>" * ((k - 2) // 2) + b"</rdf:RDF>"),
    }[kind]  # fmt: skip


def read(form: str, data: bytes) -> bytes:
    return b"".join(document_chunks(lambda: io.BytesIO(data), form, "http://e/"))


KINDS = ("objects", "arrays", "blank nodes", "collections", "triples", "elements")


@pytest.mark.parametrize("kind", KINDS)
def test_documents_nest_as_deep_as_anybody_writes(kind: str) -> None:
    form, data = nested(kind, DEEPEST - 2)
    if kind == "triples":  # which Levada does not take, at any depth
        with pytest.raises(Malformed, match=r"RDF 1\.2"):
            read(form, data)
    else:
        read(form, data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [4_000, 300_000])
def test_deeper_ones_are_refused_with_a_sentence_and_a_place(kind: str, k: int) -> None:
    form, data = nested(kind, k)
    with pytest.raises(Malformed, match=f"nests more than {DEEPEST} levels deep") as error:
        read(form, data)
    assert error.value.line == 1 and DEEPEST < error.value.column < 20 * DEEPEST


def test_triples_within_triples_in_a_line_are_refused_before_the_parser() -> None:
    line = b"<a:s> <a:p> " + b"<<( <a:s> <a:p> " * 50_000 + b"<a:o>" + b" )>>" * 50_000 + b" ."
    for timed in (False, True):
        with pytest.raises(Refused, match="levels deep"):
            read_line(line, quads=False, timed=timed, document=1)


@pytest.mark.parametrize("kind", KINDS)
def test_static_files_too(tmp_path: Path, kind: str) -> None:
    form, data = nested(kind, 4_000)
    path = tmp_path / f"a.{form}"
    path.write_bytes(data)
    with pytest.raises(SourceError, match="levels deep") as error:
        check_sound(static_file(str(path), graph="http://e/g"))
    assert str(path) in str(error.value)


# -- the automata and their twins --


def depth(form: str, text: bytes) -> int:
    """The greatest depth that the automaton sees."""
    automaton = AUTOMATA[form]
    data = np.frombuffer(text, np.uint8)
    for deepest in range(60):
        state = np.zeros(2, np.int64)
        if descend(data, automaton.kinds, automaton.table, state, deepest) < 0:
            return deepest
    raise AssertionError("the examples are shallow")


ODD = st.text(alphabet="a\"\\'[]{}()<>#/&;!-? \n\té", max_size=8)
JSON = st.recursive(
    ODD | st.integers(), lambda x: st.lists(x, max_size=3) | st.dictionaries(ODD, x, max_size=3)
)


def json_depth(value: Any) -> int:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(map(json_depth, inner), default=0)
    return 0


@given(JSON, st.booleans())
def test_json_is_as_deep_as_python_says(value: Any, ascii_: bool) -> None:
    assert depth("jsonld", json.dumps(value, ensure_ascii=ascii_).encode()) == json_depth(value)


TURTLE = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    r"|<<|>>|<[^<>\n]*>|#[^\n]*|\\.|[\[({]|[\])}]",
    re.DOTALL,
)


def turtle_depth(text: str) -> int:
    now = most = 0
    for token in TURTLE.findall(text):
        if token in ("<<", "[", "(", "{"):
            now += 1
        elif token in (">>", "]", ")", "}"):
            now = max(now - 1, 0)
        most = max(most, now)
    return most


def quoted(text: str, quote: str) -> str:
    return quote + text.replace("\\", "\\\\").replace(quote[0], "\\" + quote[0]) + quote


PIECES = (
    st.sampled_from(["[ ", "] ", "( ", ") ", "{", "}", "<< ", ">> ", "<a:[b> ", "<> ", "a:b\\( ",
                     '"" ', "'' ", ". "])
    | st.builds(quoted, ODD, st.sampled_from(['"""', "'''"]))
    | st.builds(quoted, ODD.map(lambda t: t.replace("\n", "")), st.sampled_from(['"', "'"]))
    | ODD.map(lambda t: "# " + t.replace("\n", "") + "\n")
)  # fmt: skip


@given(st.lists(PIECES, max_size=20).map(" ".join))
def test_turtle_is_as_deep_as_its_tokens_say(text: str) -> None:
    assert depth("ttl", text.encode()) == turtle_depth(text)


def xml_depth(text: bytes) -> int:
    now = most = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)

    def end(name: str) -> None:
        nonlocal now
        now -= 1

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.Parse(text, True)
    return most


WORDS = st.text(alphabet="a[]()'/? é-", max_size=6)
LEAVES = (
    WORDS.map(lambda t: f"<!-- {t.replace('--', '')} <b> -->")
    | WORDS.map(lambda t: f"<![CDATA[{t} <b> ]]>")
    | st.sampled_from(["text", "<?p <b> ?>", "&lt;", "<!-- > -->"])
)
XML = st.recursive(
    LEAVES,
    lambda x: st.builds(lambda t, c: f'<c d="{t} > /"  e=\'/>"\'>{"".join(c)}</c >', WORDS,
                        st.lists(x, max_size=3)),
    max_leaves=12,
)  # fmt: skip


@given(XML)
def test_xml_is_as_deep_as_expat_says(inner: str) -> None:
    text = f"<?xml version='1.0'?><!DOCTYPE a><a>{inner}</a>".encode()
    found = xml_depth(text)
    assert found <= depth("rdf", text) <= found + text.count(b"/>")


@pytest.mark.parametrize("form", ["ttl", "trig", "rdf", "jsonld"])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch, form: str, size: int) -> None:
    monkeypatch.setattr(document_limits, "BLOCK", size)
    kind = {"rdf": "elements", "jsonld": "objects"}.get(form, "collections")
    assert read(form, ONE[form]) == ONE["nt"] + b"\n"
    for k, sound in ((DEEPEST - 2, True), (2 * DEEPEST, False)):
        data = nested(kind, k)[1]
        bounded = Bounded(io.BytesIO(data), form)
        if sound:
            assert b"".join(iter(partial(bounded.read, 1000), b"")) == data
        else:
            with pytest.raises(Malformed):
                while bounded.read(1000):
                    pass


# -- entities --


def with_entities(declared: bytes, used: bytes) -> bytes:
    return (
        b"<!DOCTYPE rdf:RDF [" + declared + b"]>" + RDF + b'<rdf:Description rdf:about="http://e/a">'
        b"<e:p>" + used + b"</e:p></rdf:Description></rdf:RDF>"
    )  # fmt: skip


def test_short_names_of_namespaces_are_read() -> None:
    declared = (
        b'<!ENTITY e "http://e/"><!ENTITY e2 "&e;x#" ><!-- <!ELEMENT a> -->\n<!ENTITY % q "1">'
    )
    text = with_entities(declared, b"&e2;a &amp; &lt;" * 100)
    assert read("rdf", text).count(b"http://e/x#a & <") == 100


BOMB = b'<!ENTITY a "' + b"x" * 1000 + b'">'
for _name, _inner in zip("bcdefghi", "abcdefgh", strict=True):
    BOMB += f'<!ENTITY {_name} "{f"&{_inner};" * 10}">'.encode()


@pytest.mark.parametrize(
    ("declared", "used", "said"),
    [
        (BOMB, b"&i;", "its entity c expands"),
        (b'<!ENTITY a "' + b"x" * 60_000 + b'">', b"&a;" * 1000, "more than 20 times its size"),
        (b"<!ENTITY a 'x'>", b"&a;", "double quotes"),
        ("<!ENTITY\u00a0a 'x'>".encode(), b"&a;", "double quotes"),
        (b'<!ENTITY a SYSTEM "http://localhost/">', b"&a;", "double quotes"),
    ],
)
def test_entities_do_not_blow_up(declared: bytes, used: bytes, said: str) -> None:
    with pytest.raises(Malformed, match=said):
        read("rdf", with_entities(declared, used))


@pytest.mark.parametrize("form", ["xmlns:n%d='e:%d'", 'e:p%d = "%d>"'])
def test_very_many_attributes_of_an_element_are_refused(form: str) -> None:
    """The parser compares each with all: a megabyte of them took it ten seconds."""
    for count, sound in ((900, True), (1100, False)):
        names = " ".join(form % (i, i) for i in range(count)).encode()
        document = RDF.replace(b">", b" " + names + b">") if "xmlns" in form else RDF
        inner = b"" if "xmlns" in form else names
        text = document + b'<rdf:Description rdf:about="e:a" ' + inner + b"/></rdf:RDF>"
        if sound:
            assert Bounded(io.BytesIO(text), "rdf").read()
        else:
            with pytest.raises(Malformed, match="more than 1,000 attributes"):
                Bounded(io.BytesIO(text), "rdf").read()


def test_text_that_is_no_attributes_is_read_in_time_of_its_length() -> None:
    for text in (b"a" * 900_000, b"a=''" * 999 + b"=", b"a = 'b' c " * 90_000, b"a b " * 200_000):
        document = RDF + b'<rdf:Description rdf:about="e:a"><e:p>' + text
        assert Bounded(io.BytesIO(document), "rdf").read()


def test_entities_behind_the_first_block_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = with_entities(b" " * 5000 + BOMB, b"&i;")
    for size in (1000, 4990, 5020, 5021, 5022, 5030):
        monkeypatch.setattr(document_limits, "BLOCK", size)
        with pytest.raises(Malformed):
            read("rdf", text)


def test_what_looks_like_an_entity_without_a_declaration_of_a_type_is_text() -> None:
    inner = b"<![CDATA[<!ENTITY x SYSTEM 'y'>]]>"
    text = RDF + b'<e:C rdf:about="http://e/a"><e:p>' + inner + b"</e:p></e:C></rdf:RDF>"
    assert b"<!ENTITY x" in read("rdf", text)


# -- byte order marks --


@pytest.mark.parametrize("form", list(ONE))
def test_a_byte_order_mark_is_skipped(tmp_path: Path, form: str) -> None:
    assert read(form, BOM + ONE[form]) == ONE["nt"] + b"\n"
    path = tmp_path / f"a.{form}"
    path.write_bytes(BOM + ONE[form] + b"\n")
    check_sound(static_file(str(path), graph="http://e/g"))


# -- nothing is fetched --


@pytest.fixture
def listening() -> Iterator[tuple[str, socket.socket]]:
    """An address at which nobody may call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield f"http://127.0.0.1:{server.getsockname()[1]}/x", server


def outside(url: str, secret: str) -> dict[str, tuple[str, bytes]]:
    """Documents that name what lies elsewhere: a format and the text, by what they try."""
    rdf = RDF.decode()
    use = f'{rdf}<e:C rdf:about="http://e/a"><e:p>&x;</e:p></e:C></rdf:RDF>'
    plain = f'{rdf}<e:C rdf:about="http://e/a"><e:p>1</e:p></e:C></rdf:RDF>'
    term = '"http://e/p": 1'
    found = {
        "entity": ("rdf", f'<!DOCTYPE r [<!ENTITY x SYSTEM "{url}">]>{use}'),
        "entity of a file": ("rdf", f'<!DOCTYPE r [<!ENTITY x SYSTEM "file://{secret}">]>{use}'),
        "public entity": ("rdf", f'<!DOCTYPE r [<!ENTITY x PUBLIC "a" "{url}">]>{use}'),
        "parameter": ("rdf", f'<!DOCTYPE r [<!ENTITY % x SYSTEM "{url}"> %x;]>{plain}'),
        "parameter of a file": ("rdf",
                                f'<!DOCTYPE r [<!ENTITY % x SYSTEM "file://{secret}"> %x;]>{use}'),
        "type": ("rdf", f'<!DOCTYPE r SYSTEM "{url}">{plain}'),
        "public type": ("rdf", f'<!DOCTYPE r PUBLIC "a" "{url}" [ ]>{plain}'),
        "include": ("rdf", plain.replace("<e:p>",
            f'<e:p><xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{url}"/>')),
        "stylesheet": ("rdf", f'<?xml version="1.0"?><?xml-stylesheet href="{url}"?>{plain}'),
        "context": ("jsonld", f'{{"@context": "{url}", {term}}}'),
        "contexts": ("jsonld", f'{{"@context": [{{}}, "{url}"], {term}}}'),
        "context of a file": ("jsonld", f'{{"@context": "file://{secret}", {term}}}'),
        "import": ("jsonld", f'{{"@context": {{"@import": "{url}"}}, {term}}}'),
        "scoped": ("jsonld", f'{{"@context": {{"t": {{"@id": "http://e/t", '
                   f'"@context": "{url}"}}}}, "t": {{"a": 1}}}}'),
        "imports": ("ttl", f"@prefix : <{url}#> . <a:a> <http://www.w3.org/2002/07/owl#imports> "
                    f"<{url}> . @base <{url}> . <> a :x ."),
        "base": ("trig", f"@base <{url}> . <y> {{ <a> <b> <file://{secret}> }}"),
    }  # fmt: skip
    return {name: (form, text.encode()) for name, (form, text) in found.items()}


@pytest.mark.parametrize("name", list(outside("", "")))
def test_what_a_document_names_elsewhere_is_not_fetched(
    tmp_path: Path, listening: tuple[str, socket.socket], name: str
) -> None:
    url, server = listening
    secret = tmp_path / "secret.txt"
    secret.write_text("never-to-be-seen")
    form, text = outside(url, str(secret))[name]
    path = tmp_path / f"a.{form}"
    path.write_bytes(text)
    found = b""
    try:
        found = read(form, text)
        check_sound(static_file(str(path), graph="http://e/g"))
    except (Malformed, SourceError) as error:
        assert "never-to-be-seen" not in str(error)
    assert b"never-to-be-seen" not in found
    with pytest.raises(BlockingIOError):
        server.accept()
