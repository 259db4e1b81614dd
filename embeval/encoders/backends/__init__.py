"""One file per way of running a model. Each holds ``BACKEND``, an object that fits ``loading.BackendType``."""
