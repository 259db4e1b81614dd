"""One file per way to run a cross-encoder. Each holds ``BACKEND``, an object that fits ``loading.BackendType``."""
