"""The faults that the mutation benchmark puts into kernels, and what it makes of the records."""

import pytest

from benchmarks.faults import KINDS, faults_of, sample
from benchmarks.mutation import KERNELS, Record, chosen, summary, table, with_truth
from tests.honest.candidates import read
from tests.judge.candidates import candidate

KERNEL = """
// i < n in a comment, and "x[i]" in a string
__global__ void kernel(const float* x, float* y, int n, int cols) {
    __shared__ float tile[32][33];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float acc = 0.5f;
    for (int k = 0; k < cols; k++) acc += x[i] * x[k];
    tile[threadIdx.y][threadIdx.x] = acc;
    __syncthreads();
    if (i < n) y[i] = fmaxf(tile[0][threadIdx.x] + x[i], 0.0f);
    atomicAdd(&y[0], acc);
}
"""
FILES = {"model_new.py": candidate(KERNEL), "k.cu": "__device__ float f(float a) { return a + 1; }"}


@pytest.fixture(scope="module")
def faults():
    return faults_of("it", FILES)


def test_every_kind_is_found(faults):
    assert {fault.kind for fault in faults} == set(KINDS)
    assert {fault.file for fault in faults} == set(FILES)


def test_each_changes_one_place_and_nothing_else(faults):
    for fault in faults:
        before, after = FILES[fault.file], fault.apply(FILES)[fault.file]
        assert before != after
        assert after[: fault.start] == before[: fault.start]
        assert after.endswith(before[fault.end :])
        assert before.count("\n", 0, fault.start) + 1 == fault.line
    assert len({fault.name for fault in faults}) == len(faults)


def test_comments_strings_and_python_stay_as_they_are(faults):
    lines = FILES["model_new.py"].splitlines()
    changed = {lines[f.line - 1].strip() for f in faults if f.file == "model_new.py"}
    assert changed
    assert not any(line.startswith(("//", "import", "def", "ext", "class")) for line in changed)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("barrier", "    ;\n"),
        ("off_by_one", "k <= cols"),
        ("tail", "i < n - 1"),
        ("dropped_term", "acc = x[i] * x[k];"),
        ("wrong_axis", "tile[threadIdx.x][threadIdx.y] = acc"),
        ("atomic", "*(&y[0]) +=  acc;"),
        ("function", "fminf(tile"),
        ("constant", "acc = 0.5005f"),
        ("precision", "= __uint_as_float(__float_as_uint(acc) & 0xffffe000u);"),
    ],
)
def test_a_kind_does_what_it_says(faults, kind, text):
    texts = [fault.apply(FILES)["model_new.py"] for fault in faults if fault.kind == kind]
    assert any(text in changed for changed in texts)


def test_a_sample_takes_all_kinds_and_is_the_same_each_time(faults):
    taken = sample(faults, 9, seed=3)
    assert {fault.kind for fault in taken} == set(KINDS)
    assert taken == sample(faults, 9, seed=3)
    assert taken == sample(faults, 20, seed=3)[:9]


def test_there_are_four_hundred_in_twenty_kernels():
    pairs = chosen(18)
    assert len(KERNELS) >= 20
    assert set(KERNELS) <= set(read())
    assert len({fault.name for _, fault in pairs}) == len(pairs) >= 400


def record(outcome, differs, upstream=False, kind="tail", reason="check.tail", elsewhere=None):
    return Record(
        f"{outcome}{differs}{upstream}{kind}", "k", kind, 1, "a -> b", outcome, reason, None,
        differs=differs, upstream=upstream, elsewhere=elsewhere,
    )  # fmt: skip


def test_rates_count_what_is_wrong_and_list_what_was_missed():
    rows = [
        record("incorrect", True, True),
        record("correct", True, reason=""),
        record("correct", False, reason=""),
        record("incorrect", False, reason="race.shared"),
        record("correct", False, kind="constant", reason="", elsewhere=True),
        record("compile_error", None, reason="build.compile"),
        record("unsupported", None, reason="emulator.unsupported"),
    ]
    result = summary(rows)
    assert result["kinds"]["all"] == {
        "faults": 5,
        "wrong": 2,
        "found": 1,
        "found_upstream": 1,
        "no_effect": 3,
        "refused_without_effect": 1,
    }
    assert [row["outcome"] for row in result["missed"]] == ["correct"]
    assert [row["reason"] for row in result["refused_without_effect"]] == ["race.shared"]
    assert [row["kind"] for row in result["wrong_only_at_other_shapes"]] == ["constant"]
    assert result["unsupported"] == 1
    assert "| **all** | 5 | 2 | 1 (50.0 %) | 1 (50.0 %) |" in table(result)


def test_a_gpus_verdicts_get_the_emulators_truth():
    known = record("incorrect", True, True)
    on_gpu = Record(known.fault, "k", "tail", 1, "a -> b", "correct", "", None)
    (merged,) = with_truth({on_gpu.fault: on_gpu, "other": on_gpu}, {known.fault: known})
    assert merged.outcome == "correct"
    assert merged.differs
    assert summary([merged])["kinds"]["tail"]["found"] == 0
