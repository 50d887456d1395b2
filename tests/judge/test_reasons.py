"""The table of reasons: complete, and the documentation's is the same."""

import pathlib
import re

import kernelgym.judge
from kernelgym.judge.reasons import REASONS, table
from kernelgym.judge.verdict import Outcome

JUDGE = pathlib.Path(kernelgym.judge.__file__).parent
RUNTIME = JUDGE.parent / "toolchain" / "runtime"
DOCS = pathlib.Path(__file__).parents[2] / "docs"


def test_the_documented_table_is_the_one_in_force():
    assert (DOCS / "reasons.md").read_text() == table()


def test_every_code_that_the_judge_gives_is_in_the_table():
    code = re.compile(r'"((?:rule|workspace|build|import|construct|weights|run|check)\.[a-z_]+)"')
    used = {m for path in JUDGE.glob("*.py") for m in code.findall(path.read_text())}
    assert used
    assert used <= set(REASONS)


def test_every_code_that_the_emulator_documents_is_in_the_table():
    text = (RUNTIME / "report.cpp").read_text()
    listed = re.search(r"// Codes: (.*?)\.\n#", text, re.DOTALL).group(1)
    codes = {code.strip() for code in listed.replace("//", "").replace("\n", " ").split(",")}
    assert codes - {"unsupported"} <= set(REASONS)


def test_no_reason_is_for_a_correct_candidate():
    assert all(reason.outcome is not Outcome.CORRECT for reason in REASONS.values())
    assert all(reason.meaning and reason.remedy for reason in REASONS.values())
