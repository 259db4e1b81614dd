"""One file per way to run a language model. Each holds ``BACKEND``, an object that fits ``loading.BackendType``."""
