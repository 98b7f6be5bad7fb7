"""Reads RML mapping files: RDF in the vocabularies of RML and R2RML, and YARRRML."""
