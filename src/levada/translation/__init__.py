"""Syntax tree -> algebra, for each language. Behind it nothing knows which language it was."""
