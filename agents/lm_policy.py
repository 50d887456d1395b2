"""A causal language model of `transformers` as an agent: multi-turn, batched, token ids kept.

The episode is a conversation (`kernelgym.agents.conversation`) in the model's own chat template.
What the model read and what it wrote are kept as the token ids that went in and came out
(`LMPolicy.samples`), so that a trainer learns from exactly those and nothing is tokenised twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import AutoModelForCausalLM, AutoTokenizer

from kernelgym.agents.conversation import Conversation, Message, read_skill
from kernelgym.budget import Usage
from kernelgym.errors import UsageError

__all__ = ["Arguments", "LMPolicy", "Sample"]

_SEEDS = 1_000_003


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What `LMPolicy` can be told.

    Attributes:
        model: A model's name on the hub, or its folder.
        skill: Name of a bundled skill text, or a path; `""` for none.
        context: Most tokens of a conversation with its answer; older turns become a line each.
        max_new_tokens: Most tokens of an answer.
        temperature: Of sampling; 0 takes the likeliest token.
        top_p: Of sampling.
        seed: Seeds sampling.
        device: `"auto"` (a GPU if there is one), or as torch names it.
        dtype: `"auto"` (bfloat16 on a GPU, float32 elsewhere), or as torch names it.
        template: More values for the chat template, such as `{"enable_thinking": false}`.
        keep_thoughts: Whether `<think>` stays in the conversation.
        keep_samples: Whether `samples` is filled.
    """

    model: str = ""
    skill: str = "cuda"
    context: int = 32_768
    max_new_tokens: int = 8192
    temperature: float = 0.7
    top_p: float = 0.95
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"
    template: dict[str, Any] = dataclasses.field(default_factory=dict)
    keep_thoughts: bool = False
    keep_samples: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not self.model:
            raise UsageError("model: expected a model's name or folder, got none")
        if not 0 < self.max_new_tokens < self.context:
            raise UsageError(
                f"max_new_tokens: expected more than 0 and less than the context of {self.context}, "
                f"got {self.max_new_tokens}"
            )
        if self.temperature < 0:
            raise UsageError(f"temperature: expected at least 0, got {self.temperature}")


@dataclasses.dataclass(frozen=True)
class Sample:
    """One turn in tokens.

    Attributes:
        slot: Which environment of a batch it was for.
        prompt_ids: What went in.
        completion_ids: What came out, with the token that ended it, if one did.
    """

    slot: int
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]


class LMPolicy:
    """Answers as a language model does, for one environment or a batch.

    Args:
        arguments: All arguments as one record.
        **fields: Single fields of `Arguments`, over those of `arguments`.

    Attributes:
        samples: Every turn's tokens, if they are kept, in the order generated.
        usage: Tokens read and written so far.
        model: The model; a trainer may update it in place.
        tokenizer: Its tokenizer.

    Raises:
        UsageError: There is no such model, or it has no chat template.
    """

    def __init__(self, arguments: Arguments | None = None, **fields: Any) -> None:
        if arguments is None:
            arguments = Arguments(**fields)
        else:
            arguments = dataclasses.replace(arguments, **fields)
        self.arguments = arguments
        self.samples: list[Sample] = []
        self.usage = Usage()
        self._conversations: dict[int, Conversation] = {}
        self._skill = read_skill(arguments.skill)
        self._generated = 0
        device = arguments.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype: Any = arguments.dtype
        if dtype == "auto":
            dtype = torch.float32 if device == "cpu" else torch.bfloat16
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(arguments.model)
            self.model: Any = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=dtype)
        except (OSError, ValueError) as error:
            raise UsageError(f"model: expected a causal language model: {error}") from error
        if self.tokenizer.chat_template is None:
            raise UsageError(f"model: expected {arguments.model} to have a chat template")
        _placed(self.model, device)

    def reset(self, info: dict[str, Any]) -> None:
        """Forgets the conversation of the single environment."""
        self._conversations.pop(0, None)

    def __call__(self, observation: dict[str, Any], info: dict[str, Any]) -> str:
        """The model's answer."""
        return self.act([(0, observation, info)])[0]

    def act_vector(self, observations: Mapping[str, Any], infos: Mapping[str, Any]) -> list[str]:
        """One answer for each environment of a `KernelVectorEnv`, generated as a batch.

        Args:
            observations: What its `reset` or `step` returned.
            infos: The same.
        """
        turns = []
        for slot in range(len(observations["turn"])):
            observation = {key: value[slot] for key, value in observations.items()}
            info = {name: infos[name][slot] for name in ("turn", "verdict", "edit_error")}
            if int(observation["turn"]) == 0:
                self._conversations.pop(slot, None)
            turns.append((slot, observation, info))
        return self.act(turns)

    def act(self, turns: Sequence[tuple[int, dict[str, Any], dict[str, Any]]]) -> list[str]:
        """Answers for several episodes at once.

        Args:
            turns: The episode's slot, its observation and its info, of each.
        """
        prompts = []
        for slot, observation, info in turns:
            conversation = self._conversations.get(slot)
            if conversation is None:
                conversation = self._conversations[slot] = self._new_conversation()
                conversation.begin(observation)
            else:
                conversation.observe(observation, info)
            prompts.append(self.prompt_ids(conversation.messages()))
        answers = []
        for (slot, _, _), prompt, completion in zip(
            turns, prompts, self.generate(prompts), strict=True
        ):
            text: str = self.tokenizer.decode(completion, skip_special_tokens=True)
            self._conversations[slot].answered(text)
            self.usage += Usage(1, len(prompt), len(completion))
            if self.arguments.keep_samples:
                self.samples.append(Sample(slot, tuple(prompt), tuple(completion)))
            answers.append(text)
        return answers

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """A conversation as the model reads it, up to where its answer begins."""
        told = list(messages)
        try:
            text = self._templated(told)
        except TemplateError:  # no system message in this template
            first = {"role": "user", "content": f"{told[0]['content']}\n{told[1]['content']}"}
            text = self._templated([first, *told[2:]])
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids[-(self.arguments.context - self.arguments.max_new_tokens) :]

    @torch.no_grad()
    def generate(self, prompts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Continues prompts, as a batch.

        Args:
            prompts: Token ids of each.

        Returns:
            New token ids of each, up to and with the one that ends it.
        """
        longest = max(len(prompt) for prompt in prompts)
        ends = self._ends()
        padding = self.tokenizer.pad_token_id
        padding = ends[0] if padding is None else padding
        rows = [[padding] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
        masks = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        told = self.arguments
        sampling: dict[str, Any] = {"do_sample": False}
        if told.temperature > 0:
            sampling = {
                "do_sample": True,
                "temperature": told.temperature,
                "top_p": told.top_p,
                "top_k": 0,
            }
        device = self.model.device
        self._generated += 1
        # Sampling draws from torch's global generators, which belong to whoever runs the agent.
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(told.seed * _SEEDS + self._generated)
            output = self.model.generate(
                input_ids=torch.tensor(rows, device=device),
                attention_mask=torch.tensor(masks, device=device),
                max_new_tokens=told.max_new_tokens,
                eos_token_id=ends,
                pad_token_id=padding,
                **sampling,
            )
        return [_until(row[longest:].tolist(), ends) for row in output]

    def _new_conversation(self) -> Conversation:
        # The template's own tokens are few; what they take is cut off the front of a full prompt.
        room = self.arguments.context - self.arguments.max_new_tokens
        return Conversation(
            self._skill, max(2000, room), self._measure, keep_thoughts=self.arguments.keep_thoughts
        )

    def _measure(self, text: str) -> int:
        return len(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _templated(self, messages: list[Message]) -> str:
        text: str = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **self.arguments.template
        )
        return text

    def _ends(self) -> list[int]:
        ends = self.model.generation_config.eos_token_id
        found = [ends] if isinstance(ends, int) else list(ends or ())
        if self.tokenizer.eos_token_id is not None:
            found.append(self.tokenizer.eos_token_id)
        return list(dict.fromkeys(found)) or [0]


def _placed(model: Any, device: str) -> None:
    model.to(device).eval()


def _until(ids: list[int], ends: Sequence[int]) -> list[int]:
    """The ids up to and with the first that ends an answer."""
    for position, token in enumerate(ids):
        if token in ends:
            return ids[: position + 1]
    return ids
