"""The sentences for a file whose bytes do not have the checksum that was written beside them."""

ALTERED = "it is cut short or altered"
OTHER = "it is not what was written under this name"
