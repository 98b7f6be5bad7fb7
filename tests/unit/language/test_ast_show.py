"""The printed form of the syntax tree: every kind of node once, as a snapshot."""

from __future__ import annotations

from levada.language import parse, show

TEXT = """
BASE <http://e/> PREFIX : <p#> REGISTER ISTREAM :o AS
SELECT DISTINCT ?a (SUM(DISTINCT ?b + 1) AS ?t) (GROUP_CONCAT(?a; SEPARATOR=", ") AS ?d)
FROM :g FROM NAMED <n> FROM NAMED WINDOW :w ON STREAM :s [RANGE PT1.5S]
FROM NAMED WINDOW :v ON :s [TRIPLES 5]
{ ?s :p/:q|^:r*|!(:a|^:b) (1 [ :x _:b ])
OPTIONAL { ?a ?b ?c FILTER(?c IN ('x') && NOT EXISTS { ?a ?b 'y' }) }
  MINUS { ?s ?p 1 } {} UNION {} SERVICE SILENT <x> {}
VALUES (?u ?v) { (1 UNDEF) } { SELECT * {} LIMIT 5 }
  BIND(<f>(?x) AS ?y) GRAPH ?g { ?s ?p true } WINDOW :w { } }
GROUP BY ?a (?b AS ?k) HAVING (?a > COUNT(*))
ORDER BY DESC(?a) ?b LIMIT 10 OFFSET 5 VALUES ?z { 'x' 'y' }
"""
SNAPSHOT = """
(query-unit
  (register ISTREAM <http://e/p#o>)
  (select DISTINCT
    (projected ?a)
    (projected ?t (SUM DISTINCT (+ ?b "1"^^<http://www.w3.org/2001/XMLSchema#integer>)))
    (projected ?d (GROUP_CONCAT ?a (separator ", "))))
  (from <http://e/p#g>)
  (from <http://e/n> named)
  (window-clause <http://e/p#w> <http://e/p#s> (range PT1.5S))
  (window-clause <http://e/p#v> <http://e/p#s> (last-triples 5))
  (group
    (triples
      (?s
        (path-alternative
          (path-sequence <http://e/p#p> <http://e/p#q>)
          (path-inverse (path-repeat <http://e/p#r> *))
          (path-negated <http://e/p#a> (path-inverse <http://e/p#b>)))
        _:.2)
      (_:.2 <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> "1"^^<http://www.w3.org/2001/XMLSchema#integer>)
      (_:.2 <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> _:.3)
      (_:.3 <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> _:.1)
      (_:.1 <http://e/p#x> _:b)
      (_:.3 <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil>))
    (optional
      (group
        (triples (?a ?b ?c))
        (filter (&& (IN ?c "x") (exists (group (triples (?a ?b "y"))) negated)))))
    (minus (group (triples (?s ?p "1"^^<http://www.w3.org/2001/XMLSchema#integer>))))
    (union (group) (group))
    (service <http://e/x> silent (group))
    (inline-data (variables ?u ?v) (rows ("1"^^<http://www.w3.org/2001/XMLSchema#integer> UNDEF)))
    (group (sub-select (select ALL) (group) (modifiers (limit 5))))
    (bind (<http://e/f> ?x) ?y)
    (graph ?g (group (triples (?s ?p "true"^^<http://www.w3.org/2001/XMLSchema#boolean>))))
    (window <http://e/p#w> (group)))
  (modifiers
    (group-by (group-key ?a) (group-key ?b ?k))
    (having (> ?a (COUNT *)))
    (order-by (order-key ?a descending) (order-key ?b))
    (limit 10)
    (offset 5))
  (values (inline-data (variables ?z) (rows ("x") ("y"))))
  (base http://e/))
"""


def test_every_kind_of_node() -> None:
    assert show(parse(TEXT)) == SNAPSHOT.strip()


def test_other_forms() -> None:
    assert (
        show(parse("DESCRIBE * { ?s ?p ?o }"))
        == "(query-unit (describe) (group (triples (?s ?p ?o))))"
    )
    assert show(parse("ASK { }")) == "(query-unit (ask) (group))"
    assert (
        show(parse("CONSTRUCT { ?s <p> ?o } { }")) == "(query-unit (construct (?s <p> ?o)) (group))"
    )
