"""Results of an epoch on their way out: terms decoded, lines serialised
(docs/architecture.md#commit-and-recovery).
"""
