"""The catalog of all shared operators, and the execution plan that is built from it."""
