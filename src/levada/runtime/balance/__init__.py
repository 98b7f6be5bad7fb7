"""Work that balances itself: which groups go from which partition to which, how many partitions
there are.
"""
