"""From Lark's parse tree to the tree of ``ast``: terms, expressions, patterns, the whole query."""
