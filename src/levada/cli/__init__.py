"""The command line: arguments -> an ``App`` -> the engine; everything that is not a result goes to
standard error.
"""
