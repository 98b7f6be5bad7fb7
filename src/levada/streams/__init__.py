"""What a stream is, as its user says it: configuration, formats, mapping files. Values, valid from
birth.
"""
