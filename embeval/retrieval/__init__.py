"""Search of a corpus by vectors: index kinds, and the chunked search that makes their rankings exact and equal."""
