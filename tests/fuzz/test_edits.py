"""Whatever an agent says: an edit script, or an `EditError`; and no file outside the workspace."""

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgym.edits import EditScript, Replace, UnifiedDiff, WriteFile, parse, render
from kernelgym.errors import EditError
from kernelgym.workspace import SUFFIXES, Workspace, check_path
from tests.fuzz.strategies import FUZZ, LINES, TEXT, lines_of

START = Workspace({"model_new.py": "a = 1\nb = 2\n\n\nc = 3\n", "kernels/k.cu": "int x;\nint y;\n"})

# Pieces of every form that the parser knows, and of what comes close.
PIECES = st.sampled_from(
    [
        "```python model_new.py",
        "```",
        "~~~cuda kernels/k.cu",
        "~~~~",
        "```diff",
        "```python",
        "# model_new.py",
        "// kernels/k.cu",
        "<<<<<<< SEARCH",
        "<<<<<<< SEARCH model_new.py",
        "=======",
        ">>>>>>> REPLACE",
        "--- a/model_new.py",
        "+++ b/model_new.py",
        "--- /dev/null",
        "+++ /dev/null",
        "+++ b/../../etc/passwd",
        "@@ -1,2 +1,2 @@",
        "@@ -0,0 +1,9 @@",
        "@@ -1 +1 @@",
        "@@ -999999999,1 +1,999999999 @@",
        " a = 1",
        "-a = 1",
        "+a = 2",
        "\\ No newline at end of file",
        "a = 1",
        "b = 2",
        "submit",
        "<think>",
        "</think>",
        "```python /etc/passwd.py",
        "```python ../model_new.py",
        "```python C:\\x.py",
        "```python kernels//x.cu",
        "```python .hidden.py",
        "```python -o.py",
        "```python reference.py",
    ]
)
ACTIONS = st.one_of(TEXT, LINES, lines_of(st.one_of(PIECES, PIECES, TEXT)))
PATHS = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(["..", ".", "", "a", "~", "/", "k.cu", "C:", "\\", "%2e%2e", "b\n", "-x"]),
        max_size=5,
    ).map("/".join),
)


@FUZZ
@given(ACTIONS)
def test_every_text_is_a_script_or_an_edit_error(text):
    try:
        script = parse(text)
        after = script.apply(START)
    except EditError:
        return
    assert isinstance(script, EditScript)
    assert after == START or after.parent == START
    for path in after.files:
        assert check_path(path) == path


@FUZZ
@given(PATHS, st.sampled_from(["", *SUFFIXES]))
def test_no_accepted_path_leaves_the_workspace(path, suffix):
    path += suffix
    try:
        check_path(path)
    except EditError:
        return
    pure = pathlib.PurePosixPath(path)
    assert not pure.is_absolute()
    assert not {"..", "", "."} & set(path.split("/"))
    assert "\\" not in path
    assert "\n" not in path


@FUZZ
@given(st.dictionaries(PATHS.map(lambda path: path + ".cu"), st.text(max_size=50), max_size=4))
def test_files_of_a_workspace_lie_in_its_folder(tmp_path_factory, files):
    folder = tmp_path_factory.getbasetemp()
    try:
        workspace = Workspace(files)
    except EditError:
        return
    for path in workspace.files:
        assert (folder / path).resolve().is_relative_to(folder.resolve())


EDITS = st.one_of(
    st.builds(
        WriteFile, st.sampled_from(["model_new.py", "kernels/new.cuh"]), st.text(max_size=200)
    ),
    st.builds(
        Replace,
        path=st.just("model_new.py"),
        search=st.sampled_from(["a = 1\n", "b = 2\n", "c = 3\n"]),
        replace=st.text(max_size=60),
    ),
    st.builds(
        UnifiedDiff,
        st.just("--- a/model_new.py\n+++ b/model_new.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"),
    ),
)


@FUZZ
@given(st.lists(EDITS, min_size=1, max_size=3))
def test_what_is_rendered_is_read_back(edits):
    try:
        text = render(*edits)
    except EditError:
        return
    assert parse(text).edits == tuple(edits)


@pytest.mark.parametrize(
    "piece", ["```python\n", "<<<<<<< SEARCH\n", "<think>", "@@ -1 +1 @@\n", "`"]
)
def test_a_long_text_takes_no_long_time(piece):
    text = piece * (400_000 // len(piece))
    with pytest.raises(EditError):
        parse(text)
