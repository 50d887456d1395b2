"""The tasks: reference PyTorch programs to beat, one file each.

Example:
    >>> from kernelgym import tasks
    >>> tasks.get("L1/19").name
    'ReLU'
"""

from kernelgym.tasks.catalogue import get, ids
from kernelgym.tasks.sources import load
from kernelgym.tasks.task import Task, load_file

__all__ = ["Task", "get", "ids", "load", "load_file"]
