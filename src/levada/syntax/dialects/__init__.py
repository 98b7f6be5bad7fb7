"""What sets a dialect apart from SPARQL: clauses (``.lark``), flags, their mapping to
docs/semantics.md, recognition.
"""
