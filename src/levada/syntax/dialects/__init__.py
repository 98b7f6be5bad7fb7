"""What sets a dialect apart from SPARQL: clauses (``.lark``), flags, their mapping to the design's
section 1, recognition.
"""
