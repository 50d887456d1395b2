"""Tapes: recorded from runs and candidates, replayed as a judge, and what breaks them."""

from __future__ import annotations

import dataclasses
import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import kernelgym
from kernelgym import runs, tasks
from kernelgym.cli import app
from kernelgym.cli.exits import Exit
from kernelgym.config import JudgeConfig
from kernelgym.edits import Submit, WriteFile, render
from kernelgym.env import KernelEnv
from kernelgym.errors import ConfigError, RecordError
from kernelgym.judge.sources import workspace_files
from kernelgym.judge.verdict import Measurement, Speedup, Timing, Verdict
from kernelgym.judge.verdict_log import VerdictLog, question
from kernelgym.tape import Tape, TapeJudge, TapeMiss
from kernelgym.taping import read_candidates, record_run

TASK = tasks.get("L1/19")
CONFIG = JudgeConfig(device="cpu", seed=1)
TEXTS = tuple(f"# version {number}\n" for number in range(4))


@pytest.fixture
def verdicts(make_verdict: Any) -> list[Verdict]:
    time = Measurement(1e-3, 0.9e-3, 1.1e-3, 20, "measured", 2e-3)
    eager = Measurement(2e-3, 1.9e-3, 2.1e-3, 20, "stored")
    timing = Timing(time, eager, speedup_eager=Speedup(2.0, 1.8, 2.2))
    return [make_verdict(timing=timing, message=text) for text in TEXTS]


@pytest.fixture
def path(tmp_path: Path, verdicts: list[Verdict]) -> Path:
    path = tmp_path / "tape.jsonl"
    write(path, verdicts, "NVIDIA H200")
    return path


def write(path: Path, verdicts: list[Verdict], device: str, config: JudgeConfig = CONFIG) -> None:
    log = VerdictLog(path)
    for text, verdict in zip(TEXTS, verdicts, strict=True):
        log.append(question(TASK, workspace_files(text), config, "small", device), verdict)


def test_a_verdict_comes_back_whole_and_says_that_it_is_replayed(
    path: Path, verdicts: list[Verdict]
) -> None:
    judge = TapeJudge(path)
    got = judge.evaluate("L1/19", TEXTS[2])
    assert got.timing is not None
    assert got.timing.candidate == Measurement(1e-3, 0.9e-3, 1.1e-3, 20, "replayed", 2e-3)
    assert got.timing.eager is not None
    assert got.timing.eager.source == "replayed"
    assert dataclasses.replace(got, timing=verdicts[2].timing) == verdicts[2]
    assert judge.config == JudgeConfig(device="cuda", seed=1, size="small")
    assert (judge.size, judge.device_name, judge.hits) == ("small", "NVIDIA H200", 1)


def test_a_modelled_time_stays_modelled(tmp_path: Path, make_verdict: Any) -> None:
    modelled = [make_verdict(eager=(2.0, 1.9, 2.1), message=text) for text in TEXTS]
    write(tmp_path / "tape.jsonl", modelled, "emulator")
    judge = TapeJudge(tmp_path / "tape.jsonl")
    assert judge.evaluate(TASK, TEXTS[0]) == modelled[0]
    assert judge.config.device == "cpu"


def test_a_miss_is_an_error_that_says_what_is_missing(path: Path) -> None:
    judge = TapeJudge(path)
    with pytest.raises(TapeMiss, match=r"verdict on this candidate for L1/19 \(NVIDIA H200"):
        judge.evaluate(TASK, "# never seen\n")
    with pytest.raises(TapeMiss, match="L1/20"):
        judge.evaluate("L1/20", TEXTS[0])
    hit, miss = judge.evaluate_many([(TASK, TEXTS[0]), (TASK, "# never seen\n")])
    assert isinstance(hit, Verdict)
    assert isinstance(miss, TapeMiss)
    assert (judge.hits, judge.misses) == (1, 3)


def test_a_miss_goes_to_the_live_judge(path: Path, fake_judge: Any) -> None:
    fake_judge.config = JudgeConfig(device="cpu", seed=1)
    judge = TapeJudge(path, live=fake_judge)
    env = KernelEnv("L1/19", judge=judge)
    env.reset()
    _, _, _, _, info = env.step(render(WriteFile("model_new.py", "# fast=2.0 \n")))
    assert info["verdict"].timing.candidate.source == "modelled"
    _, _, _, _, info = env.step(render(WriteFile("model_new.py", TEXTS[0])))
    assert info["verdict"].timing.candidate.source == "replayed"
    assert fake_judge.judged == ["L1/19"]


def test_a_live_judge_of_other_rules_is_refused(path: Path, fake_judge: Any) -> None:
    with pytest.raises(ConfigError, match="judges as the tape's"):
        TapeJudge(path, live=fake_judge)  # another seed


def test_the_setting_must_be_one(path: Path, verdicts: list[Verdict]) -> None:
    with pytest.raises(ConfigError, match="got 0"):
        TapeJudge(path, config=CONFIG.replace(protocol="kernelbench"))
    with pytest.raises(ConfigError, match="got 0"):
        TapeJudge(path, config=CONFIG.replace(size="full"))
    write(path, verdicts, "NVIDIA H200", CONFIG.replace(precision="ieee"))
    write(path, verdicts, "NVIDIA B200")
    with pytest.raises(ConfigError, match="got 3"):
        TapeJudge(path)
    with pytest.raises(ConfigError, match="got 2"):
        TapeJudge(path, config=CONFIG)
    judge = TapeJudge(path, config=CONFIG, device="NVIDIA B200")
    assert judge.evaluate(TASK, TEXTS[0]).message == TEXTS[0]
    with pytest.raises(ConfigError, match="tape's"):
        judge.evaluate(TASK, TEXTS[0], config=CONFIG.replace(draws=1))


def test_environments_and_batches_play_on_it(path: Path) -> None:
    judge = TapeJudge(path)
    envs = kernelgym.make_vec("kernelgym:Kernel-v0", 3, task="L1/19", judge=judge)
    envs.reset(seed=0)
    actions = [render(WriteFile("model_new.py", text)) for text in (*TEXTS[:2], "# never seen\n")]
    _, rewards, _, truncated, infos = envs.step(actions)
    assert list(rewards) == [2.0, 2.0, 0.0]
    assert list(truncated) == [False, False, True]
    assert "expected a verdict on this candidate" in infos["fault"][2]
    results = kernelgym.evaluate_many([("L1/19", text) for text in TEXTS], judge=judge)  # type: ignore[arg-type]
    assert [verdict.message for verdict in results if isinstance(verdict, Verdict)] == list(TEXTS)


def test_it_replays_at_least_two_thousand_steps_a_second(path: Path) -> None:
    env = KernelEnv("L1/19", judge=TapeJudge(path), max_turns=1000)
    actions = [render(WriteFile("model_new.py", text)) for text in TEXTS]
    rates = []
    for _ in range(5):  # the best of five: other processes share the machine
        env.reset()
        start = time.thread_time()
        for step in range(400):
            env.step(actions[step % len(actions)])
        rates.append(400 / (time.thread_time() - start))
    assert max(rates) >= 2000


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data.replace(b"version 1", b"version 9", 1), ":2: the chain is broken"),
        (lambda data: data.split(b"\n", 1)[1], ":1: the chain is broken"),
        (lambda data: data[:-20], ":4: expected a whole line"),
        (lambda data: b"\x00\xff junk\n", ":1: expected a record"),
        (lambda data: gzip.compress(data)[:-9], "compressed with gzip"),
        (lambda data: gzip.compress(data)[:40] + b"junk", "compressed with gzip"),
    ],
)
def test_a_spoilt_tape_is_refused(path: Path, spoil: Any, message: str) -> None:
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(RecordError, match=message):
        Tape(path)


def test_a_log_of_something_else_is_refused(tmp_path: Path) -> None:
    from kernelgym.judge.chain import ChainedLog

    for record in ({"hello": 1}, {"question": {"config": {}}, "verdict": {}}):
        path = tmp_path / f"{len(record)}.jsonl"
        ChainedLog(path).append(record)
        with pytest.raises(RecordError, match=":1: no verdict"):
            Tape(path)


def test_a_compressed_tape_is_the_same(path: Path) -> None:
    packed = path.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    a, b = Tape(path), Tape(packed)
    assert a.settings == b.settings
    assert a.verdicts(a.settings[0]) == b.verdicts(b.settings[0])


class Two:
    """Sends one candidate that is rejected and one that is right, then ends."""

    def __call__(self, observation: Any, info: dict[str, Any]) -> str:
        texts = ("# one\n", "# fast=2.0 \n")
        if info["turn"] == 2:
            return render(Submit())
        return render(WriteFile("model_new.py", texts[info["turn"]]))


def test_a_run_becomes_a_tape_that_replays_it(tmp_path: Path, fake_judge: Any) -> None:
    plan = runs.RunPlan("two", ("L1/19", "L1/20"), JudgeConfig(device="cpu"))
    found = [tasks.get(name) for name in plan.tasks]
    first = runs.play(plan, found, Two(), tmp_path / "run", judge=fake_judge)
    tape = tmp_path / "tape.jsonl"
    assert record_run(tmp_path / "run", tape) == 4
    assert record_run(tmp_path / "run", tape) == 0
    second = runs.play(plan, found, Two(), tmp_path / "again", judge=TapeJudge(tape))
    assert [(r.task_id, r.total_reward, r.best) for r in first] == [
        (r.task_id, r.total_reward, r.best) for r in second
    ]
    with pytest.raises(RecordError, match="folder of a run"):
        record_run(tmp_path, tape)


def test_candidates_are_read_and_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    lines = [{"task": "L1/19", "source": "a"}, {"task": "L1/20", "files": {"model_new.py": "b"}}]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert [(task.id, files) for task, files in read_candidates(path)] == [
        ("L1/19", {"model_new.py": "a"}),
        ("L1/20", {"model_new.py": "b"}),
    ]
    for bad in ("nonsense", '{"task": "L1/19"}', '{"task": "L1/19", "files": {"../x": ""}}', "[]"):
        path.write_text(json.dumps(lines[0]) + "\n" + bad)
        with pytest.raises(RecordError, match=":2:"):
            read_candidates(path)


def test_the_commands_record_show_and_replay(tmp_path: Path, fake_judge: Any) -> None:
    plan = runs.RunPlan("two", ("L1/19",), JudgeConfig(device="cpu"))
    runs.play(plan, [TASK], Two(), tmp_path / "run", judge=fake_judge)
    tape, run = str(tmp_path / "tape.jsonl"), CliRunner().invoke
    done = run(app, ["tape", "record", "--run", str(tmp_path / "run"), "--out", tape])
    assert (done.exit_code, done.stdout) == (0, f"{tape}: 2 verdicts added\n")
    assert "2 verdicts on 1 tasks, 1 correct" in run(app, ["tape", "show", tape]).stdout
    agent = tmp_path / "agent.py"
    agent.write_text("def agent(observation, info):\n    return 'submit'\n")
    asked = ["tape", "replay", tape, "--agent", f"{agent}:agent", "--task", "L1/19"]
    done = run(app, [*asked, "--out", str(tmp_path / "again")])
    assert done.exit_code == Exit.NO
    assert "0 verdicts replayed" in done.stdout
    recorded = runs.read_plan(tmp_path / "again")
    assert recorded is not None
    assert recorded.agent.endswith(", tape tape.jsonl")
    done = run(app, ["tape", "record", "--out", tape])
    assert done.exit_code == Exit.USAGE
    assert "either --run or --candidates" in done.stderr
    assert run(app, ["tape", "show", str(tmp_path / "none")]).exit_code == Exit.USAGE


def test_the_command_judges_candidates(tmp_path: Path) -> None:
    """On the real judge: a source that is rejected before anything is compiled."""
    path, tape = tmp_path / "candidates.jsonl", tmp_path / "tape.jsonl"
    source = TASK.source("small").replace("class Model(", "class ModelNew(")
    path.write_text(json.dumps({"task": "L1/19", "source": source}))
    asked = ["tape", "record", "--candidates", str(path), "--out", str(tape), "--device", "cpu"]
    done = CliRunner().invoke(app, [*asked, "--seed", "0"])
    assert done.exit_code == 0, done.output
    judge = TapeJudge(tape)
    assert judge.evaluate(TASK, source).reason == "rule.torch_compute"
