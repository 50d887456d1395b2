"""What `doctor` says of drivers and of ways to build."""

import pytest

from kernelgym.ways import driver_finding, ways


@pytest.mark.parametrize(
    ("nvcc", "supported", "status", "words"),
    [
        ("V13.0.88", 13000, "ok", "supports CUDA 13.0; nvcc V13.0.88 needs 580.65.06 or newer"),
        ("V12.8.61", 13000, "ok", "needs 525.60.13"),
        ("V13.0.88", 12040, "optional", "supports CUDA 12.4, too old"),
        ("V13.0.88", None, "optional", "runs with driver 580.65.06 or newer"),
    ],
)
def test_a_driver_must_know_nvccs_major_version(nvcc, supported, status, words):
    finding = driver_finding(nvcc, supported)
    assert finding.status == status
    assert words in finding.detail
    assert bool(finding.remedy) == (status != "ok")


def test_the_ways_and_packages_are_told():
    names = [finding.name for finding in ways()]
    assert names[-2:] == ["ways to build", "kernel packages"]
    assert all(finding.status != "missing" for finding in ways())
