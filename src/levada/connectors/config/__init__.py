"""The configuration of streams: options, formats, mapping files. Values that are checked when
made.
"""
