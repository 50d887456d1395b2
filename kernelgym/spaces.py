"""`SourceText`: the space of texts, as long as they are not too long."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from gymnasium import spaces

from kernelgym.errors import ConfigError

__all__ = ["SourceText"]

# Pieces that samples are put together from: each form of edit, whole and broken, and junk.
_PIECES = (
    "submit\n",
    "The kernel reads each element once, so I use `float4` loads.\n",
    "<think>Shared memory would help here.</think>\n",
    "```python model_new.py\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n"
    "    def forward(self, x):\n        return x\n```\n",
    "```python\nclass ModelNew:\n    pass\n```\n",
    "```cuda kernels/relu.cu\n__global__ void relu(const float* x, float* y, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = fmaxf(x[i], 0.f);\n}\n```\n",
    "model_new.py\n<<<<<<< SEARCH\nimport torch\n=======\nimport torch  # first\n>>>>>>> REPLACE\n",
    "model_new.py\n<<<<<<< SEARCH\nno such line\n=======\n\n>>>>>>> REPLACE\n",
    "```diff\n--- /dev/null\n+++ b/kernels/tile.cuh\n@@ -0,0 +1 @@\n+#define TILE 32\n```\n",
    "--- a/model_new.py\n+++ b/model_new.py\n@@ -1,2 +1,2 @@\n import torch\n-x\n+y\n",
    "```python ../outside.py\n```\n",
    "```",
    "<<<<<<< SEARCH\n",
    "\0\ud800\u202e\n",
    "größer als 32 → 64 \N{GREEK SMALL LETTER MU}s\n",
)


class SourceText(spaces.Text):
    """Every string of at most `max_length` characters: any Unicode, newlines and all.

    `gymnasium.spaces.Text` takes the characters of one set, and samples them one by one. This one
    takes any character (lone surrogates too), tests membership in constant time, and samples texts
    that look like an agent's.

    Args:
        max_length: Most characters, at least 1.
        seed: Seeds `sample`.

    Raises:
        ConfigError: `max_length` is less than 1.

    Example:
        >>> "größer als" in SourceText(100)
        True
        >>> SourceText(100)
        SourceText(100)
    """

    def __init__(self, max_length: int, *, seed: int | np.random.Generator | None = None) -> None:
        if max_length < 1:
            raise ConfigError(f"max_length: expected at least 1, got {max_length}")
        super().__init__(max_length, min_length=0, charset=string.printable, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A text of up to four pieces: edits of every form, right and wrong, prose and junk.

        Raises:
            ConfigError: A mask or probability is given: characters cannot be masked here.
        """
        if mask is not None or probability is not None:
            raise ConfigError("mask, probability: expected None, SourceText has no character set")
        picks = self.np_random.integers(len(_PIECES), size=self.np_random.integers(1, 5))
        return "".join(_PIECES[pick] for pick in picks)[: self.max_length]

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    @property
    def is_np_flattenable(self) -> bool:
        """False: a text of any Unicode has no fixed array."""
        return False

    def __repr__(self) -> str:
        return f"SourceText({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceText) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]  # as every space: it holds a random state
