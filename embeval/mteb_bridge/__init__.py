"""mteb's tasks with our models: the only folder that imports mteb.

- ``door`` imports mteb, quietly and once; ``loading`` loads the data of a task, from the hub or from a mirror.
- ``model`` is our systems as mteb's ``EncoderProtocol`` and ``SearchProtocol``; ``evaluation`` runs a task class.
- ``categories`` has one file per category of tasks: what its items are, and which metrics speak of them.
- ``tasks`` has one file per task type of ours: ``mteb`` for mteb's own tasks, the others for one's own files.

Nothing here imports mteb before a task is loaded: it takes three seconds.
"""
