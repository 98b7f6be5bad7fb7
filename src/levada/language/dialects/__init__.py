"""The dialects of SPARQL: their clauses, their options and their detection."""
