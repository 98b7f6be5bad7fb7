"""Results as RDFLib's values. Cost: that of RDFLib, an object a term; each distinct text is parsed
once.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import rdflib
from rdflib.query import Result
from rdflib.term import Identifier

from levada.connectors.serialization.construct_quads import graph_iris
from levada.core.event_time import MIN
from levada.core.query_model import Form
from levada.core.rdf_terms import XSD, Blank, Iri, Literal, parse_term

_TRIPLE = ("subject", "predicate", "object")


def to_rdflib(query: str, form: Form, texts: pl.DataFrame) -> rdflib.Graph | Result:
    """Converts a table of texts: a CONSTRUCT into a graph (with ``report``: a dataset with a graph
    each), others into a result.
    """
    if form is not Form.CONSTRUCT:
        return _result(form, texts)
    known = _terms(texts)
    if "report" not in texts.columns:
        return _fill(rdflib.Graph(), texts, known)
    dataset = rdflib.Dataset()
    for (time,), part in texts.group_by("report", maintain_order=True):
        name = graph_iris(query, np.array([MIN if time is None else time]))[0]
        _fill(dataset.graph(rdflib.URIRef(name[1:-1])), part, known)
    return dataset


def _fill(graph: rdflib.Graph, texts: pl.DataFrame, known: dict[str, Identifier]) -> rdflib.Graph:
    for s, p, o in texts.select(_TRIPLE).iter_rows():
        graph.add((known[s], known[p], known[o]))
    return graph


def _result(form: Form, texts: pl.DataFrame) -> Result:
    """Converts solutions. An ASK with reports becomes a solution a report."""
    if form is Form.ASK and "report" not in texts.columns:
        result = Result("ASK")
        result.askAnswer = bool(texts.height and texts["boolean"][0])
        return result
    if "report" in texts.columns:
        time = pl.col("report").cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        texts = texts.with_columns(report=_literal(time, "dateTime"))
    for name, kind in (("change", "integer"), ("boolean", "boolean")):
        if name in texts.columns and texts[name].dtype != pl.String:
            texts = texts.with_columns(_literal(pl.col(name).cast(pl.String), kind).alias(name))
    known = _terms(texts)
    result = Result("SELECT")
    result.vars = [rdflib.Variable(name) for name in texts.columns]
    result.bindings = [
        {v: known[t] for v, t in zip(result.vars, row, strict=True) if t is not None}
        for row in texts.iter_rows()
    ]
    return result


def _literal(lexical: pl.Expr, name: str) -> pl.Expr:
    return pl.concat_str(pl.lit('"'), lexical, pl.lit(f'"^^<{XSD}{name}>'))


def _terms(texts: pl.DataFrame) -> dict[str, Identifier]:
    """Returns the term of each distinct text."""
    columns = [column for column in texts.get_columns() if column.dtype == pl.String]
    distinct = {text for column in columns for text in column.drop_nulls().unique().to_list()}
    return {text: _term(text) for text in distinct}


def _term(text: str) -> Identifier:
    match parse_term(text):
        case Iri(value):
            return rdflib.URIRef(value)
        case Blank(label):
            return rdflib.BNode(label)
        case Literal(lexical, datatype, language):
            if language:
                return rdflib.Literal(lexical, lang=language)
            if '"^^<' not in text:
                return rdflib.Literal(lexical)
            # keeps the text: "01" is not normalized
            return rdflib.Literal(lexical, datatype=rdflib.URIRef(datatype), normalize=False)
