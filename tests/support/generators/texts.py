"""A random query as a text in each dialect, and as the question that all of them ask the reference.

Bodies say ``WINDOW :w0 {..}``. RSP-QL takes them as they are; in CQELS-QL each is ``STREAM <s> [..]
{..}``; in C-SPARQL and SPARQLstream a plain group, since patterns read the merge of all windows and
of static data, which holds triples that streams have, too. C-SPARQL may name one window by its
stream (``FROM NAMED STREAM``), which GRAPH then reads, also with a variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from levada.testing.reference_model import ReferenceQuery, TripleTemplate
from support.generators.case import CaseQuery
from support.generators.paths import spelled
from support.generators.patterns import reference_text
from support.generators.vocabulary import OVERLAP, PREFIX, iri
from support.generators.windows import Clause, compact, reporting

Windows = Mapping[str, tuple[str, Clause]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query's head, and what follows its group; of a CONSTRUCT also the head and template of the
    reference.
    """

    head: str
    tail: str = ""
    select: str = ""
    template: tuple[TripleTemplate, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """A query without its words: its windows by name (stream, clause), its group's text, its
    options, its output.
    """

    name: str
    asked: Asked
    body: str
    windows: Windows
    options: dict[str, object]
    output: str

    def question(self, body: str, options: Mapping[str, object], **more: object) -> ReferenceQuery:
        """What the reference is asked: the body in SPARQL, the windows under the options."""
        windows = {
            f"http://e/{w}": (on, clause.window(options))
            for w, (on, clause) in self.windows.items()
        }
        return ReferenceQuery(
            f"{PREFIX}{self.asked.select or self.asked.head} WHERE {{ {body} }}{self.asked.tail}",
            **{"windows": windows, "output": self.output, "template": self.asked.template, **more},  # type: ignore[arg-type]
            empty_reports=bool(self.options.get("empty_reports")),
            **reporting(self.options),
        )


@st.composite
def texts(draw: st.DrawFn, drawn: Drawn) -> CaseQuery:
    """The query in a dialect that can say it: half of them in RSP-QL, and those whose window is a
    variable.
    """
    if "WINDOW ?" in drawn.body:
        return rspql(drawn)
    fit = ["rspql"] * 4 + ["cqels"] * 2
    if drawn.output == "RSTREAM":
        fit += ["csparql"] * 2
    if not drawn.asked.head.startswith("ASK"):
        fit += ["sparqlstream"]
    if drawn.output == "ISTREAM" and len({on for on, _ in drawn.windows.values()}) == len(
        drawn.windows
    ):
        fit += ["cqels2"] * 2
    dialect = draw(st.sampled_from(fit))
    match dialect:
        case "rspql":
            return rspql(drawn)
        case "cqels":
            return cqels(drawn)
        case "cqels2":
            return cqels2(drawn)
        case _:
            return draw(_merging(drawn, dialect))


def rspql(drawn: Drawn) -> CaseQuery:
    """The query in RSP-QL, which may say in its text where windows start, and that reports have
    content.
    """
    clauses = [
        f"FROM NAMED WINDOW :{w} ON <{on}> {clause.rspql}"
        for w, (on, clause) in drawn.windows.items()
    ]
    given = dict(drawn.options)
    if "t0" in given and drawn.output == "ISTREAM":
        clauses.append(f"T0 {given.pop('t0')}")
    if given.get("report") == "nonempty":
        clauses.append("REPORT NON_EMPTY_CONTENT")
        del given["report"]
    register = f"REGISTER {drawn.output} {iri(drawn.name)} AS"
    text = _text(register, drawn.asked.head, clauses, drawn.body, drawn.asked.tail)
    question = drawn.question(
        reference_text(spelled(drawn.body, [f":{w}" for w in drawn.windows])), drawn.options
    )
    return CaseQuery(drawn.name, text, "rspql", given, question)


def cqels(drawn: Drawn) -> CaseQuery:
    """The query in CQELS-QL, which reports on change unless it is told not to, and says IStream by
    itself.
    """
    body = drawn.body
    for w, (on, clause) in drawn.windows.items():
        body = body.replace(f"WINDOW :{w} {{", f"STREAM <{on}> {compact(clause)} {{")
    register = "" if drawn.output == "ISTREAM" else f"REGISTER {drawn.output} {iri(drawn.name)} AS"
    text = _text(register, drawn.asked.head, [], body, drawn.asked.tail)
    return CaseQuery(drawn.name, text, "cqels", drawn.options, _on_change(drawn))


def cqels2(drawn: Drawn) -> CaseQuery:
    """The query in CQELS-QL 2: windows beside FROM, one a stream, of which RANGE alone tumbles."""
    body, clauses = drawn.body, []
    for w, (on, clause) in drawn.windows.items():
        body = body.replace(f"WINDOW :{w} {{", f"STREAM <{on}> {{")
        brackets = compact(clause)
        if clause.kind == "range" and not clause.to:
            brackets = brackets.replace("RANGE ", "NOW - ").replace("]", " TO NOW]")
        clauses.append(
            f"FROM STREAM <{on}> "
            f"{brackets.replace(' TUMBLING', '') if 'RANGE' in brackets else brackets}"
        )
    text = _text(
        f"REGISTER QUERY {drawn.name} AS", drawn.asked.head, clauses, body, drawn.asked.tail
    )
    return CaseQuery(drawn.name, text, "cqels2", drawn.options, _on_change(drawn))


def _on_change(drawn: Drawn) -> ReferenceQuery:
    """The question of a dialect that reports on change unless the options say otherwise."""
    report = str(drawn.options.get("report", ""))
    policy = {"": "change", "nonempty": "change+nonempty"}.get(report, report)
    return drawn.question(reference_text(spelled(drawn.body)), {**drawn.options, "report": policy})


@st.composite
def _merging(draw: st.DrawFn, drawn: Drawn, dialect: str) -> CaseQuery:
    """The query over the merge of its windows with a static graph, in C-SPARQL or SPARQLstream."""
    graphs = draw(st.sampled_from((None, None, (OVERLAP,), ("http://e/g", OVERLAP))))
    dataset = (
        [] if graphs is None else [*(f"FROM <{g}>" for g in graphs), "FROM NAMED <http://e/g>"]
    )
    word = "STREAM" if dialect == "csparql" else "NAMED STREAM"
    named = dialect == "csparql" and draw(st.integers(0, 3)) == 3
    called = {w: f"http://e/{w}" for w in drawn.windows}
    body, clauses = drawn.body, []
    for i, (w, (on, clause)) in enumerate(drawn.windows.items()):
        graph = named and i == 0
        called[w] = on if graph else called[w]
        brackets = compact(clause, tumbling=dialect == "csparql")
        clauses.append(f"FROM {'NAMED STREAM' if graph else word} <{on}> {brackets}")
        body = body.replace(f"WINDOW :{w} {{", f"GRAPH <{on}> {{" if graph else "{")
    windows = {
        called[w]: (on, clause.window(drawn.options)) for w, (on, clause) in drawn.windows.items()
    }
    merged = tuple(called[w] for i, w in enumerate(drawn.windows) if not (named and i == 0))
    given = dict(drawn.options)
    every = re.fullmatch(r"periodic:(\w+)", str(given.get("report")))
    if every and dialect == "csparql":
        del given["report"]
    computed = f"COMPUTED EVERY {every[1]} " if every else ""
    register = f"REGISTER QUERY {drawn.name} {computed}AS" if dialect == "csparql" else ""
    head = drawn.asked.head
    if dialect == "sparqlstream":
        form, _, rest = head.partition(" ")
        head = f"{form} {drawn.output} {rest}"
    text = _text(register, head, [*clauses, *dataset], body, drawn.asked.tail)
    over = ["g", "h", "both"] if graphs is None else ["g"]
    over += [name.removeprefix("http://e/") for name in list(called.values())[:named]]
    judged = reference_text(spelled(body), over)
    question = drawn.question(judged, drawn.options, windows=windows, merged=merged, graphs=graphs)
    return CaseQuery(drawn.name, text, dialect, given, question)


def _text(register: str, head: str, clauses: list[str], body: str, tail: str) -> str:
    return "\n".join([f"{PREFIX}{register}", head, *clauses, f"WHERE {{ {body} }}{tail}"])
