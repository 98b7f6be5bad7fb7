"""Maps the files that an RML mapping names to N-Quads."""
