"""What is vetted runs in a confined process of its own; what is unfit is named with its reason."""

import os
import subprocess
import sys

import pytest

from kernelgym import tasks
from kernelgym.errors import UsageError
from kernelgym.judge.vet import vet
from kernelgym.tasks.sources import Loaded, Rejection

PROGRAM = """\
import os
import sys
import torch
from torch import nn

{top}


class Model(nn.Module):
    def forward(self, x):
        {body}


def get_inputs():
    return [torch.rand({shape})]


def get_init_inputs():
    return []
"""


def task(name, body, shape="8, 32", top=""):
    text = PROGRAM.format(body=body, shape=shape, top=top)
    return tasks.Task(name, 0, 0, name, f"{name}.py", text)


# Task, reason (None: fit), and a part of the message.
CASES = [
    (task("fit", "return torch.relu(x - 0.5)"), None, ""),
    (task("import", "return x", top="import no_such_module"), "import", "no_such_module"),
    (task("exit", "return x", top="sys.exit(3)"), "import", "SystemExit: 3"),
    (task("shapes", "return x @ x"), "shapes", "expected to run on tensors without values"),
    (task("nothing", "return None"), "shapes", "forward: expected at least one tensor"),
    (task("big", "return torch.relu(x - 1)", "1 << 32"), "memory", "needs 48.00 GiB"),
    (task("hidden", "return x + len(bytearray(6 << 30))"), "memory", "MemoryError"),
    (task("random", "return x + torch.rand_like(x)"), "determinism", "expected equal outputs"),
    (task("dropout", "return torch.dropout(x, 0.5, self.training) ** 2"), None, ""),
    (task("constant", "return torch.zeros_like(x)"), "degenerate", "a constant that passes"),
    (task("identity", "return x"), "degenerate", "an input itself"),
    (task("blind", "return torch.arange(8.0) + 0 * x.sum()"), "degenerate", "the same for"),
    (task("infinite", "return torch.log(x - x)"), "degenerate", "infinities or NaN"),
    (task("hang", "exec('while True: pass')"), "timeout", "an end within 10 s"),
    (task("crash", "os.kill(os.getpid(), 9)"), "crash", "signal 9"),
    (task("parent", "os.kill(os.getppid(), 9); return x * x"), None, ""),
    (task("talk", "print('{\"index\": 0}', flush=True); return x * 2"), None, ""),
    (task("reads", "open('/etc/passwd').read(); return x * 2"), "shapes", "PermissionError"),
    (task("writes", "open('/var/tmp/kernelgym', 'w'); return x * 2"), "shapes", "PermissionError"),
    (task("secret", "return x * len(os.environ['SECRET_TOKEN'])"), "shapes", "KeyError"),
    (task("last", "return torch.tanh(x) * 3"), None, ""),
]


@pytest.fixture(scope="module")
def report():
    rows = Loaded(
        tuple(case[0] for case in CASES), (Rejection("tasks.jsonl:3", "format", "not JSON"),)
    )
    steps = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_TOKEN", "token")
        report = vet(rows, memory=4 << 30, seconds=10, workers=1, progress=steps.append)
    assert steps == [len(CASES)]
    return report


def test_fit_tasks_are_accepted_in_order(report):
    # Whether the vetting process can be killed by a row depends on the kernel's namespaces.
    accepted = [task.id for task in report.accepted if task.id != "parent"]
    assert accepted == ["fit", "dropout", "talk", "last"]


def test_every_row_is_either_accepted_or_rejected(report):
    assert len(report.accepted) + len(report.rejected) == len(CASES) + 1
    assert report.rejected[0].where == "tasks.jsonl:3"


@pytest.mark.parametrize(
    ("name", "reason", "message"),
    [(case[0].id, *case[1:]) for case in CASES if case[1] is not None],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_unfit_tasks_are_named_with_the_reason(report, name, reason, message):
    (row,) = (row for row in report.rejected if row.where.endswith(f"({name})"))
    assert row.reason == reason
    assert message in row.message


def test_the_process_that_forks_has_one_thread():
    program = (
        "import os; from kernelgym.judge.vetting import warm_up; warm_up(); "
        "assert len(os.listdir('/proc/self/task')) == 1, os.listdir('/proc/self/task')"
    )
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize(
    "arguments", [{"size": "huge"}, {"workers": 0}, {"seconds": 0}, {"memory": -1}]
)
def test_arguments_that_are_not_accepted(arguments):
    with pytest.raises(UsageError, match=f"{next(iter(arguments))}: expected"):
        vet([CASES[0][0]], **arguments)


def test_nothing_to_vet():
    assert vet([]).accepted == ()
