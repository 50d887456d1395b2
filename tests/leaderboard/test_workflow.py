"""The workflow that checks and replays entries: what it may do, and what it must not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "verify-entry.yml"


@pytest.fixture
def workflow():
    return yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))


def test_no_script_holds_what_a_stranger_can_choose(workflow):
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "pass it through env: texts would be executed"


def test_a_replay_starts_by_hand_alone_and_with_an_approval(workflow):
    replay = workflow["jobs"]["replay"]
    assert replay["if"] == "github.event_name == 'workflow_dispatch'"
    assert replay["environment"] == "leaderboard"
    assert replay["runs-on"] == ["self-hosted", "gpu"]


def test_it_may_read_and_keeps_no_credentials(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    checkouts = [
        step
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout")
    ]
    assert len(checkouts) == 2
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_submissions_are_checked_by_the_base_branchs_code(workflow):
    scripts = "\n".join(step.get("run", "") for step in workflow["jobs"]["check"]["steps"])
    assert "pip install ../base" in scripts
    assert "kernelgym leaderboard check" in scripts
    assert "verification.json" in scripts
