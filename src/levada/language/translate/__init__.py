"""Syntax tree to logical plan, for each language. Later stages know no language."""
