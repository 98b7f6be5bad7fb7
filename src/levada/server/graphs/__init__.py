"""Graphs over HTTP: static ones, the latest ones that queries make, and SPARQL over both."""
