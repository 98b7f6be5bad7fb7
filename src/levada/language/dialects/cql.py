"""CQL as data: its units, its relation-to-stream words, its report defaults, and what of it Levada
refuses by name.

Cost: none, tables only. Source: Arasu, Babu, Widom, "The CQL continuous query language" (VLDB
Journal 15, 2006), and the scripts of STREAM. How CQL maps to docs/semantics.md:

    S                        ALL, CQL's default for a stream; S [Range Unbounded] and
                             S [Rows Unbounded] likewise
    S [Now]                  NOW
    S [Range a]              RANGE a, reports on content change
    S [Range a Slide b]      RANGE a STEP b, reports on close (``report=change``: on content change)
    S [Rows n]               the last n rows
    S [Partition By k Rows n]  the last n rows of each k
    R, a relation            what has been inserted and not deleted
    A Union B, A Except B    as bags: counts are added, counts are taken off
    Istream(Select ..)       ISTREAM; Dstream, Rstream likewise
    Select ..                RELATION: the relation's changes, both signs
"""

from __future__ import annotations

# Milliseconds of each unit, by every spelling; a number without a unit counts seconds, as in
# STREAM.
UNITS: dict[str, int] = {
    spelling: ms
    for ms, spellings in {
        1: "ms millisecond milliseconds msec msecs",
        1_000: "s sec secs second seconds",
        60_000: "m min mins minute minutes",
        3_600_000: "h hour hours",
        86_400_000: "d day days",
    }.items()
    for spelling in spellings.split()
}
DEFAULT_UNIT = "s"

# STREAM's types, and those of Levada's schemas; a byte is a string of one character, a float is a
# double.
TYPES: dict[str, str] = {
    "integer": "integer",
    "int": "integer",
    "float": "double",
    "double": "double",
    "byte": "string",
    "char": "string",
    "string": "string",
    "boolean": "boolean",
}

# A word where the grammar has no place for it -> the feature that it would begin, in the words of
# the language.
REFUSED: dict[str, str] = {
    "minus": "Minus (write Except)",
    "slide": "Slide on this kind of window",
    "natural": "Natural Join (write Join .. Using (k))",
    "match_recognize": "Match_Recognize",
    "qualify": "Qualify (write Where around the query in brackets)",
    "create": "Create (write Register Stream or Relation .. As)",
}

# Operators of other languages -> how CQL writes them.
FOREIGN: dict[str, str] = {
    "==": "Write = for equality.",
    "&&": "Write And.",
    "!": "Write Not, or <>.",
    "::": "Write Cast(x As Integer).",
}

# The words that cannot be names without quotes, as the terminal NAME of the grammar has them.
_RESERVED = (
    "select distinct from as where group by having and or not true false union except intersect "
    "minus partition register order limit in like between is exists join case null with"
)
RESERVED = frozenset(_RESERVED.split())

# Words of the lexer -> what people call them; the order is that in which they are offered, most
# useful first.
EXPECTED: dict[str, str] = {
    "FROM": "From",
    "WHERE": "Where",
    "GROUP": "Group By",
    "HAVING": "Having",
    "NAME": "a name",
    "QUOTED": "a name",
    "MEMBER": "a name",
    "SELECT": "Select",
    "OUTPUT": "Istream(, Dstream( or Rstream(",
    "BY": "By",
    "ORDER": "Order By",
    "LIMIT": "Limit",
    "OFFSET": "Offset",
    "FETCH": "Fetch First",
    "COMBINE": "Union, Except or Intersect",
    "JOIN": "Join",
    "INNER": "Inner Join",
    "SIDE": "Left, Right or Full Join",
    "OUTER": "Outer",
    "CROSS": "Cross Join",
    "ON": "On",
    "USING": "Using",
    "TABLE": "Table",
    "DESCRIPTOR": "Descriptor",
    "INTERVAL": "Interval",
    "WITH": "With",
    "ALL": "All",
    "ROLLUP": "Rollup",
    "CUBE": "Cube",
    "GROUPING": "Grouping Sets",
    "SETS": "Sets",
    "ASC": "Asc",
    "DESC": "Desc",
    "NULLS": "Nulls First or Last",
    "FIRST": "First",
    "LAST": "Last",
    "NEXT": "Next",
    "ONLY": "Only",
    "ROW": "Row",
    "CURRENT": "Current Row",
    "PRECEDING": "Preceding",
    "FOLLOWING": "Following",
    "OVER": "Over",
    "FILTER": "Filter",
    "WHEN": "When",
    "THEN": "Then",
    "ELSE": "Else",
    "END": "End",
    "FOR": "For",
    "ESCAPE": "Escape",
    "REGISTER": "Register",
    "STREAM": "Stream",
    "RELATION": "Relation",
    "TYPE": "a type",
    "RANGE": "Range",
    "SLIDE": "Slide",
    "ROWS": "Rows",
    "PARTITION": "Partition By",
    "NOW": "Now",
    "UNBOUNDED": "Unbounded",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "STRING": "a string",
    "LPAR": '"("',
    "RPAR": '")"',
    "RSQB": '"]"',
    "LSQB": '"["',
    "COMMA": '","',
    "AS": "As",
    "COMPARE": "a comparison",
    "IN": "In",
    "BETWEEN": "Between",
    "LIKE": "Like",
    "IS": "Is",
    "NULL": "Null",
    "UNKNOWN": "Unknown",
    "AND": "And",
    "OR": "Or",
    "DOT": '"."',
    "PLUS": '"+"',
    "DASH": '"-"',
    "STAR": '"*"',
    "SLASH": '"/"',
    "PERCENT": '"%"',
    "BARS": '"||"',
    "CASE": "Case",
    "EXISTS": "Exists",
    "NOT": "Not",
    "DISTINCT": "Distinct",
    "TRUE": "True",
    "FALSE": "False",
    "SEMICOLON": '";"',
    "$END": "the end of the query",
}
