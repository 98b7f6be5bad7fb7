"""Checks of texts, in processes of their own."""
