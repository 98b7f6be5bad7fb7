"""Warnings about queries that can run but are probably mistakes."""
