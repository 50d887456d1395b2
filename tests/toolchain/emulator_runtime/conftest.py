"""Calls of the kernels in kernels.cpp, which need no rewriting."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelgym.toolchain.emulator import Variant

# Returns what the function returned, and the runtime's report on it.
Call = Callable[..., tuple[Any, dict[str, Any]]]


@pytest.fixture(scope="session")
def calls(emulator: Any) -> dict[Variant, Call]:
    """For each variant a function that calls a function of kernels.cpp."""

    def load(variant: Variant) -> Call:
        source = Path(__file__).with_name("kernels.cpp")
        output = emulator.folder / f"kernels_{variant}.so"
        for command in emulator.kit.compile_commands([source], output, variant):
            subprocess.run(command, check=True)
        library = ctypes.CDLL(str(output))

        def call(
            function: str,
            *arguments: Any,
            result: Any = ctypes.c_int,
            order: int = 0,
            budget: int = 200_000_000,
        ) -> tuple[Any, dict[str, Any]]:
            runtime = emulator.runtime
            runtime.reset()
            runtime.set_order(order)
            runtime.set_access_budget(budget)
            entry = getattr(library, function)
            entry.restype = result
            try:
                return entry(*arguments), json.loads(runtime.report())
            finally:
                runtime.set_order(0)
                runtime.set_access_budget(200_000_000)
                runtime.reset()

        return call

    return {variant: load(variant) for variant in Variant}
