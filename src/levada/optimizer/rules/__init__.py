"""The rules, one per file, each listed in ``pipeline.RULES``."""
