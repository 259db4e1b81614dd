"""One file per type of task, and ``catalog`` with one data-only file per public data set.

Types that run mteb's task classes lie in ``embeval/mteb_bridge/tasks``, a level above.

Each type file holds ``TASK``, an object that fits ``core.protocols.TaskType``.
"""

from embeval.core.protocols import TaskType
from embeval.registry import Registry

TASK_TYPES: Registry[TaskType] = Registry(
    kind="task type",
    package="embeval.tasks",
    also="embeval.mteb_bridge.tasks",
    attribute="TASK",
    group="embeval.tasks",
)

__all__ = ["TASK_TYPES"]
