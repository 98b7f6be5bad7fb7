"""SPARQL's tree -> algebra (SPARQL 1.1, section 18.2), with windows as graph sources."""
