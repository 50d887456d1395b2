"""From results to an entry, and nothing written where something is wrong."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from kernelgym import tasks as catalogue
from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault, UsageError
from kernelgym.judge.defences import Defences
from kernelgym.judge.verdict import Outcome
from kernelgym.leaderboard import checks
from kernelgym.leaderboard.board import Board, Budget
from kernelgym.leaderboard.entry import Status
from kernelgym.leaderboard.loading import load_entry
from kernelgym.leaderboard.submission import Claim, submit
from kernelgym.workspace import Workspace
from tests.leaderboard.stubs import FIXTURES, SCRIPTS, Maker, StubJudge, source

CLAIM = Claim("My agent", ("Ada", "Grace"), licence="MIT", links=("https://example.org",))


def send(results, entries, *, claim=CLAIM, maker=None, **options):
    options.setdefault("config", JudgeConfig())
    options.setdefault("cache", entries.parent / "cache")
    return submit(results, claim, entries, make_judge=maker or Maker(), **options)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def test_a_run_becomes_an_entry_with_the_best_verdict_of_each_task(make_run, entries):
    maker = Maker()
    entry = send(make_run(), entries, maker=maker, sample=None)
    assert entry.board == Board(
        "NVIDIA H200", "audited", "strict", "default", "kernelbench", "full", Budget.TEN
    )
    assert entry.folder == entries / entry.board.slug / "my-agent"
    assert entry.status is Status.UNVERIFIED
    speeds = {
        r.task: r.verdict.timing and r.verdict.timing.speedup_eager.value for r in entry.results
    }
    assert speeds == {"L1/19": 2.0, "L1/23": 4.0, "L2/76": None}
    assert entry.results[0].sources["model_new.py"] == source(2.0)
    assert [r.task for r in entry.rejected] == ["L2/76"]
    assert (entry.info.budget.verdicts, entry.info.budget.verdicts_per_task) == (6, 3)
    assert entry.info.agent == "scripted"
    assert [path.name for path in entry.traces] == ["trace.jsonl"]
    assert sorted(entry.environment.rejudged) == ["L1/19", "L1/23", "L2/76"]
    assert maker.made[0].closed
    assert checks.check_all([entry.folder], entries) == ()
    assert [item.name for item in entries.iterdir()] == [entry.board.slug]


def test_a_task_whose_files_were_never_changed_counts_as_not_attempted(make_run, entries):
    start = Workspace.initial(catalogue.get("L1/20"), "full").files["model_new.py"]
    entry = send(make_run({**SCRIPTS, "L1/20": [start]}), entries)
    assert [result.task for result in entry.results] == ["L1/19", "L1/23", "L2/76"]
    assert entry.info.budget.verdicts == 7  # it was judged


def test_a_sample_of_a_run_is_judged_again(make_run, entries):
    maker = Maker()
    entry = send(make_run(), entries, maker=maker, sample=1)
    assert len(maker.made[0].judged) == 1
    assert list(entry.environment.rejudged) == maker.made[0].judged


def test_verdicts_are_reached_again_under_a_secret_salt(make_run, entries):
    maker = Maker()
    send(make_run(), entries, maker=maker, config=JudgeConfig(seed=3))
    assert maker.made[0].config.seed is None


def test_a_run_that_is_slower_when_judged_again_is_refused(make_run, entries):
    with pytest.raises(UsageError, match=r"L1/19: expected the speedup against eager .* got 1\.8"):
        send(make_run(), entries, maker=Maker(drift=0.9), sample=None)
    assert files_below(entries) == []


def test_a_run_is_not_judged_again_on_another_device(make_run, entries):
    with pytest.raises(UsageError, match=r"expected a machine with NVIDIA H200 .* got NVIDIA L4"):
        send(make_run(), entries, maker=Maker(device="NVIDIA L4"))
    assert files_below(entries) == []


def test_a_fault_writes_nothing(entries, tmp_path):
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"L1/19": source(2.0), "L1/20": "fault!"}))
    with pytest.raises(EnvironmentFault, match="L1/20 could not be judged: the GPU fell off"):
        send(path, entries)
    assert files_below(entries) == []


def test_generations_are_judged_and_the_fastest_sample_counts(entries, tmp_path):
    folder = tmp_path / "generations"
    folder.mkdir()
    for sample, text in enumerate((source(1.5), source(3.0), source(9.0, "wrong!"))):
        (folder / f"level_1_problem_19_sample_{sample}_kernel.py").write_text(text)
    (folder / "level_1_problem_23_sample_0_kernel.py").write_text(source(1.1, "wrong!"))
    (folder / "eval_results.json").write_text("{}")
    entry = send(folder, entries)
    assert entry.board.task_set == "level1"
    assert entry.board.budget is Budget.OPEN
    assert entry.results[0].verdict.timing.speedup_eager.value == 3.0
    assert entry.results[1].verdict.outcome is Outcome.INCORRECT
    assert entry.environment.source == "generations"


@pytest.mark.parametrize(
    "name", ["L1/19", "L1-019", "level1/19", "level_1_problem_19", "1_19_ReLU"]
)
def test_json_may_name_tasks_as_people_do(entries, tmp_path, name):
    path = tmp_path / "all.json"
    path.write_text(json.dumps({name: {"model_new.py": source(2.0), "a.cuh": "// x"}}))
    entry = send(path, entries, claim=Claim("x", ("A",), verdicts_per_task=1))
    assert [result.task for result in entry.results] == ["L1/19"]
    assert sorted(entry.results[0].sources) == ["a.cuh", "model_new.py"]
    assert entry.board.budget is Budget.ONE


def test_workspaces_of_cuda_agent_come_without_its_tools(entries, tmp_path):
    folder = tmp_path / "work" / "level1_019"
    for name, text in {
        "model_new.py": source(2.0),
        "model.py": "class Model: pass",
        "kernels/relu.cu": "// kernel",
        "kernels/relu_binding.cpp": "// binding",
        "binding.cpp": "// fixed",
        "utils/compile.py": "# tool",
        "SKILL.md": "# rules",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    entry = send(tmp_path / "work", entries)
    assert sorted(entry.results[0].sources) == [
        "binding.cpp",
        "kernels/relu.cu",
        "kernels/relu_binding.cpp",
        "model_new.py",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"L1/19": "a", "L1/19": "b"}', "each key once, got 'L1/19'"),
        ('{"L1/19": "a", "level1/19": "b"}', "each task once, got L1/19 again"),
        ('{"L1/900": "a"}', "expected a task of KernelBench"),
        ('{"L1/19": {"other.py": "x"}}', "expected model_new.py"),
        ('{"L1/19": {"model_new.py": "x", "../../evil.py": "x"}}', "expected a relative path"),
        ('{"L1/19": {"model_new.py": "x", "/etc/passwd": "x"}}', "expected a relative path"),
        ('{"L1/19": 3}', "expected source"),
        ("[]", "expected an object of task to source"),
        ("{" * 100_000, "expected JSON"),
        ('{"a":' * 50_000, "expected JSON"),
    ],
)
def test_bad_json_is_refused_by_name(entries, tmp_path, content, message):
    path = tmp_path / "all.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        send(path, entries)
    assert files_below(entries) == []


def test_links_among_results_are_not_followed(entries, tmp_path):
    folder = tmp_path / "generations"
    folder.mkdir()
    os.symlink("/etc/hostname", folder / "level_1_problem_19_sample_0_kernel.py")
    with pytest.raises(UsageError, match="expected a plain file, got a link"):
        send(folder, entries)
    os.symlink(folder, tmp_path / "link")
    with pytest.raises(UsageError, match=r"expected a folder or a \.json file"):
        send(tmp_path / "link", entries)


def test_a_huge_source_is_refused_before_it_is_read(entries, tmp_path):
    folder = tmp_path / "generations"
    folder.mkdir()
    with (folder / "level_1_problem_19_sample_0_kernel.py").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UsageError, match="expected at most 1048576 bytes"):
        send(folder, entries)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (Claim("<script>alert(1)</script>", ("A",)), "name: expected plain text"),
        (Claim("a\u202eb", ("A",)), "name: expected plain text"),
        (Claim("x" * 200, ("A",)), "name: expected 1 to 120 characters"),
        (Claim("…", ("A",)), "name: expected letters or digits"),
        (Claim("x", ()), "authors: expected 1 to 64"),
        (Claim("x", ("A <b>",)), "authors: expected plain text"),
        (Claim("x", ("A",), links=("javascript:alert(1)",)), "links: expected an address"),
        (Claim("x", ("A",), links=('https://e.org/"onclick=',)), "links: expected an address"),
        (Claim("x", ("A",), verdicts_per_task=1), "expected at least the 3 there, got 1"),
        (Claim("x", ("A",), money_usd=-1.0), "money_usd: expected 0 or more"),
        (Claim("x", ("A",), task_set="level1"), "expected tasks of level1, got L2/76"),
        (Claim("x", ("A",), task_set="level9"), "task_set: expected one of"),
    ],
)
def test_a_bad_claim_writes_nothing(make_run, entries, claim, message):
    with pytest.raises(UsageError, match=message):
        send(make_run(), entries, claim=claim)
    assert files_below(entries) == []


def test_a_name_is_taken_once_on_a_board(make_run, entries):
    run = make_run()
    send(run, entries)
    before = files_below(entries)
    with pytest.raises(UsageError, match="expected a name that is new on its board, got my-agent"):
        send(run, entries)
    assert files_below(entries) == before


def test_somebody_elses_solutions_are_a_copy_though_their_white_space_differs(make_run, entries):
    send(make_run(), entries)
    scripts = {
        task: [text.replace("\n", "\n\n") for text in texts] for task, texts in SCRIPTS.items()
    }
    other = make_run(scripts, name="other")
    with pytest.raises(UsageError, match=r"entry.copied: .*3 of 3 that are those of .*/my-agent"):
        send(other, entries, claim=Claim("mine now", ("Mallory",)))
    assert len(list(entries.glob("*/*"))) == 1


def test_the_same_authors_may_enter_another_board(make_run, entries):
    first = send(make_run(), entries)
    run = make_run(judge=StubJudge(device="NVIDIA L4"), name="other")
    second = send(run, entries, maker=Maker(device="NVIDIA L4"))
    assert first.board != second.board


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"protections": ("rlimits", "no_new_privileges")}, "protection.off"),
        ({"protections": ("off:clock", *StubJudge().protections)}, "protection.off"),
        ({"source": "modelled"}, "time.modelled"),
    ],
)
def test_verdicts_that_do_not_belong_on_a_measured_board(make_run, entries, change, code):
    judge = StubJudge()
    vars(judge).update(change)
    with pytest.raises(UsageError, match=code):
        send(make_run(judge=judge), entries, sample=0)
    assert files_below(entries) == []


@pytest.mark.parametrize("name", Defences.names())
@pytest.mark.parametrize("device", ["NVIDIA H200", "emulator"])
def test_a_verdict_with_any_defence_off_is_refused_on_any_board(name, device):
    known = load_entry(next(FIXTURES.glob("*/first-light")))
    result = known.results[0]
    made = result.verdict.provenance
    weak = dataclasses.replace(
        result.verdict,
        provenance=dataclasses.replace(
            made, protections=(*made.protections, *Defences.without(name).missing())
        ),
    )
    board = dataclasses.replace(known.board, device=device)
    entry = dataclasses.replace(
        known,
        info=dataclasses.replace(known.info, board=board),
        results=(dataclasses.replace(result, verdict=weak),),
    )
    found = {(one.code, one.where): one.message for one in checks.check_entry(entry)}
    assert f"got off:{name}" in found["protection.off", result.task]


def test_a_weakly_confined_run_is_refused(make_run, entries):
    judge = StubJudge(JudgeConfig(protection="basic"))
    with pytest.raises(UsageError, match=r"protection.level: L1/19: expected protection standard"):
        send(make_run(judge=judge), entries, sample=0)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (JudgeConfig(seed=7), r"rules.seed: .* got seed 7"),
        (JudgeConfig(draws=1), r"rules.draws: .* expected at least 5 draws of inputs, got 1"),
        (JudgeConfig(baselines=("compile",)), r"rules.baselines: .* expected times against eager"),
    ],
)
def test_a_run_under_weaker_rules_is_refused(make_run, entries, config, message):
    with pytest.raises(UsageError, match=message):
        send(make_run(judge=StubJudge(config)), entries, sample=0)
    assert files_below(entries) == []


def test_a_trace_of_another_configuration_is_refused(make_run, entries):
    run = make_run()
    lines = (run / "trace.jsonl").read_text().splitlines(keepends=True)
    lines[0] = lines[0].replace('"draws": 5', '"draws": 1')
    (run / "trace.jsonl").write_text("".join(lines))
    with pytest.raises(UsageError, match="got another configuration for L1/19"):
        send(run, entries)


def test_an_edited_trace_is_found(make_run, entries):
    run = make_run()
    text = (run / "trace.jsonl").read_text()
    (run / "trace.jsonl").write_text(text.replace('"value": 4.0', '"value": 8.0'))
    with pytest.raises(UsageError, match=r"8\.0 in \[|time.edited: L1/23|inside its interval"):
        send(run, entries, sample=0)
    assert files_below(entries) == []


def test_a_folder_of_something_else_is_no_result(entries, tmp_path):
    (tmp_path / "notes").mkdir()
    with pytest.raises(UsageError, match="expected a run's folder"):
        send(tmp_path / "notes", entries)
    with pytest.raises(UsageError, match="expected the folder of entries"):
        send(tmp_path / "notes", tmp_path / "nowhere")


def test_the_entry_written_can_be_read_again(make_run, entries):
    entry = send(make_run(), entries)
    assert load_entry(entry.folder) == entry
    modes = {oct(path.stat().st_mode & 0o444) for path in entry.folder.rglob("*")}
    assert modes == {"0o444"}
