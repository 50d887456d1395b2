"""The screen and the verdict reader: a finding or none, a verdict or a `RecordError`."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgym.config import RULESETS
from kernelgym.errors import RecordError
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.screen import Finding, screen
from kernelgym.judge.verdict import Verdict, from_json, to_json
from kernelgym.toolchain.build import SourceFile
from tests.conftest import verdict_of
from tests.fuzz.strategies import CPP, FUZZ, TEXT, lines_of

_PYTHON = st.sampled_from(
    [
        "import torch",
        "import torch.nn.functional as F",
        "from torch import *",
        "from torch.nn import functional",
        "from . import x",
        "class ModelNew(torch.nn.Module):",
        "class ModelNew: pass",
        "    def __init__(self):",
        "        self.relu = torch.nn.ReLU()",
        "        self.a.b[0] = torch.nn.Linear(1, 1)",
        "        self.x: int = F.relu",
        "    def forward(self, x):",
        "    async def forward(self, x):",
        "        return torch.relu(x)",
        "        return x @ x",
        "        return (lambda: F.relu)()(x)",
        "        return self.relu(x)",
        "        return torch.ops.aten.relu.default(x)",
        "        return getattr(torch, 'relu')(x)",
        "    forward = None",
        's = """',
        '"""',
        "s = 'torch::relu(x) {'",
        "f'{x!r:>{y}}'",
        "match x:",
        "    case [*_]: pass",
        "\tx",
        "x = \\",
        "\x00",
        "\ufeff",
        "(" * 50,
    ]
)
PROGRAMS = st.one_of(TEXT, lines_of(st.one_of(_PYTHON, _PYTHON, TEXT)))


@FUZZ
@given(PROGRAMS, CPP, st.sampled_from(RULESETS), st.booleans())
def test_the_screen_finds_something_or_nothing(program, cpp, ruleset, emulated):
    files = (SourceFile("k.cu", cpp), SourceFile("model_new.py", program))
    finding = screen(files, ruleset, emulated=emulated)
    assert finding is None or isinstance(finding, Finding)
    if finding is not None:
        assert finding.reason in REASONS
        for place in finding.diagnostics:
            assert place.file in ("k.cu", "model_new.py", "")


@pytest.mark.parametrize(
    "piece", ["(", "[", "a+", "-", "not ", "x.", "lambda: ", "f(", "{", "'a' "]
)
def test_a_deep_program_is_no_crash(piece):
    program = f"import torch\nclass ModelNew:\n    def forward(self, x):\n        {piece * 20_000}"
    started = time.process_time()
    assert screen((SourceFile("model_new.py", program),), "strict") is None
    assert time.process_time() - started < 20


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=20),
        st.sampled_from(["correct", "rejected", "", "L1/19"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
WHOLE = json.loads(to_json(verdict_of(eager=(1.0, 0.9, 1.1), compiled=(1.0, 0.9, 1.1))))


def read(text):
    """What is read back, once more through JSON; None where it is no verdict."""
    try:
        verdict = from_json(text)
    except RecordError:
        return None
    assert isinstance(verdict, Verdict)
    assert from_json(to_json(verdict)) == verdict
    return verdict


@FUZZ
@given(st.one_of(TEXT, st.binary(max_size=200), VALUES.map(json.dumps)))
def test_no_text_is_more_than_no_verdict(text):
    assert read(text) is None


@FUZZ
@given(st.lists(st.tuples(st.sampled_from(sorted(WHOLE)), VALUES), min_size=1, max_size=3))
def test_a_verdict_with_other_fields_is_a_verdict_or_none(changes):
    read(json.dumps({**WHOLE, **dict(changes)}))


@FUZZ
@given(st.sampled_from(["timing", "provenance"]), st.data())
def test_a_verdict_with_other_parts_is_a_verdict_or_none(part, data):
    name = data.draw(st.sampled_from(sorted(WHOLE[part])))
    read(json.dumps({**WHOLE, part: {**WHOLE[part], name: data.draw(VALUES)}}))


@FUZZ
@given(st.integers(0, 10_000), st.text(max_size=3))
def test_a_damaged_verdict_is_a_verdict_or_none(position, inserted):
    text = to_json(verdict_of(eager=(1.0, 0.9, 1.1)))
    position %= len(text)
    read(text[:position] + inserted + text[position:])
    read(text[:position])


@pytest.mark.parametrize(
    "text",
    [
        "\ud800",
        '{"schema_version": 1, "task": "\ud800"}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"schema_version": 1e400}',
        '{"schema_version": ' + "9" * 5000 + "}",
        b"\xff\xfe\x00",
        '{"schema_version": NaN}',
    ],
)
def test_what_json_cannot_hold_is_no_verdict(text):
    with pytest.raises(RecordError):
        from_json(text)
