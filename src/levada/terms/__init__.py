"""Terms in columns: identities, tables of texts, the texts that a task can look up."""
