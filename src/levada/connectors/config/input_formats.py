"""Lists the input formats: their words, the extensions of files, and the packing of files. One
table for streams and static data.

    nt nq                     lines of N-Triples, N-Quads
    ttl trig rdf jsonld jelly RDF documents: Turtle (also ``.n3``, read as Turtle), TriG, RDF/XML,
    JSON-LD, Jelly
    csv ndjson json parquet   rows; json is a document, ndjson has an object on each line

Files are plain, gzip (``.gz``) or Zstandard (``.zst``). Other spellings of the words are in
``ALIASES``.
"""

from __future__ import annotations

STDIN, PUSH = "-", "push:"
LINES = ("nt", "nq")
DOCUMENTS = ("ttl", "trig", "rdf", "jsonld", "jelly")
JSON = ("ndjson", "json")
TABLES = ("csv", *JSON, "parquet")
RDF = LINES + DOCUMENTS
QUADS = ("nq", "trig", "jsonld", "jelly")
PACKED = (".gz", ".zst")
NAMES = {
    "nt": "N-Triples",
    "nq": "N-Quads",
    "ttl": "Turtle",
    "trig": "TriG",
    "rdf": "RDF/XML",
    "jsonld": "JSON-LD",
    "jelly": "Jelly",
    "csv": "CSV",
    "ndjson": "NDJSON",
    "json": "JSON",
    "parquet": "Parquet",
}
DERIVED = "made"  # not a file format: the results of a query, as the engine stores them
ALIASES = {
    "ntriples": "nt",
    "n-triples": "nt",
    "nquads": "nq",
    "n-quads": "nq",
    "turtle": "ttl",
    "rdfxml": "rdf",
    "xml": "rdf",
    "json-ld": "jsonld",
    "jsonl": "ndjson",
}
ENDINGS = {
    ".nt": "nt",
    ".ntriples": "nt",
    ".nq": "nq",
    ".nquads": "nq",
    ".ttl": "ttl",
    ".turtle": "ttl",
    ".n3": "ttl",
    ".trig": "trig",
    ".rdf": "rdf",
    ".owl": "rdf",
    ".xml": "rdf",
    ".jsonld": "jsonld",
    ".jelly": "jelly",
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "json",
    ".parquet": "parquet",
}


def format_of(file_name: str) -> str | None:
    """Returns the format of a file name's extension, without ``.gz`` and ``.zst``; None if it has
    none.

    >>> format_of("a/b.NT.gz"), format_of("b.trig.zst"), format_of("b.dat")
    ('nt', 'trig', None)
    """
    name = file_name.lower().rpartition("/")[2].lstrip(".")
    *_, packed, ending = "", "", *name.split(".")[1:]
    return ENDINGS.get(f".{packed if f'.{ending}' in PACKED else ending}")


def word_of(text: str) -> str:
    """Returns a format's canonical word; an unknown word unchanged.

    >>> word_of("Turtle"), word_of("jsonl"), word_of("docx")
    ('ttl', 'ndjson', 'docx')
    """
    word = text.lower()
    return ALIASES.get(word, word)
