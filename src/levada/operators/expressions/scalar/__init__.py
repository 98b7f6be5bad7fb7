"""SPARQL functions on one value at a time: the general path, and the oracle of the columnar one."""
