"""Where rows come from: local files in their formats, sentence pairs, BEIR folders, and the golden set that ships.

Every complaint names file and line.
"""
