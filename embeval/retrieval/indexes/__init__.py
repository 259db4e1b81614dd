"""One file per kind of index. Each holds ``INDEX``, an object that fits ``kinds.IndexType``."""
