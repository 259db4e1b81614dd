"""Two or more results of the same items: what differs, how sure that is, and on which items.

Reads results and item records only, never a model, and runs where torch is not installed.
"""
