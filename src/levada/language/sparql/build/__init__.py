"""Builds the syntax tree from the parse tree of Lark."""
