"""Programs, and a judge on the emulator that tests share."""

import pytest

from kernelgym import Judge, JudgeConfig
from kernelgym.agents.kernels.program import compile_program

from .programs import source_of


@pytest.fixture(scope="package")
def judge():
    with Judge(JudgeConfig(device="cpu", draws=2, baselines=("eager",))) as judge:
        yield judge


@pytest.fixture
def program():
    """Compiles a program from its __init__ and forward lines and the inputs' shapes."""

    def make(forward, *shapes, init="pass"):
        return compile_program(source_of(forward, *shapes, init=init))

    return make


@pytest.fixture(scope="session")
def make_source():
    """See `source_of`."""
    return source_of
