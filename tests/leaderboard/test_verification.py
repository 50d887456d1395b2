"""What a replay stamps, and every way of tampering that the checks or the replay name."""

from __future__ import annotations

import json
import shutil

import pytest

from kernelgym.config import JudgeConfig
from kernelgym.errors import EnvironmentFault, RecordError, UsageError
from kernelgym.judge.chain import ChainedLog
from kernelgym.judge.defences import Defences
from kernelgym.leaderboard import replay
from kernelgym.leaderboard.checks import check_all, copies, fingerprints
from kernelgym.leaderboard.entry import Status
from kernelgym.leaderboard.loading import load_entry
from kernelgym.leaderboard.submission import Claim, submit
from kernelgym.leaderboard.verification import verify
from tests.leaderboard.stubs import Maker, StubJudge, source


@pytest.fixture
def entry(make_run, entries, tmp_path):
    """A submitted entry."""
    return submit(
        make_run(),
        Claim("My agent", ("Ada",)),
        entries,
        config=JudgeConfig(),
        make_judge=Maker(),
        cache=tmp_path / "cache",
    )


@pytest.fixture
def stranger(monkeypatch):
    """Lets the replay be somebody else's."""
    monkeypatch.setattr("kernelgym.leaderboard.verification.identity", lambda: "another-hand")


def run(entry, *, by="Maintainers", maker=None, **options):
    return verify(entry.folder, by=by, where="runner 1", make_judge=maker or Maker(), **options)


def rewrite(entry, change) -> None:
    """Edits records as an able cheat would: the chain and its head are made anew."""
    path = entry.folder / "verdicts.jsonl"
    records = [json.loads(line)["record"] for line in path.read_text().splitlines()]
    path.unlink()
    log = ChainedLog(path)
    for record in change(records):
        log.append(record)
    stated = entry.folder / "environment.json"
    content = json.loads(stated.read_text())
    content |= {"verdicts": len(log), "head": log.head}
    stated.write_text(json.dumps(content))


def faster(records):
    """Makes every number of the first record's timing agree on twice the speed."""
    timing = records[0]["timing"]
    for field in ("median", "low", "high"):
        timing["candidate"][field] /= 2
    for name in ("speedup_eager", "speedup_compile"):
        timing[name] = {key: value * 2 for key, value in timing[name].items()}
    return records


def without_traces(entry) -> None:
    shutil.rmtree(entry.folder / "traces")


@pytest.mark.usefixtures("stranger")
def test_a_replay_that_agrees_is_stamped(entry, entries):
    maker = Maker()
    found = run(entry, maker=maker)
    assert found.differences == ()
    assert found.entry.status is Status.VERIFIED
    stamp = load_entry(entry.folder).verification
    assert (stamp.by, stamp.where, stamp.tasks, stamp.own) == ("Maintainers", "runner 1", 3, False)
    assert stamp.content == entry.content
    assert maker.made[0].judged == ["L1/19", "L1/23", "L2/76"]
    assert maker.made[0].config.seed is None
    assert maker.made[0].closed
    assert check_all([entry.folder], entries) == ()


def test_ones_own_replay_does_not_make_an_entry_verified(entry):
    assert run(entry).entry.status is Status.SELF_CHECKED


@pytest.mark.usefixtures("stranger")
def test_an_authors_replay_is_their_own_on_any_machine(entry):
    assert run(entry, by="Ada").entry.status is Status.SELF_CHECKED


def test_a_stamp_that_hides_whose_it_is_is_found(entry, entries):
    run(entry)
    path = entry.folder / "verification.json"
    path.write_text(path.read_text().replace('"own": true', '"own": false'))
    (problem,) = check_all([entry.folder], entries)
    assert problem.code == "stamp.own"


@pytest.mark.usefixtures("stranger")
def test_a_slower_replay_is_listed_and_stamps_nothing(entry):
    found = run(entry, maker=Maker(drift=0.9))
    assert found.stamp is None
    assert load_entry(entry.folder).status is Status.UNVERIFIED
    assert found.differences[0] == (
        "L1/19: expected the speedup against eager that is claimed, 2 [1.98, 2.02], got 1.8 "
        "[1.78, 1.82]"
    )
    assert len(found.differences) == 4


@pytest.mark.usefixtures("stranger")
def test_a_replay_within_the_intervals_agrees(entry):
    assert run(entry, maker=Maker(drift=0.97)).stamp is not None


@pytest.mark.usefixtures("stranger")
def test_another_outcome_is_listed(entry, monkeypatch):
    class Stricter(Maker):
        def __call__(self, config):
            judge = super().__call__(config)
            honest = judge.evaluate
            judge.evaluate = lambda task, workspace: honest(
                task, type(workspace)({"model_new.py": source(1, "wrong!")})
            )
            return judge

    assert run(entry, maker=Stricter()).differences[0] == (
        "L1/19: expected correct, as claimed, got incorrect (check.tail)"
    )


def test_a_fault_is_neither_agreement_nor_difference(entry, monkeypatch):
    class Broken(Maker):
        def __call__(self, config):
            judge = super().__call__(config)

            def fail(task, workspace):
                raise EnvironmentFault("the GPU fell off the bus")

            judge.evaluate = fail
            return judge

    with pytest.raises(EnvironmentFault, match=r"L1/19 could not be judged"):
        run(entry, maker=Broken())
    assert load_entry(entry.folder).verification is None


def test_the_wrong_machine_is_told_after_one_judgement(entry):
    maker = Maker(device="NVIDIA L4")
    with pytest.raises(UsageError, match="expected a machine with NVIDIA H200"):
        run(entry, maker=maker)
    assert len(maker.made[0].judged) == 1


def test_a_judge_with_a_defence_off_stamps_nothing(entry):
    def weak(config):
        judge = StubJudge(config)
        judge.protections = (*Defences.without("screen").missing(), *judge.protections)
        return judge

    with pytest.raises(UsageError, match=r"every defence in force .* got off:screen"):
        run(entry, maker=weak)
    assert load_entry(entry.folder).verification is None


def test_limits_that_an_entry_asks_for_are_bounded():
    config = JudgeConfig(
        protection="basic", run_timeout=1e9, build_timeout=1e9, memory_limit=2**60, seed=1
    )
    fresh = replay.fresh(config)
    assert (fresh.protection, fresh.seed) == ("standard", None)
    assert max(fresh.run_timeout, fresh.build_timeout) <= 600
    assert fresh.memory_limit <= 64 * 2**30


# --- tampering -----------------------------------------------------------------------------------


def test_an_edited_time_breaks_the_chain_and_its_line_is_named(entry):
    path = entry.folder / "verdicts.jsonl"
    path.write_text(path.read_text().replace('"median":0.00025', '"median":0.00020'))
    with pytest.raises(RecordError, match=r"verdicts\.jsonl:2: the chain is broken"):
        load_entry(entry.folder)


def test_an_edited_time_in_a_chain_made_anew_contradicts_its_speedup(entry, entries):
    def change(records):
        for name in ("median", "low", "high"):
            records[0]["timing"]["candidate"][name] /= 2
        return records

    rewrite(entry, change)
    problems = check_all([entry.folder], entries)
    assert {p.code for p in problems} == {"time.edited", "trace.differs"}
    assert {p.where for p in problems} == {"L1/19"}


def test_times_that_agree_with_each_other_contradict_the_trace(entry, entries):
    rewrite(entry, faster)
    (problem,) = check_all([entry.folder], entries)
    assert (problem.code, problem.where) == ("trace.differs", "L1/19")


def test_times_that_agree_with_everything_are_found_by_the_replay(entry, entries):
    rewrite(entry, faster)
    without_traces(entry)
    assert check_all([entry.folder], entries) == ()
    found = run(entry)
    assert found.stamp is None
    assert all(line.startswith("L1/19: expected the speedup") for line in found.differences)


@pytest.mark.usefixtures("stranger")
def test_what_is_changed_after_verification_makes_the_stamp_stale(entry, entries):
    run(entry)
    rewrite(entry, faster)
    without_traces(entry)
    assert load_entry(entry.folder).status is Status.STALE
    assert [p.code for p in check_all([entry.folder], entries)] == ["stamp.stale"]


def test_a_swapped_solution_is_named(entry):
    one, other = (
        entry.folder / "solutions" / name / "model_new.py" for name in ("L1-019", "L1-023")
    )
    one.write_bytes(other.read_bytes())
    with pytest.raises(RecordError, match=r"L1-019: .* got others .*a swapped or edited solution"):
        load_entry(entry.folder)


def test_dropped_verdicts_at_the_end_are_missed(entry):
    path = entry.folder / "verdicts.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    shutil.rmtree(entry.folder / "solutions" / "L2-076")
    with pytest.raises(RecordError, match="expected 3 verdicts up to"):
        load_entry(entry.folder)


def test_a_rejected_task_hidden_with_its_head_made_anew_is_only_a_task_less(entry, entries):
    rewrite(entry, lambda records: records[:-1])
    shutil.rmtree(entry.folder / "solutions" / "L2-076")
    assert check_all([entry.folder], entries) == ()
    assert [r.task for r in load_entry(entry.folder).results] == ["L1/19", "L1/23"]


def test_a_task_twice_is_named(entry):
    rewrite(entry, lambda records: [*records, records[0]])
    with pytest.raises(RecordError, match=r"verdicts\.jsonl:4: expected each task once, got L1/19"):
        load_entry(entry.folder)


def test_a_verdict_under_other_rules_is_named(entry, entries):
    def change(records):
        records[0]["provenance"]["protocol"] = "kernelbench"
        return records

    rewrite(entry, change)
    without_traces(entry)
    (problem,) = check_all([entry.folder], entries)
    assert (
        str(problem)
        == "board.mixed: L1/19: protocol: expected the board's, audited, got kernelbench"
    )


def test_a_forged_outcome_is_named(entry, entries):
    def change(records):
        records[2] |= {"outcome": "correct", "reason": ""}
        return records

    rewrite(entry, change)
    without_traces(entry)
    codes = {problem.code for problem in check_all([entry.folder], entries)}
    assert codes == {"verdict.inconsistent", "time.missing"}


def test_one_verdicts_salt_in_another_is_named(entry, entries):
    def change(records):
        for record in records[:2]:
            record["provenance"]["salt_commitment"] = "ab" * 32
        return records

    rewrite(entry, change)
    without_traces(entry)
    problems = check_all([entry.folder], entries)
    assert [(p.code, p.where) for p in problems] == [
        ("salt.repeated", "L1/19"),
        ("salt.repeated", "L1/23"),
    ]


@pytest.mark.parametrize(
    ("stated", "instead", "where"),
    [
        ("verdicts_per_task: 3", "verdicts_per_task: 2", "L1/19"),
        ("verdicts: 6", "verdicts: 5", "all tasks"),
    ],
)
def test_more_verdicts_than_stated_are_found_in_the_trace(entry, entries, stated, instead, where):
    path = entry.folder / "entry.yaml"
    text = path.read_text()
    assert stated in text
    path.write_text(text.replace(stated, instead))
    (problem,) = check_all([entry.folder], entries)
    assert (problem.code, problem.where) == ("budget.exceeded", where)


def test_a_copied_entry_is_named_on_the_copy(entry, entries):
    copy = entry.folder.with_name("mine-now")
    shutil.copytree(entry.folder, copy)
    text = (copy / "entry.yaml").read_text()
    (copy / "entry.yaml").write_text(text.replace("- Ada", "- Mallory"))
    problems = check_all([copy], entries)
    assert [(p.code, p.where) for p in problems] == [
        ("entry.copied", f"{entry.board.slug}/mine-now")
    ]
    assert "3 of 3 that are those of" in problems[0].message
    both = [fingerprints(load_entry(folder)) for folder in (copy, entry.folder)]
    found = run(load_entry(copy), others=tuple(both))
    assert found.stamp is None
    assert found.differences[0].startswith("entry.copied")
    assert copies(both[0], [both[0]]) == ()


def test_an_entry_on_another_boards_folder_is_named(entry, entries):
    elsewhere = entries / "nvidia-l4--audited--strict--default--kernelbench-full--10"
    elsewhere.mkdir()
    moved = shutil.move(entry.folder, elsewhere / "my-agent")
    (problem,) = check_all([elsewhere / "my-agent"], entries)
    assert problem.code == "board.folder"
    assert str(moved) in problem.where


def test_content_that_changes_during_the_replay_is_not_stamped(entry):
    class Meddling(Maker):
        def __call__(self, config):
            (entry.folder / "traces" / "more.txt").write_text("hello")
            return super().__call__(config)

    with pytest.raises(UsageError, match="expected it to stay as it is"):
        run(entry, maker=Meddling())
    assert not (entry.folder / "verification.json").exists()


@pytest.mark.parametrize("line", ["{", "[1]", '{"kin": 3}', '{"kind": "step", "verdict": {}}'])
def test_a_trace_that_cannot_be_read_is_named(entry, entries, line):
    path = entry.folder / "traces" / "trace.jsonl"
    path.write_text(f"{line}\n" + path.read_text())
    (problem,) = check_all([entry.folder], entries)
    assert problem.code == "trace.unreadable"
    assert "trace.jsonl:1: expected a trace's record" in problem.message


def test_what_an_agent_sent_does_not_keep_a_trace_from_being_read(entry, entries):
    path = entry.folder / "traces" / "trace.jsonl"
    path.write_text(path.read_text().replace('"action": "', '"action": "\\ud800', 1))
    assert check_all([entry.folder], entries) == ()
