"""An agent that sends seeded random edits: a baseline that knows nothing, and a fuzzer.

Some of its texts are mutations of the current files in every form that an edit can take, some are
junk that must be refused. One seed gives one sequence of texts for one sequence of workspaces.
"""

from __future__ import annotations

import dataclasses
import difflib
import random
import re
from typing import Any

from kernelgym.edits import Replace, Submit, UnifiedDiff, WriteFile, render
from kernelgym.errors import UsageError
from kernelgym.workspace import MAIN_FILE

__all__ = ["Arguments", "RandomEdits"]


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What `RandomEdits` can be told.

    Attributes:
        seed: Seeds every choice.
        junk: Share of texts that are no valid edit, 0 to 1.
        submit: Share of texts that end the episode, 0 to 1.
    """

    seed: int = 0
    junk: float = 0.25
    submit: float = 0.0

    def __post_init__(self) -> None:
        """Refuse shares that are none."""
        for name in ("junk", "submit"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise UsageError(f"{name}: expected a share from 0 to 1, got {share}")


_SNIPPETS = (
    "x = x.contiguous()\n",
    "__syncthreads();\n",
    "if (i >= n) return;\n",
    "// nothing\n",
    "#pragma unroll\n",
    "return\n",
    "}\n",
)
_JUNK = (
    "",
    "I would rather not.",
    "```python model_new.py\nprint(",
    "```python ../../escape.py\npass\n```\n",
    "model_new.py\n<<<<<<< SEARCH\nno such line\n=======\nanything\n>>>>>>> REPLACE\n",
    "model_new.py\n<<<<<<< SEARCH\nnever closed\n",
    "--- a/model_new.py\n+++ b/model_new.py\n@@ -1,3 +1,3 @@\n-nothing like it\n+else\n",
    "<think>",
    "\x00\u202e\ud800 \U0001f600",
)
_NUMBER = re.compile(r"\b\d+\b")


class RandomEdits:
    """Sends random edits.

    Args:
        arguments: All arguments as one record.
        **fields: Single fields of `Arguments`, over those of `arguments`.
    """

    def __init__(self, arguments: Arguments | None = None, **fields: Any) -> None:
        self.arguments = dataclasses.replace(arguments or Arguments(), **fields)
        self._random = random.Random(self.arguments.seed)

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        """A mutation of the current files, or junk."""
        draw = self._random.random()
        if draw < self.arguments.submit:
            return render(Submit())
        if self._random.random() < self.arguments.junk:
            return self._junk()
        files = dict(info["workspace"].files)
        path = self._random.choice(sorted(files))
        return self._edit(path, files[path])

    def _junk(self) -> str:
        if self._random.random() < 0.3:
            codes = (self._random.randrange(1, 0x3000) for _ in range(self._random.randrange(400)))
            return "".join(map(chr, codes))
        return self._random.choice(_JUNK)

    def _edit(self, path: str, text: str) -> str:
        """One mutation, in a form drawn at random."""
        mutated = self._mutated(text)
        form = self._random.choice(("whole", "passage", "diff", "new"))
        if form == "new" and path == MAIN_FILE:
            name = f"kernels/k{self._random.randrange(4)}.cuh"
            return render(WriteFile(name, "".join(self._random.sample(_SNIPPETS, 3))))
        if form == "passage":
            lines = text.splitlines(keepends=True)
            position = self._random.randrange(max(len(lines), 1))
            passage = "".join(lines[position : position + 2])
            if passage.strip():
                return render(Replace(path, passage, self._mutated(passage)))
        if form == "diff" and mutated != text:
            diff = difflib.unified_diff(
                text.splitlines(keepends=True),
                mutated.splitlines(keepends=True),
                f"a/{path}",
                f"b/{path}",
            )
            return render(UnifiedDiff("".join(diff)))
        return render(WriteFile(path, mutated))

    def _mutated(self, text: str) -> str:
        """The text with one small change."""
        lines = text.splitlines(keepends=True) or ["\n"]
        position = self._random.randrange(len(lines))
        kind = self._random.choice(("number", "drop", "double", "swap", "insert"))
        numbers = list(_NUMBER.finditer(text))
        if kind == "number" and numbers:
            match = self._random.choice(numbers)
            number = str(self._random.choice((0, 1, 2, 31, 33, 256, 2**31)))
            return text[: match.start()] + number + text[match.end() :]
        if kind == "drop":
            del lines[position]
        elif kind == "double":
            lines.insert(position, lines[position])
        elif kind == "swap":
            other = self._random.randrange(len(lines))
            lines[position], lines[other] = lines[other], lines[position]
        else:
            lines.insert(position, self._random.choice(_SNIPPETS))
        return "".join(lines)
