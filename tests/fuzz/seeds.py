"""Sound texts that people write for Levada, from which damaged ones are made: queries in every
dialect, mapping files, app files, options of streams.
"""

PREFIXES = "PREFIX : <http://e/> PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>\n"
QUERIES = {
    "rspql": (
        PREFIXES + """REGISTER RSTREAM :o AS \
SELECT ?s (MAX(?v) AS ?m) (GROUP_CONCAT(?v; SEPARATOR="|") AS ?g)
FROM NAMED WINDOW :w ON :S [RANGE PT10S STEP PT5S] FROM NAMED WINDOW :v ON :S [RANGE 4s]
WHERE { WINDOW :w { ?s a :T ; :p ?v . FILTER(?v > 1.5 && !BOUND(?x)) } \
OPTIONAL { WINDOW :v { ?s :q/:r* 'x'@en } } MINUS { ?s :n ?z } }
GROUP BY ?s HAVING (COUNT(*) > 2) ORDER BY DESC(?m) LIMIT 10 OFFSET 1""",
        PREFIXES + """REGISTER ISTREAM :o AS CONSTRUCT { ?s :has [ :v ?z ] } \
FROM NAMED WINDOW :w ON :S [TRIPLES 5 STEP 2] FROM <http://e/g>
WHERE { { WINDOW :w { ?s (:p|^:q)+ ?v } } UNION { GRAPH ?g { ?s ?p \"\"\"long 'text'\"\"\" } } \
BIND(IF(?v IN (1, -2), STRLEN(?s), COALESCE()) AS ?z)
VALUES (?u ?v) { (1 UNDEF) (:a "x"^^:t) } \
FILTER NOT EXISTS { ?s :p ?z FILTER(REGEX(STR(?z), "^a+$", "i")) } { SELECT * { ?s :p ?u } } }""",
        PREFIXES + "ASK FROM NAMED WINDOW :w ON :S [SESSION 2s] WHERE { "
            "WINDOW :w { ?s :p ?v ; :q ( 1 [ :r _:b ] ) } SERVICE SILENT <x> { ?s ?p 1e3 } }",
    ),
    "cqels": (
        PREFIXES + "SELECT DISTINCT ?s ?t WHERE { "
            "STREAM <http://e/S> [RANGE 4s SLIDE 1s] { ?s :p ?t } "
            "GRAPH <http://e/g> { ?s :q ?f } STREAM <http://e/S> [TRIPLES 3] { ?s :r ?u } "
            "FILTER(?t != ?u) }",
    ),
    "cqels2": (
        PREFIXES + "REGISTER QUERY q AS SELECT ?s (COUNT(?t) AS ?n) "
            "FROM STREAM <http://e/S> [RANGE 4s STEP 1s] WHERE { "
            "STREAM <http://e/S> { ?s :p ?t } ?s :q ?f } GROUP BY ?s",
    ),
    "csparql": (
        PREFIXES + "REGISTER QUERY q COMPUTED EVERY 5s AS SELECT ?s (AVG(?t) AS ?a) "
            "(f:timestamp(?t) AS ?at) FROM STREAM <http://e/S> [RANGE 10s STEP 5s] "
            "FROM <http://e/g> WHERE { ?s :p ?t . OPTIONAL { ?s :q ?u } } "
            "GROUP BY ?s ?t ORDER BY ?a",
        PREFIXES + "REGISTER STREAM q AS CONSTRUCT { ?s :p ?t } "
            "FROM STREAM <http://e/S> [RANGE TRIPLES 7] WHERE { ?s :p ?t "
            "FILTER(f:timestamp(?s, :p, ?t) > 3) }",
    ),
    "sparqlstream": (
        PREFIXES + "SELECT ISTREAM ?s ?t FROM NAMED STREAM <http://e/S> "
            "[FROM NOW - 10 S TO NOW - 2 S STEP 1 S] WHERE { ?s :p ?t . FILTER(?t * 2 >= 4) }",
    ),
    "cql": (
        "Istream(Select a.k, Sum(b.v) As total From S [Range 3 s Slide 1 s] As a, "
            "S [Partition By k Rows 2] As b Where a.k = b.k And (b.v > 1.5 Or a.n Like 'x%') "
            "Group By a.k Having Count(*) > 1);",
        "Totals:\n  Select k, Count(*) As n From S [Now] Group By k;\ndest : out;\n"
            "Rstream(Select Distinct S.k, n * 2 - 1 From S [Rows 3], Totals Where S.k = Totals.k "
            "Union Select k, 1 From S [Range Unbounded]);",
    ),
}  # fmt: skip

MAPPING = """prefixes: {e: "http://e/"}
columns: {speed: integer, at: integer}
let:
  ts: integer(replace(at, " ", "T")) * 1
  seconds: -1 if speed == 0 else 3.6 * 1000 / speed
  part: lower(part(road, " ", 0))
triples:
  - <http://e/{road}/{row}> a e:Observation
  - <http://e/{road}/{row}> e:seconds {seconds}
  - _:b{row} e:text "a {part} \\\\n"@en
"""

APP = """streams:
  temp: {path: temp.nt, lateness: 1s, from: 2013-01-01, limit: 5}
  "http://e/t": {path: "in/*.csv", schema: {k: integer, ts: integer}, time: field:ts, unit: s, \
zone: Europe/Berlin}
static:
  - rooms.ttl
  - {path: more.nq, graph: http://e/g, reload: true}
queries:
  hot: {file: hot.rq, report: periodic:1m, bounds: '(]'}
  all:
    text: |
      PREFIX : <http://e/>
      SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :temp [RANGE PT4S STEP PT4S] \
WHERE { WINDOW :w { ?room :t ?t } }
    t0: 2013-01-01T00:00:00Z
    entailment: rdfs
options: {out: results, format: csv, epoch: 1s, epoch_rows: 1000, max_rows: 10000, \
roll: 10s, terms: false, ontology: [rooms.ttl]}
"""

OPTIONS = (
    "S={}/a.nt,time=column,unit=ms,lateness=10s,element=line,unique=true,idle=30s,files=parallel,ahead=10,from=1970-01-01T00:00:01Z,to=5000",
    "<http://e/S>={}/a.nt,time=predicate:http://e/p,element=subject,closed=element,limit=7",
    "S={}/a.nt,format=nq,time=graph,element=graph,lateness=1h30m",
    "S={}/*.nt,element=blankline,time=filename:(\\d+)",
    "S={}/b.csv,schema=k:integer;v:string,separator=;,time=field:ts,unit=us,sign=v",
    "S={}/b.csv,schema=k:integer;v:double,time_format=%d.%m.%Y %H:%M:%S,"
    "zone=Europe/Berlin,time=field:v",
    "S={}/b.csv,mapping={}/map.yaml",
)
