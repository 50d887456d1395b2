"""Python texts, parsed or not."""

import concurrent.futures

import pytest

from kernelgym.toolchain.python_source import parse


def test_a_text_has_a_tree():
    tree = parse("x = 1\n")
    assert tree is not None
    assert len(tree.body) == 1


@pytest.mark.parametrize("text", ["def", "a\0b", "(" * 2000, "-" * 100_000 + "1"])
def test_what_is_no_python_has_none(text):
    assert parse(text) is None


def test_many_threads_parse_at_a_time():
    text = "x = [" + ", ".join(f"f({n})" for n in range(300)) + "]\n"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda _: parse(text), range(64)))
    assert all(tree is not None for tree in trees)
