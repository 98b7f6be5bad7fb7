"""What a stream is to its user: configuration, formats, mapping files. Values, valid from birth."""
