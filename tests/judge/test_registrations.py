"""Kernels that a candidate registers for torch's own operators are noticed."""

import subprocess
import sys

SCRIPT = """
import torch
from kernelgym.judge.registrations import registered_before, replaced, replaced_operators

assert {"aten::clone", "aten::view", "aten::empty_like"} <= registered_before().keys()
assert "aten::relu" not in registered_before()
mine = torch.library.Library("mine", "DEF")
mine.define("act(Tensor x) -> Tensor")
mine.impl("act", lambda x: x, "CPU")
assert replaced_operators() == ()
library = torch.library.Library("aten", "IMPL")
library.impl("clone", lambda x, memory_format=None: x, "CPU")
assert replaced("aten::clone") and not replaced("aten::view")
assert replaced_operators() == ("aten::clone",)
"""


def test_only_a_kernel_for_torchs_own_operator_counts():
    # In a process of its own: the registration would stay in this one.
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
