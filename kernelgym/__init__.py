"""kernelgym: a Gymnasium environment in which agents edit CUDA code and are judged by what runs."""

from kernelgym._version import __version__

__all__ = ["__version__"]
