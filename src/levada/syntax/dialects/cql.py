"""CQL as data: its units, its relation-to-stream words, its report defaults, and what of it Levada refuses by name.

Cost: none, tables only. Source: Arasu, Babu, Widom, "The CQL continuous query language" (VLDB Journal 15, 2006), and
the scripts of STREAM. How CQL maps to the design's section 1:

    S                        ALL, CQL's default for a stream; S [Range Unbounded] and S [Rows Unbounded] likewise
    S [Now]                  NOW
    S [Range a]              RANGE a, reports on content change
    S [Range a Slide b]      RANGE a STEP b, reports on close (``report=change``: on content change)
    S [Rows n]               the last n rows
    Istream(Select ..)       ISTREAM; Dstream, Rstream likewise
    Select ..                RELATION: the relation's changes, both signs
"""

from __future__ import annotations

# Milliseconds of each unit, by every spelling; a number without a unit counts seconds, as in STREAM.
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

# A word where the grammar has no place for it -> the feature that it would begin, in the words of the language.
REFUSED: dict[str, str] = {
    "select": "a sub-query",
    "istream": "a sub-query",
    "dstream": "a sub-query",
    "rstream": "a sub-query",
    "union": "Union",
    "except": "Except",
    "minus": "Except (Minus)",
    "intersect": "Intersect",
    "partition": "a window with Partition By",
    "slide": "Slide on this kind of window",
    "order": "Order By",
    "limit": "Limit",
    "in": "In",
    "like": "Like",
    "between": "Between",
    "is": "Is Null",
    "null": "Null",
    "exists": "Exists",
    "join": "Join in From (write the condition into Where)",
    "case": "Case",
    "register": "a view or Register",
    "create": "a view",
    "view": "a view",
    "vquery": "a view",
    "vtable": "a view",
}

# Words of the lexer -> what people call them; the order is that in which they are offered, most useful first.
EXPECTED: dict[str, str] = {
    "NAME": "a name",
    "SELECT": "Select",
    "OUTPUT": "Istream(, Dstream( or Rstream(",
    "FROM": "From",
    "WHERE": "Where",
    "GROUP": "Group By",
    "HAVING": "Having",
    "BY": "By",
    "RANGE": "Range",
    "SLIDE": "Slide",
    "ROWS": "Rows",
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
    "AND": "And",
    "OR": "Or",
    "DOT": '"."',
    "PLUS": '"+"',
    "DASH": '"-"',
    "STAR": '"*"',
    "SLASH": '"/"',
    "NOT": "Not",
    "DISTINCT": "Distinct",
    "TRUE": "True",
    "FALSE": "False",
    "SEMICOLON": '";"',
    "$END": "the end of the query",
}
