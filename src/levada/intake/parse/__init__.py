"""Bytes of RDF -> columns of terms."""
