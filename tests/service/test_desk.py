"""The desk: what it takes in is judged once, and what it has judged is kept."""

import msgspec
import pytest

from kernelgym.errors import RecordError, UsageError
from kernelgym.judge import chain
from kernelgym.service.access import Access, Account, is_loopback, read_accounts
from kernelgym.service.desk import Desk, Refused
from kernelgym.service.messages import Submission, TaskText, text_hash
from kernelgym.tasks import get

from .conftest import FakePool

ME = Account("me")


def job(text="a", **fields):
    return Submission(**{"task": "L1/19", "files": {"model_new.py": text}, **fields})


@pytest.fixture
def open_desk(journal):
    desks = []

    def make(**arguments):
        desk = Desk(FakePool(), journal, **arguments)
        desks.append(desk)
        return desk

    yield make
    for desk in desks:
        desk.close()


def settled(desk, status, account=ME):
    desk.finished(status.id).result(10)
    return desk.find(account, status.id)


def as_json(status):
    return msgspec.json.encode(status)


def kinds(journal):
    return [link.record["kind"] for link in chain.read(journal)]


def test_a_job_and_its_verdict_are_chained_in_the_journal(open_desk, journal):
    desk = open_desk()
    status = settled(desk, desk.submit(ME, None, job()))
    assert status.status == "done"
    assert msgspec.json.decode(status.verdict)["message"] == "a"
    assert chain.verify(journal, status.hash) == 2
    assert kinds(journal) == ["submitted", "verdict"]


def test_one_key_is_one_job_and_another_content_is_refused(open_desk, journal):
    desk = open_desk()
    first = settled(desk, desk.submit(ME, "key", job()))
    again = desk.submit(ME, "key", job())
    assert as_json(again) == as_json(first)
    with pytest.raises(Refused, match="another job") as caught:
        desk.submit(ME, "key", job("b"))
    assert caught.value.status == 409
    other = desk.submit(Account("you"), "key", job("b"))
    assert other.id != first.id
    assert desk.find(ME, other.id) is None
    settled(desk, other, Account("you"))
    assert desk._pool.judged == ["a", "b"]


def test_what_has_no_verdict_at_the_end_is_judged_after_a_restart_and_nothing_twice(
    open_desk, journal
):
    desk = open_desk()
    done = settled(desk, desk.submit(ME, "1", job("a")))
    faulty = settled(desk, desk.submit(ME, "2", job("fault")))
    desk._pool.gate.clear()
    held = desk.submit(ME, "3", job("b"))  # broken off by the end
    queued = desk.submit(ME, "4", job("c"))
    desk.close()
    assert kinds(journal) == ["submitted", "verdict", "submitted", "fault", *["submitted"] * 2]
    with journal.open("a") as file:
        file.write('{"cut off')

    desk = open_desk()
    assert settled(desk, held).status == settled(desk, queued).status == "done"
    assert desk._pool.judged == ["b", "c"]
    assert as_json(desk.find(ME, done.id)) == as_json(done)
    assert desk.find(ME, faulty.id).fault == "SandboxFault"
    assert as_json(desk.submit(ME, "1", job("a"))) == as_json(done)
    assert desk.queue(ME).verdicts == 3
    assert chain.verify(journal) == 8


def test_a_verdict_that_cannot_be_kept_is_not_given(open_desk, monkeypatch, journal):
    desk = open_desk()
    desk._pool.gate.clear()
    status = desk.submit(ME, None, job())

    def full(record):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(desk._journal, "append", full)
    desk._pool.gate.set()
    status = settled(desk, status)
    assert (status.status, bytes(status.verdict)) == ("fault", b"null")
    assert "No space left" in status.message
    with pytest.raises(OSError, match="No space"):
        desk.submit(ME, None, job("b"))
    desk.close()
    assert settled(open_desk(), status).status == "done"


def test_a_full_queue_and_a_spent_budget_turn_callers_away(open_desk):
    desk = open_desk(capacity=2)
    poor = Account("poor", budget=1)
    desk._pool.gate.clear()
    desk.submit(poor, None, job(agent="x"))
    with pytest.raises(Refused, match="budget of poor is spent") as caught:
        desk.submit(poor, None, job("b"))
    assert caught.value.status == 403
    second = desk.submit(ME, None, job())
    with pytest.raises(Refused, match="queue is full") as caught:
        desk.submit(ME, None, job())
    assert (caught.value.status, caught.value.retry_after) == (503, 1)
    queue = desk.queue(poor)
    assert (queue.running, queue.queued, queue.unfinished, queue.verdicts) == (1, 1, 1, 0)
    desk._pool.gate.set()
    settled(desk, second)
    queue = desk.queue(poor)
    assert (queue.verdicts, queue.agents, queue.unfinished) == (1, (("x", 1),), 0)


def test_a_fault_costs_nothing(open_desk):
    desk = open_desk()
    poor = Account("poor", budget=1)
    assert settled(desk, desk.submit(poor, None, job("fault")), poor).status == "fault"
    assert settled(desk, desk.submit(poor, None, job("a")), poor).status == "done"


def test_what_a_service_does_not_allow_is_refused(open_desk):
    desk = open_desk()
    text = TaskText("own", get("L1/19").source("small"))
    for submission in (job(task=text), job(config={"draws": 2})):
        with pytest.raises(Refused) as caught:
            desk.submit(ME, None, submission)
        assert caught.value.status == 403
    for wrong in (
        job(task="L9/1"),
        job(task="/etc/passwd.py"),
        job(files={"../x": ""}),
        job(task_hash="00"),
    ):
        with pytest.raises(UsageError):
            desk.submit(ME, None, wrong)
    good = job(task_hash=text_hash(get("L1/19").text))
    assert settled(desk, desk.submit(ME, None, good)).status == "done"


def test_what_it_allows_has_limits(open_desk):
    desk = open_desk(allow_config=True, allow_tasks=True)
    text = TaskText("own", get("L1/19").source("small"))
    status = settled(desk, desk.submit(ME, None, job(task=text, config={"draws": 2})))
    verdict = msgspec.json.decode(status.verdict)
    assert (verdict["task"], verdict["message"]) == ("own", "a 2")
    for wrong in ({"device": "cuda"}, {"protection": "basic"}, {"draws": 0}):
        with pytest.raises(UsageError):
            desk.submit(ME, None, job(config=wrong))
    with pytest.raises(UsageError):
        desk.submit(ME, None, job(task=TaskText("own", "no task")))


def test_one_desk_to_a_journal_and_no_other_file_for_one(open_desk, journal):
    open_desk()
    with pytest.raises(UsageError, match="another service"):
        Desk(FakePool(), journal)
    other = journal.with_name("other.jsonl")
    chain.ChainedLog(other).append({"kind": "verdict", "id": "unknown"})
    with pytest.raises(RecordError, match=r"other\.jsonl:1: expected a record of the service"):
        Desk(FakePool(), other)


def test_accounts_by_token(tmp_path):
    file = tmp_path / "tokens"
    file.write_text("# who\nann 0123456789abcdef 5\nbob fedcba9876543210 # no limit\n")
    access = read_accounts(file, budget=9)
    assert access.account("Bearer 0123456789abcdef") == Account("ann", 5)
    assert access.account("bearer fedcba9876543210") == Account("bob", 9)
    for wrong in (None, "", "Bearer ", "Bearer x", "Basic 0123456789abcdef", "Bearer é"):
        assert access.account(wrong) is None
    assert Access(budget=3).account(None) == Account("local", 3)


@pytest.mark.parametrize(
    "text", ["", "ann short", "ann", "ann 0123456789abcdef x", "a 0123456789abcdef\n" * 2]
)
def test_wrong_accounts(tmp_path, text):
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(UsageError, match="expected"):
        read_accounts(file)


def test_loopback():
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.0.1", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org")))
