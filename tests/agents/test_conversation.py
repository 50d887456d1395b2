"""Conversations: their form, their bound, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from kernelgym.agents.conversation import Conversation, read_skill, without_thoughts
from kernelgym.errors import UsageError


def played(conversation: Conversation, make_env: Any, *answers: str) -> Any:
    env = make_env(max_turns=32)
    observation, info = env.reset()
    conversation.begin(observation)
    for answer in answers:
        conversation.answered(answer)
        observation, _, _, _, info = env.step(answer)
        conversation.observe(observation, info)
    return observation


def written(word: str) -> str:
    return f"```python model_new.py\n# {word}\n```\n"


def test_an_episode_is_a_conversation(make_env: Any) -> None:
    conversation = Conversation("Be quick.")
    played(conversation, make_env, written("wrong!"), "I would rather not.")
    messages = conversation.messages()
    assert [m["role"] for m in messages] == ["system", *["user", "assistant"] * 2, "user"]
    assert messages[0]["content"].startswith("Be quick.\n\n")
    assert "SEARCH must match" in messages[0]["content"]
    assert "class ModelNew" in messages[1]["content"]
    assert messages[2]["content"] == written("wrong!").strip()
    assert messages[3]["content"].startswith("Outcome: incorrect (test.incorrect)")
    assert messages[5]["content"].startswith("The edit was not applied:")


def test_old_turns_become_lines_and_the_files_are_shown_again(make_env: Any) -> None:
    conversation = Conversation("", 6000)
    answers = [written(f"fast={n}.0 " + "x" * 900) for n in range(1, 9)]
    played(conversation, make_env, *answers)
    messages = conversation.messages()
    assert sum(len(m["content"]) for m in messages) <= 6000
    first = messages[1]["content"]
    assert "Turn 1: correct, 1.00x eager" in first
    kept = [m for m in messages if m["role"] == "assistant"]
    assert 0 < len(kept) < 8
    assert kept[-1]["content"] == answers[-1].strip()
    # The files as the last turn that was dropped left them, which the model cannot know otherwise.
    dropped = 8 - len(kept)
    assert f"fast={dropped}.0" in first
    assert f"fast={dropped + 1}.0" not in first


def test_what_is_too_long_even_alone_is_cut(make_env: Any) -> None:
    conversation = Conversation("", 4000)
    played(conversation, make_env, written("y" * 20_000))
    messages = conversation.messages()
    assert [m["role"] for m in messages] == ["system", "user"]
    assert sum(len(m["content"]) for m in messages) <= 4000
    assert "left out" in messages[1]["content"]


def test_the_measure_is_the_callers(make_env: Any) -> None:
    conversation = Conversation("", 2000, lambda text: len(text) * 1000)
    played(conversation, make_env, "a", "b")
    assert len(conversation.messages()) == 2


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>hm</think>\nsubmit", "submit"),
        ("hm, so\n</think>\n\nsubmit", "submit"),
        ("a <think>b</think>c<think>never closed", "a c"),
        ("plain", "plain"),
    ],
)
def test_thoughts_are_left_out(text: str, rest: str) -> None:
    assert without_thoughts(text) == rest


def test_thoughts_can_be_kept(make_env: Any) -> None:
    conversation = Conversation(keep_thoughts=True)
    played(conversation, make_env, "<think>hm</think> submit it")
    assert conversation.messages()[2]["content"] == "<think>hm</think> submit it"
    other = Conversation()
    played(other, make_env, "<think>hm</think>")
    assert other.messages()[2]["content"] == "(no answer)"


def test_skills_are_read_by_name_or_path(tmp_path: Any) -> None:
    assert "first message; later ones" in read_skill("cuda")
    path = tmp_path / "mine.md"
    path.write_text("Mine.")
    assert read_skill(str(path)) == "Mine."
    assert read_skill("") == ""
    with pytest.raises(UsageError, match="skill"):
        read_skill("nosuch")


def test_misuse_is_named() -> None:
    with pytest.raises(UsageError, match="limit"):
        Conversation(limit=10)
    with pytest.raises(UsageError, match="expected an answer"):
        Conversation().observe({}, {})
