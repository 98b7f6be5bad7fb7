"""The choice of join orders with regard to the joins of other queries."""
