"""Tokens, quotas and limits of requests."""
