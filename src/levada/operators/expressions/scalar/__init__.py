"""One value at a time: what a SPARQL function means for a single combination of arguments.

This is the general path of expressions. It takes and gives terms (``levada.model.term``) and is
called once per distinct combination of arguments, never per row; it is also the oracle of the
vectorised path. An error is ``ExpressionError``.
"""
