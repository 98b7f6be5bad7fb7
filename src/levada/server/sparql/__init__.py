"""SPARQL and graphs over HTTP."""
