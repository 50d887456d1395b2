"""What is made of two devices' verdicts and counts."""

import pytest

from benchmarks.agreement import Record, cases, compare, read_records, table
from benchmarks.count_agreement import Launch, functions, parse_ncu_csv
from benchmarks.count_agreement import compare as compare_counts
from kernelgym.errors import UsageError


def records(**outcomes):
    found = {}
    for name, said in outcomes.items():
        outcome, _, reason = said.partition(" ")
        found[name] = Record(name, "group", "L1/19", outcome, reason, "", "device", 1.0)
    return found


def test_there_are_two_hundred_candidates_of_every_group():
    found = cases()
    assert len({case.name for case in found}) == len(found) >= 200
    groups = {case.group.split(".")[0] for case in found}
    assert {"honest", "fault", "race", "memory", "unset", "wrong", "control"} == groups
    assert {case.group.split(".")[0] for case in found[:60]} >= {"honest", "fault"}


def test_agreement_is_about_correct_or_not():
    emulator = records(
        right="correct",
        wrong="incorrect check.values",
        wild="runtime_error memory.out_of_bounds",
        raced="incorrect race.shared",
        strict="incorrect check.values",
        lax="correct",
        cannot="unsupported emulator.unsupported",
        broken="compile_error build.compile",
        alone="correct",
    )
    gpu = records(
        right="correct",
        wrong="incorrect check.tail",
        wild="incorrect check.values",
        raced="correct",
        strict="correct",
        lax="runtime_error run.error",
        cannot="correct",
        broken="compile_error build.compile",
    )
    result = compare(emulator, gpu)
    assert (result["judged"], result["agree"]) == (6, 3)
    assert result["agreement"] == 0.5
    assert result["agreement_on_values"] == 0.6
    kinds = {row["name"]: row["kind"] for row in result["differences"]}
    assert kinds == {"raced": "race", "strict": "stricter", "lax": "laxer"}
    assert set(result["left_out"]) == {"cannot", "broken"}
    assert result["not_judged_by_both"] == ["alone"]
    assert "| raced | race | incorrect race.shared | correct |" in table(result)


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(
        '{"name": "a", "group": "g", "task": "t", "outcome": "correct", "reason": "", '
        '"message": "", "device": "d", "seconds": 1.0}\n{"name": "b", "gro'
    )
    assert list(read_records(path)) == ["a"]


NCU = """==PROF== Connected to process 1
==PROF== Profiling "transpose": 0%....100% - 1 pass
"ID","Process ID","Kernel Name","Context","Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","coalesced(const float *, float *)","1","m","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","","32"
"0","1","coalesced(const float *, float *)","1","m","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","sector","1,128"
"0","1","coalesced(const float *, float *)","1","m","other.sum","","5"
"1","1","void transpose<(int)33>(const float *, float *)","1","m","l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum","","n/a"
"1","1","void transpose<(int)33>(const float *, float *)","1","m","l1tex__t_requests_pipe_lsu_mem_global_op_st.sum","","32.0"
"""


def test_ncus_csv_is_read():
    assert parse_ncu_csv(NCU) == [
        Launch("coalesced", {"global_load_requests": 32.0, "global_load_sectors": 1128.0}),
        Launch("transpose<33>", {"global_store_requests": 32.0}),
    ]
    assert parse_ncu_csv("==ERROR== The user does not have permission") == []


def test_counts_agree_within_a_tenth_or_one():
    emulator = [
        Launch(
            "k",
            {
                "global_load_requests": 100.0,
                "global_load_sectors": 400.0,
                "global_store_requests": 0.0,
                "shared_load_wavefronts": 3.0,
                "shared_load_conflicts": 992.0,
            },
        )
    ]
    gpu = [
        Launch(
            "k<1>",
            {
                "global_load_requests": 100.0,
                "global_load_sectors": 436.0,
                "global_store_requests": 0.0,
                "shared_load_wavefronts": 4.0,
                "shared_load_conflicts": 800.0,
            },
        )
    ]
    rows = {row.count: row for row in compare_counts(emulator, gpu)}
    assert {name for name, row in rows.items() if not row.agrees} == {"shared_load_conflicts"}
    assert rows["global_load_sectors_per_request"].gpu == 4.36
    assert "global_store_requests" not in rows
    with pytest.raises(UsageError, match="expected k, got other"):
        compare_counts(emulator, [Launch("other", {})])
    with pytest.raises(UsageError, match="expected counts of 1 launches, got 0"):
        compare_counts(emulator, [])


def test_the_suites_functions_are_found():
    found = dict(functions())
    assert len(found) >= 20
    assert found["run_shared_vectors"]
    assert not found["run_coalesced"]
