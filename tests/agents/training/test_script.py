import pytest

from kernelgym.agents.training.script import Schedules, ScriptError, read


@pytest.fixture(scope="module")
def softmax(make_source):
    return Schedules.of(make_source("torch.relu(F.softmax(x, dim=1))", (7, 40)))


def test_words_are_read():
    script = read(("k1", "block=64", "team=warp", "stop"))
    assert script.assignments == ((1, "block", 64), (1, "team", "warp"))
    assert script.stops


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "at its end, got 'nothing'"),
        (("k0", "block=64"), "at its end, got 'block=64'"),
        (("block=64", "run"), "a kernel before 'block=64'"),
        (("k0", "run", "run"), "KNOB=VALUE, got 'run'"),
        (("k0", "block=63", "run"), "KNOB=VALUE, got 'block=63'"),
    ],
)
def test_what_is_no_script_is_refused(words, message):
    with pytest.raises(ScriptError, match=message):
        read(words)


def test_a_script_changes_what_it_says_and_renders_to_cuda(softmax):
    after = softmax.apply(softmax.default, read(("k0", "team=block", "block=64", "run")))
    assert dict(after) == {"forward.rows_0.team": "block", "forward.rows_0.block": 64}
    text = softmax.text(after)
    assert "__launch_bounds__(64)" in text
    assert "class ModelNew" in text
    assert text != softmax.text(softmax.default)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("k1", "block=64", "run"), "one of 1 kernels"),
        (("k0", "tile=16x16x1x1", "run"), "a knob of k0, got tile"),
    ],
)
def test_a_script_must_fit_the_program(softmax, words, message):
    with pytest.raises(ScriptError, match=message):
        softmax.apply(softmax.default, read(words))


def test_a_value_that_a_template_lacks_is_refused_but_any_block_is_written(make_source):
    odd = Schedules.of(make_source("x + 1", (7, 7)))
    with pytest.raises(ScriptError, match="width of 1, got 4"):
        odd.apply(odd.default, read(("k0", "width=4", "run")))
    text = odd.text(odd.apply(odd.default, read(("k0", "block=2048", "run"))))
    assert "__launch_bounds__(2048)" in text


def test_the_words_between_two_schedules_lead_from_one_to_the_other(softmax):
    space = list(softmax.space())
    assert space[0] == softmax.default
    assert len(set(space)) == len(space)
    for after in space:
        script = read(softmax.words(space[3], after))
        assert softmax.apply(space[3], script) == after


def test_programs_of_too_many_kernels_are_refused(make_source):
    chain = "x"
    for _ in range(9):
        chain = f"torch.cumsum({chain}, 1)"
    with pytest.raises(ScriptError, match="at most 8 kernels, got 9"):
        Schedules.of(make_source(chain, (4, 5)))


def test_most_tasks_of_level_1_and_2_can_be_scheduled():
    """Of every tenth task."""
    from kernelgym import tasks
    from kernelgym.agents.training.pipeline import expressible

    some = tuple(tasks.get(name) for level in (1, 2) for name in tasks.ids(level)[::10])
    assert len(expressible(some, "small")) >= 16
