"""A second oracle: what queries report by docs/semantics.md alone, in plain Python, and a driver
that draws sets of queries that come and go and compares them with an engine.

It was written from the page by who had not read the engine, nor ``levada.testing.reference``, and
shares no code with either: lists, sets and loops, no library. So what both references were told the
same wrong way shows here, and where the page is silent.
"""
