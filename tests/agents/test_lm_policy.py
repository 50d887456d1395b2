"""Language models of two families, tiny and random, made here with their chat templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from kernelgym.agents.lm_policy import LMPolicy
from kernelgym.errors import UsageError
from kernelgym.runner import run_episode
from kernelgym.vector import KernelVectorEnv

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is defined and not "
    "enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
# As of a template that knows no system message.
LLAMA = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}<|im_end|>{% endfor %}[assistant]"
)
SPECIAL = ["<|im_start|>", "<|im_end|>", "<pad>"]
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32_768,
}


def make_tokenizer(template: str | None) -> Any:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*alphabet, *SPECIAL])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<pad>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=template,
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    torch.manual_seed(0)
    made = {}
    for name, template in (("qwen3", CHATML), ("llama", LLAMA), ("plain", None)):
        tokenizer = make_tokenizer(template)
        size = {"vocab_size": len(tokenizer), **SIZES}
        model = (
            Qwen3ForCausalLM(Qwen3Config(head_dim=16, **size))
            if name == "qwen3"
            else LlamaForCausalLM(LlamaConfig(**size))
        )
        path = tmp_path_factory.mktemp(name)
        tokenizer.save_pretrained(path)
        model.save_pretrained(path)
        made[name] = path
    return made


def make(folder: Path, **fields: Any) -> LMPolicy:
    return LMPolicy(
        **{
            "model": str(folder),
            "skill": "",
            "context": 6000,
            "max_new_tokens": 12,
            "device": "cpu",
            "keep_samples": True,
            **fields,
        }
    )


@pytest.mark.parametrize("family", ["qwen3", "llama"])
def test_junk_is_handled_and_tokens_are_kept(
    folders: dict[str, Path], make_env: Any, family: str
) -> None:
    policy = make(folders[family])
    result = run_episode(make_env(max_turns=3), policy)
    assert len(result.turns) == len(policy.samples) == 3
    assert all(turn.edit_error for turn in result.turns)
    for turn, sample in zip(result.turns, policy.samples, strict=True):
        assert 0 < len(sample.completion_ids) <= 12
        decoded = policy.tokenizer.decode(sample.completion_ids, skip_special_tokens=True)
        assert decoded == turn.action
    first, second, _ = (policy.tokenizer.decode(s.prompt_ids) for s in policy.samples)
    assert "class ModelNew" in first
    assert "The edit was not applied" in second
    assert first.endswith("<|im_start|>assistant\n" if family == "qwen3" else "[assistant]")
    assert policy.usage.requests == 3
    assert policy.usage.completion_tokens == sum(len(s.completion_ids) for s in policy.samples)


def test_a_seed_gives_an_episode(folders: dict[str, Path], make_env: Any) -> None:
    def actions(seed: int) -> list[str]:
        result = run_episode(make_env(max_turns=2), make(folders["qwen3"], seed=seed))
        return [turn.action for turn in result.turns]

    assert actions(1) == actions(1) != actions(2)


def test_a_batch_answers_as_each_alone_would(folders: dict[str, Path]) -> None:
    policy = make(folders["qwen3"], temperature=0.0)
    prompts = [
        policy.tokenizer(text)["input_ids"] for text in ("short", "a longer prompt than that")
    ]
    together = policy.generate(prompts)
    assert together == [policy.generate([prompt])[0] for prompt in prompts]


def test_a_vector_environment_is_played_as_a_batch(
    folders: dict[str, Path], fake_judge: Any, fake_tasks: Any
) -> None:
    policy = make(folders["qwen3"])
    env = KernelVectorEnv(3, task=list(fake_tasks), judge=fake_judge, max_turns=2)
    observations, infos = env.reset(seed=1)
    for _ in range(3):
        observations, _, _, _, infos = env.step(policy.act_vector(observations, infos))
    assert [sample.slot for sample in policy.samples] == [0, 1, 2] * 3
    # The third step is each slot's next episode, whose conversation is a new one.
    third = policy.tokenizer.decode(policy.samples[6].prompt_ids)
    assert third.count("assistant\n") == 1
    assert policy.tokenizer.decode(policy.samples[3].prompt_ids).count("assistant\n") == 2


def test_the_answer_ends_with_its_end(folders: dict[str, Path], monkeypatch: Any) -> None:
    policy = make(folders["llama"])
    end = policy.tokenizer.eos_token_id
    ids = policy.prompt_ids([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}])
    assert policy.tokenizer.decode(ids) == "[user]a\nb<|im_end|>[assistant]"

    def generate(input_ids: Any, **rest: Any) -> Any:
        return torch.cat([input_ids, torch.tensor([[5, end, 7, 8]])], dim=1)

    monkeypatch.setattr(policy.model, "generate", generate)
    assert policy.generate([ids]) == [[5, end]]


def test_a_template_can_be_told_more(folders: dict[str, Path]) -> None:
    policy = make(folders["qwen3"], template={"enable_thinking": False})
    ids = policy.prompt_ids([{"role": "user", "content": "b"}])
    assert policy.tokenizer.decode(ids).endswith("<think>\n\n</think>\n\n")


def test_prompts_fit_the_context(folders: dict[str, Path], make_env: Any) -> None:
    policy = make(folders["qwen3"], context=2600, max_new_tokens=20)
    run_episode(make_env(max_turns=5), policy)
    assert all(len(sample.prompt_ids) <= 2580 for sample in policy.samples)


def test_misuse_is_named(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="chat template"):
        make(folders["plain"])
    with pytest.raises(UsageError, match="expected a causal language model"):
        make(tmp_path)
    with pytest.raises(UsageError, match="max_new_tokens"):
        make(folders["qwen3"], max_new_tokens=6000)
    with pytest.raises(UsageError, match="model: expected"):
        LMPolicy()
