"""The demo: a year of New York's flights and weather as RDF streams, and three queries over them
(``levada demo``).
"""
