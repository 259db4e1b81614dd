"""Golden-set lint: every problem of a BEIR folder at once, with its place, what it does to numbers, and what to do.

``load_beir`` stops at the first problem; here the files are read line by line and all is collected. A new check is one
file in ``rules`` that holds a ``RULE``.
"""
