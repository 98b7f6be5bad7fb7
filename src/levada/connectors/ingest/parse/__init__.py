"""Bytes of RDF to columns of terms."""
