"""One file per task type that runs mteb's task classes: ``mteb`` for mteb's own data, the others for one's own.

Each holds ``TASK``, an object that fits ``core.protocols.TaskType``, as the files of ``embeval/tasks`` do.
"""
