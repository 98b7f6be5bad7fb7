"""Multi-query optimization: common subexpressions, relaxation, containment, shared join sides."""
