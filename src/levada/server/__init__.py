"""The HTTP server over the files of a checkpoint: status, results, queries, pushed rows and a page.

The server is a separate process. It uses requests, the index of published epochs and the spools, as
other terminals do. So it never delays an epoch, and it may stop and start at any time.
"""
