"""The command line: arguments -> an ``App`` -> the engine; only results go to standard output."""
