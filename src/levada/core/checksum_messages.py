"""The messages for a file whose bytes do not match their written checksum."""

ALTERED = "it is cut short or altered"
OTHER = "it is not what was written under this name"
