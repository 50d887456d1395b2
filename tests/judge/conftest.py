"""One judge for the tests of this folder: its standby process and cache make them quick."""

import pytest

from kernelgym.config import JudgeConfig
from kernelgym.judge.judge import Judge


@pytest.fixture(scope="session")
def judge():
    with Judge(JudgeConfig(seed=0, draws=3, run_timeout=10)) as judge:
        yield judge
