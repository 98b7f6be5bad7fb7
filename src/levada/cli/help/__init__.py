"""Help on files, options and languages. It runs no query."""
