"""The tasks: reference PyTorch programs to beat, one file each.

Example:
    >>> from kernelgym import tasks
    >>> tasks.get("L1/19").name
    'ReLU'
"""
