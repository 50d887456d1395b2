"""Compositions: valid, readable, deterministic, split so that no composition is on both sides."""

import ast
import collections
import itertools
import random
import subprocess
import sys

import pytest
import torch

from kernelgym import tasks
from kernelgym.errors import TaskFormatError, UsageError
from kernelgym.tasks import synthesis
from kernelgym.tasks.synthesis.draft import Draft
from kernelgym.tasks.synthesis.values import BATCH, Layout, Value

COUNT = 600


@pytest.fixture(scope="module")
def drawn():
    return [composition for _, composition in itertools.islice(synthesis.compositions(3), COUNT)]


def as_task(composition, task_id="t"):
    return tasks.Task(task_id, 0, 0, composition.name, task_id, composition.source())


def test_importing_it_imports_no_torch():
    program = "import sys, kernelgym.tasks.synthesis as s; assert 'torch' not in sys.modules, s"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_catalogue_has_distinct_operators_of_every_kind():
    names = [operator.name for operator in synthesis.OPERATORS]
    assert len(names) == len(set(names)) > 120
    families = {operator.family for operator in synthesis.OPERATORS}
    assert {
        "rectifier", "smooth", "reduction", "softmax", "normalisation", "linear", "matmul",
        "convolution1d", "convolution2d", "convolution3d", "transposed2d", "pooling", "loss", "scan",
    } <= families  # fmt: skip


def test_a_number_determines_its_composition_and_starting_later_changes_nothing(drawn):
    again = [c for _, c in itertools.islice(synthesis.compositions(3, start=100), 20)]
    assert again == drawn[100:120]
    other = [c for _, c in itertools.islice(synthesis.compositions(4), 20)]
    assert other != drawn[:20]


def test_two_operators_dominate_as_in_the_paper(drawn):
    lengths = collections.Counter(len(composition.operators) for composition in drawn)
    assert set(lengths) <= {1, 2, 3, 4, 5}
    assert 0.75 < lengths[2] / COUNT < 0.92


def test_lengths_can_be_chosen():
    only_four = [c for _, c in itertools.islice(synthesis.compositions(0, (0, 0, 0, 1)), 30)]
    assert {len(composition.operators) for composition in only_four} == {4}


@pytest.mark.parametrize("lengths", [(), (0, 0), (1, -1), (1,) * 6])
def test_lengths_that_are_none(lengths):
    with pytest.raises(UsageError, match="lengths: expected weights"):
        synthesis.compose(random.Random(0), lengths)


@pytest.mark.parametrize("operator", synthesis.OPERATORS, ids=lambda operator: operator.name)
def test_every_operator_runs_wherever_its_shape_rule_accepts(operator):
    """The rule's promise: what it accepts runs at both sizes, and has the shape it says."""
    accepted = 0
    for seed, layout in itertools.product(range(2), list(Layout)[2:]):
        draft = Draft(random.Random(seed))
        batch = draft.dim(BATCH, 2, 3)
        extents = {
            Layout.MATRIX: ((24, 16),),
            Layout.SEQUENCE: ((12, 10), (24, 16)),
            Layout.SIGNAL: ((16, 8), (20, 17)),
            Layout.IMAGE: ((16, 8), (14, 12), (12, 13)),
            Layout.VOLUME: ((16, 8), (8, 8), (9, 10), (10, 9)),
        }[layout]
        dims = [draft.dim(f"extent_{n}", *pair) for n, pair in enumerate(extents)]
        draft.start(Value(layout, (batch, *dims), nonnegative=True))
        if not operator.accepts(draft.value):
            draft.value = draft.value.replace(nonnegative=False)
        if not operator.accepts(draft.value):
            continue
        accepted += 1
        operator.apply(draft)
        composition = synthesis.Composition(
            (operator.name,), (operator.family,), layout, ((),), draft.presets, draft.constants,
            tuple(draft.inputs), tuple(draft.init), tuple(draft.forward),
        )  # fmt: skip
        for position, size in enumerate(("full", "small")):
            expected = tuple(dim.extents[position] for dim in draft.value.dims)
            module = as_task(composition).module(size)
            output = module.Model(*module.get_init_inputs())(*module.get_inputs())
            assert tuple(output.shape) == expected, composition.source()
            if draft.value.nonnegative:
                assert output.min() >= 0, composition.source()
    assert accepted


def test_compositions_are_task_files_that_run_without_values(drawn):
    for composition in drawn[:25]:
        task = as_task(composition)
        assert task.sizes == ("small", "full")
        for size in task.sizes:
            (shape, _), *more = task.facts(size).outputs
            assert not more
            assert not shape or shape[0] == task.file.presets[size][BATCH], composition.source()


def test_sources_are_readable(drawn):
    for composition in drawn:
        source = composition.source()
        tree = ast.parse(source)
        assert max(map(len, source.splitlines())) <= 100
        (model,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
        assigned = [
            node.attr
            for node in ast.walk(model)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        ]
        assert len(assigned) == len(set(assigned)), source
        for preset in composition.presets:
            assert source.count(preset) >= 3, f"{preset} is set but not used:\n{source}"
        if "F." not in source:
            assert "functional" not in source


def test_generated_sources_are_formatted_as_the_project_is(drawn, tmp_path):
    pytest.importorskip("ruff")
    for number, composition in enumerate(drawn[:100]):
        (tmp_path / f"t{number}.py").write_text(composition.source())
    subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=100", "--check", "."],
        cwd=tmp_path,
        check=True,
    )


def test_structure_ignores_the_batch_and_nothing_else(drawn):
    composition = drawn[0]
    assert composition.with_batch(4096).structure == composition.structure
    assert composition.with_batch(4096).source() != composition.source()
    by_structure = collections.defaultdict(set)
    for each in drawn:
        by_structure[each.structure].add((each.operators, each.options, each.layout))
    assert all(len(kinds) == 1 for kinds in by_structure.values())
    assert len(by_structure) > 0.95 * COUNT


def test_a_composition_is_on_one_side_whatever_the_order_and_a_fifth_is_held_out(drawn):
    side = {}
    for composition in drawn:
        assert side.setdefault(composition.composition, composition.split) == composition.split
    share = sum(split == synthesis.HELD_OUT for split in side.values()) / len(side)
    assert 0.13 < share < 0.27
    assert synthesis.split_of(("pooling", "linear")) == synthesis.split_of(("linear", "pooling"))


def test_similarity_sees_through_names_and_tells_programs_apart():
    program = as_task(synthesis.compose(random.Random(1))).text
    tokens = synthesis.syntax_tokens(program)
    renamed = (
        program.replace("in_features", "width").replace("x", "tensor").replace("tensort", "xt")
    )
    other = synthesis.syntax_tokens(tasks.get("L3/9").text)
    assert synthesis.similarity(tokens, tokens) == 1.0
    assert synthesis.similarity(tokens, other) < 0.5
    assert synthesis.closest(tokens, {"same": tokens, "other": other}, above=0.9) == ("same", 1.0)
    assert synthesis.closest(tokens, {"other": other}, above=0.9) is None
    assert "class Model" in renamed


def test_a_renamed_task_of_the_catalogue_is_found_again():
    text = tasks.get("L2/1").text
    renamed = text.replace("self.conv", "self.layer").replace("bias", "offset").replace("x", "y")
    renamed = renamed.replace(
        "import torch\nfrom torch import nn", "import torch\nfrom torch import nn"
    )
    known = {task_id: synthesis.syntax_tokens(tasks.get(task_id).text) for task_id in tasks.ids(2)}
    name, ratio = synthesis.closest(synthesis.syntax_tokens(renamed), known, above=0.9)
    assert (name, ratio) == ("L2/1", 1.0)


@pytest.mark.parametrize(
    ("text", "message"), [("x = (", "Python source"), ("x = 1", "class Model")]
)
def test_similarity_of_what_is_no_program(text, message):
    with pytest.raises(TaskFormatError, match=message):
        synthesis.syntax_tokens(text)


def test_torch_is_needed_only_to_run(drawn):
    assert torch.equal(
        as_task(drawn[0]).draw_inputs("small", 1)[0], as_task(drawn[0]).draw_inputs("small", 1)[0]
    )
