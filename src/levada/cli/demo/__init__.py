"""``levada demo``: a year of New York's flights and weather, and three queries over them."""
