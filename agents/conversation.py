"""Episodes as conversations with a language model: rendered, bounded, and without its thoughts.

The first message says how to answer, and shows the task and the files; each answer is followed by
what the judge said of it. When a conversation grows beyond its bound, the oldest exchanges are
replaced by one line each, and the current files are shown again, for the model cannot know them
otherwise. The rules are fixed, so equal episodes give equal conversations.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from kernelgym.errors import UsageError
from kernelgym.feedback import clip, summary
from kernelgym.observation import INSTRUCTIONS

__all__ = ["Conversation", "Message", "read_skill", "without_thoughts"]

Message: TypeAlias = "dict[str, str]"
"""`role` (`system`, `user`, `assistant`) and `content`."""

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)\s*", re.DOTALL)
_CLOSE = "</think>"
_LEAST = 2000


@dataclasses.dataclass
class _Exchange:
    """An answer, and what came of it."""

    answer: str
    feedback: str
    line: str
    workspace: str


def read_skill(name: str) -> str:
    """A skill text: a bundled one by its name (`"cuda"`), any other by its path; `""` for `""`.

    Raises:
        UsageError: There is none.
    """
    if not name:
        return ""
    bundled = importlib.resources.files("kernelgym.agents") / "skills" / f"{name}.md"
    if re.fullmatch(r"\w+", name) and bundled.is_file():
        return bundled.read_text("utf-8")
    try:
        return Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"skill: expected a bundled name or a text file: {error}") from error


def without_thoughts(text: str) -> str:
    """An answer without `<think>…</think>`, also where the prompt had opened the thought."""
    if _CLOSE in text and "<think>" not in text.partition(_CLOSE)[0]:
        text = text.partition(_CLOSE)[2]
    return _THOUGHT.sub("", text).strip()


class Conversation:
    """One episode.

    Args:
        skill: Text of the system message, before the form of answers.
        limit: Most that all messages together may measure.
        measure: What a text measures: by default its characters.
        keep_thoughts: Whether answers keep what stands in `<think>`.

    Raises:
        UsageError: The limit is below 2,000.
    """

    def __init__(
        self,
        skill: str = "",
        limit: int = 200_000,
        measure: Callable[[str], int] = len,
        *,
        keep_thoughts: bool = False,
    ) -> None:
        if limit < _LEAST:
            raise UsageError(f"limit: expected at least {_LEAST}, got {limit}")
        self._system = f"{skill}\n\n{INSTRUCTIONS}" if skill else INSTRUCTIONS
        self._limit = limit
        self._measure = measure
        self._keep_thoughts = keep_thoughts
        self._first = ""
        self._task = ""
        self._answer: str | None = None
        self._exchanges: list[_Exchange] = []

    def begin(self, observation: dict[str, Any]) -> None:
        """Starts with an episode's first observation."""
        self._task = observation["task"]
        self._first = f"{self._task}\n{_files(observation)}\n{observation['feedback']}\n"
        self._answer = None
        self._exchanges = []

    def answered(self, text: str) -> None:
        """Takes the model's answer."""
        self._answer = text if self._keep_thoughts else without_thoughts(text)

    def observe(self, observation: dict[str, Any], info: dict[str, Any]) -> None:
        """Takes what came of the last answer."""
        if self._answer is None:
            raise UsageError("expected an answer before what came of it")
        said = "the edit did not apply"
        if not info["edit_error"]:
            said = summary(info["verdict"]) if info["verdict"] is not None else "not judged"
        line = f"Turn {info['turn']}: {said}"
        self._exchanges.append(
            _Exchange(self._answer, observation["feedback"], line, _files(observation))
        )
        self._answer = None

    def messages(self) -> list[Message]:
        """The conversation so far, within its bound: a system message, then user and assistant.

        It ends with a user's message.
        """
        for dropped in range(len(self._exchanges) + 1):
            messages = self._rendered(dropped)
            if sum(self._measure(one["content"]) for one in messages) <= self._limit:
                return messages
        return self._clipped()

    def _rendered(self, dropped: int) -> list[Message]:
        """The messages, with the oldest `dropped` exchanges as a line each."""
        kept = self._exchanges[dropped:]
        if dropped:
            lines = "\n".join(one.line for one in self._exchanges[:dropped])
            last = self._exchanges[dropped - 1]
            shown = f"{last.workspace}\n{last.feedback}\n"
            first = f"{self._task}\nWhat you did before:\n{lines}\n\n{shown}"
        else:
            first = self._first
        messages = [_message("system", self._system), _message("user", first)]
        for one in kept:
            # An empty message is refused by some servers.
            messages.append(_message("assistant", one.answer or "(no answer)"))
            messages.append(_message("user", one.feedback))
        return messages

    def _clipped(self) -> list[Message]:
        """What is left when even the last state is too long: its middle is cut out."""
        system, user = self._rendered(len(self._exchanges))
        text = user["content"]
        room = self._limit - self._measure(system["content"])
        size = len(text)
        while size > _LEAST // 4 and self._measure(text) > room:
            size = size * 3 // 4
            text = clip(user["content"], size)
        return [system, _message("user", text)]


def _files(observation: dict[str, Any]) -> str:
    return f"Your files:\n\n{observation['workspace']}"


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
