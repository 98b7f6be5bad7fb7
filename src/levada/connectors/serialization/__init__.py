"""Results to bytes: decodes terms and writes lines, tables and documents."""
