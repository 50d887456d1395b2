from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgym import edits
from kernelgym.edits import EditScript, Replace, Submit, UnifiedDiff, WriteFile, parse, render
from kernelgym.errors import EditError
from kernelgym.workspace import Workspace

MODEL = "import torch\n\n\nclass ModelNew:\n    def forward(self, x):\n        return x\n"
START = Workspace({"model_new.py": MODEL, "kernels/relu.cu": "int a;\nint b;\nint a;\n"})


def apply(text: str, start: Workspace = START) -> dict[str, str]:
    return dict(parse(text).apply(start).files)


# Lines that are most likely to be mistaken for structure.
TRICKY = st.sampled_from(
    [
        *("```", "````python x.py", "~~~", "=======", "<<<<<<< SEARCH", ">>>>>>> REPLACE"),
        *("submit", "<think>", "</think>", "--- a/x.cu", "+++ b/x.cu", "@@ -1 +1 @@", "", " "),
        *("model_new.py", "\x0c", "\u2028", "\x85", "\ud800", "\0", "\u202e", "========"),
        *("<<<<<<<< SEARCH", "  ```", "submit ", "x.cu", "```diff", "\\ No newline"),
    ]
)
TEXTS = st.lists(TRICKY | st.text(max_size=12), max_size=8).map("\n".join)
PATHS = st.sampled_from(["model_new.py", "kernels/x.cu", "a/b.cuh", "h.hpp"])


def _buildable(build):
    def attempt(arguments):
        try:
            return build(*arguments)
        except EditError:
            return None

    return attempt


EDITS = st.one_of(
    st.tuples(PATHS, TEXTS).map(_buildable(WriteFile)),
    st.tuples(PATHS, TEXTS, TEXTS).map(_buildable(Replace)),
    TEXTS.map(lambda text: UnifiedDiff(f"--- a/x.cu\n+++ b/x.cu\n{text}")),
    st.just(Submit()),
).filter(lambda edit: edit is not None)


@settings(max_examples=300, deadline=None)
@given(st.lists(EDITS, min_size=1, max_size=4))
def test_builders_and_texts_say_the_same(script):
    assert parse(render(*script)).edits == tuple(script)


@settings(max_examples=300, deadline=None)
@given(TEXTS | st.text(st.characters()))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(EditError):
        assert parse(text).apply(START).reference == START.reference


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("```python model_new.py\nx = 1\n```", "model_new.py"),
        ("```python:model_new.py\nx = 1\n```", "model_new.py"),
        ('```python title="model_new.py"\nx = 1\n```', "model_new.py"),
        ("```model_new.py\nx = 1\n```", "model_new.py"),
        ("```cuda kernels/x.cu\nx = 1\n```", "kernels/x.cu"),
        ("~~~cuda kernels/x.cu\nx = 1\n~~~", "kernels/x.cu"),
        ("kernels/x.cu\n```cuda\nx = 1\n```", "kernels/x.cu"),
        ("**kernels/x.cu**\n\n```cpp\nx = 1\n```", "kernels/x.cu"),
        ("### File: `kernels/x.cu`:\n```cuda\nx = 1\n```", "kernels/x.cu"),
        ("Now I write `kernels/x.cu`:\n```cuda\nx = 1\n```", "kernels/x.cu"),
        ("Here is the code:\n```python\nx = 1\n```\nIt is fast.", "model_new.py"),
        ("```python model_new.py\r\nx = 1\r\n```\r\n", "model_new.py"),
        ("thoughts</think>\n```python\nx = 1\n```", "model_new.py"),
        ("<think>```python\nx = 2\n```</think>\n```python\nx = 1\n```", "model_new.py"),
        ("So. <think>a\n```\n</think>```python\nx = 1\n```", "model_new.py"),
        ("```bash\nmake\n```\n```py\nx = 1\n```", "model_new.py"),
    ],
)
def test_ways_to_write_a_whole_file(text, path):
    assert apply(text)[path] == "x = 1\n"


def test_a_comment_on_the_first_line_names_the_file():
    files = apply(
        "```cuda\n// kernels/x.cu\nint x;\n```\n```python\n# File: model_new.py\ny = 1\n```"
    )
    assert files["kernels/x.cu"] == "// kernels/x.cu\nint x;\n"
    assert files["model_new.py"] == "# File: model_new.py\ny = 1\n"


def test_of_several_python_blocks_the_one_with_the_class_is_the_model():
    text = "```python\nimport torch\n```\nso\n```python\nclass ModelNew: pass\n```"
    assert apply(text)["model_new.py"] == "class ModelNew: pass\n"
    with pytest.raises(EditError, match="2 fenced blocks name no file"):
        parse("```python\na = 1\n```\n```python\nb = 1\n```")


def test_a_model_without_path_beside_a_file_with_one():
    text = "```cuda k.cu\nint x;\n```\n```python\nclass ModelNew: pass\n```\nsubmit"
    script = parse(text)
    assert script.submits
    assert set(script.apply(START).files) == {"k.cu", "model_new.py", "kernels/relu.cu"}
    explained = parse(
        "model_new.py\n<<<<<<< SEARCH\nimport torch\n=======\nimport os\n"
        ">>>>>>> REPLACE\nas in\n```python\nclass ModelNew: ...\n```"
    )
    assert [type(edit) for edit in explained.edits] == [Replace]


@pytest.mark.parametrize(
    "text",
    [
        "model_new.py\n<<<<<<< SEARCH\nimport torch\n=======\nimport os\n>>>>>>> REPLACE",
        "`model_new.py`\n\n<<<<<<< SEARCH\nimport torch\n=======\nimport os\n>>>>>>> REPLACE",
        "<<<<<<< SEARCH\nimport torch\n=======\nimport os\n>>>>>>> REPLACE",
        "model_new.py\n```python\n<<<<<<< SEARCH\nimport torch\n=======\nimport os\n"
        ">>>>>>> REPLACE\n```",
        "```python model_new.py\n<<<<<<< SEARCH\nimport torch\n=======\nimport os\n"
        ">>>>>>> REPLACE\n```",
        "```diff\nmodel_new.py\n<<<<<<< SEARCH\nimport torch\n=======\nimport os\n"
        ">>>>>>> REPLACE\n```",
        "--- a/model_new.py\n+++ b/model_new.py\n@@ -1,2 +1,2 @@\n-import torch\n+import os\n \ndone",
        "```diff\n--- a/model_new.py\n+++ b/model_new.py\n@@ -9 +9 @@\n-import torch\n"
        "+import os\n```",
        "```\n--- model_new.py\n+++ model_new.py\n@@ -1 +1 @@\n-import torch\n+import os\n```",
    ],
)
def test_ways_to_replace_a_passage(text):
    assert apply(text)["model_new.py"] == MODEL.replace("import torch", "import os")


def test_several_passages_of_one_fence_keep_its_path():
    block = "<<<<<<< SEARCH\nint {0};\n=======\nlong {0};\n>>>>>>> REPLACE\n"
    text = (
        f"```cuda kernels/relu.cu\n{block.format('b')}\n{block.format('b').replace('int', 'x')}```"
    )
    script = parse(text)
    assert [edit.path for edit in script.edits] == ["kernels/relu.cu"] * 2


def test_search_matches_whole_lines_only():
    with pytest.raises(EditError, match="not found"):
        apply("<<<<<<< SEARCH\nmport torch\n=======\nx\n>>>>>>> REPLACE")
    with pytest.raises(EditError, match="not found"):
        apply("<<<<<<< SEARCH\nimport\n=======\nx\n>>>>>>> REPLACE")


def test_not_found_names_the_closest_passage_and_its_line():
    with pytest.raises(EditError) as caught:
        Replace("model_new.py", "class ModelNew:\n  def forward(self, x):\n", "").apply(START)
    message = str(caught.value)
    assert "not found" in message
    assert "Closest is line 4:\nclass ModelNew:\n    def forward(self, x):" in message
    assert "Line 5 is" in message
    assert "only white space differs" in message
    with pytest.raises(EditError, match=r"(?s)Closest is line 6:.*return x.*asked for was.*y"):
        Replace("model_new.py", "        return y", "").apply(START)
    with pytest.raises(EditError, match="Nothing in the file comes close"):
        Replace("model_new.py", "$$$$", "").apply(START)


def test_found_twice_names_both_places():
    with pytest.raises(EditError, match=r"found 2 times \(at lines 1, 3\)"):
        Replace("kernels/relu.cu", "int a;", "").apply(START)


def test_an_empty_search_fills_a_file_that_is_empty_or_missing():
    assert Replace("new.cu", "", "int x;").apply(START).files["new.cu"] == "int x;\n"
    with pytest.raises(EditError, match="SEARCH is empty"):
        Replace("model_new.py", "", "x").apply(START)
    with pytest.raises(EditError, match=r"no such file; the workspace has kernels/relu\.cu"):
        Replace("new.cu", "a", "b").apply(START)


def test_a_diff_creates_and_deletes():
    text = (
        "--- /dev/null\n+++ b/new.cu\n@@ -0,0 +1,2 @@\n+int x;\n+int y;\n"
        "--- a/kernels/relu.cu\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-int a;\n-int b;\n-int a;\n"
    )
    files = apply(text)
    assert files["new.cu"] == "int x;\nint y;\n"
    assert "kernels/relu.cu" not in files


def test_hunks_find_the_line_they_name_among_equals():
    text = "--- a/kernels/relu.cu\n+++ b/kernels/relu.cu\n@@ -3 +3 @@\n-int a;\n+int c;\n"
    assert apply(text)["kernels/relu.cu"] == "int a;\nint b;\nint c;\n"
    two = (
        "--- a/kernels/relu.cu\n+++ b/kernels/relu.cu\n@@ -1 +1 @@\n-int a;\n+int c;\n"
        "@@ -2,0 +3 @@\n+int n;\n@@ -3 +4 @@\n-int a;\n+int d;\n"
    )
    assert apply(two)["kernels/relu.cu"] == "int c;\nint b;\nint n;\nint d;\n"


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        ("@@ -1 +1 @@\n-no such\n+x\n", "hunk 1 .* does not match"),
        ("@@ -2 +2 @@\n-int a;\n+x\n", "hunk 1 .at line 2. does not match"),
        ("@@ -1,9 +1,9 @@\n int a;\n", "cannot be read: Hunk is shorter"),
        (f"@@ -{'9' * 5000} +1 @@\n-a\n+b\n", "cannot be read|at least one hunk"),
        ("", "at least one hunk"),
    ],
)
def test_a_diff_that_does_not_fit_says_why(diff, message):
    text = f"```diff\n--- a/kernels/relu.cu\n+++ b/kernels/relu.cu\n{diff}```"
    with pytest.raises(EditError, match=message):
        parse(text).apply(START)


@pytest.mark.parametrize(
    "text",
    [
        "```python ../x.py\n```",
        "```python /etc/x.py\n```",
        "```text notes.txt\n```",
        "```python reference.py\n```",
        "reference.py\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE",
        "--- a/../../x.py\n+++ b/../../x.py\n@@ -1 +1 @@\n-a\n+b\n",
        "--- /dev/null\n+++ b/reference.py\n@@ -0,0 +1 @@\n+a\n",
        "--- a/reference.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
    ],
)
def test_paths_cannot_leave_the_workspace(text):
    with pytest.raises(EditError, match=r"path|read-only|name ending"):
        parse(text).apply(START)


def test_all_or_nothing():
    script = EditScript((WriteFile("a.cu", "x"), Replace("model_new.py", "nope", "")))
    with pytest.raises(EditError, match=r"edit 2 of 2: model_new\.py: SEARCH not found"):
        script.apply(START)
    assert "a.cu" not in START.files


def test_one_text_makes_one_snapshot():
    after = EditScript((WriteFile("a.cu", "x"), WriteFile("b.cu", "y"))).apply(START)
    assert after.parent is START
    assert EditScript((Submit(),)).apply(START) is START


@pytest.mark.parametrize(
    "text", ["submit", " Submit. ", "`submit`", "Done.\n\nsubmit\n", "```\nsubmit\n```"]
)
def test_submit_is_a_line_of_its_own(text):
    assert parse(text).edits == (Submit(),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no edit found"),
        ("I would submit this.", "no edit found"),
        ("<think>submit", "<think> is never closed"),
        ("```python model_new.py\nx = 1", "line 1: the fenced block .* is never closed"),
        ("<<<<<<< SEARCH\nx\n", "has no ======= line"),
        ("<<<<<<< SEARCH\nx\n=======\ny\n", "has no REPLACE line"),
        ("```cuda\nint x;\n```", "1 fenced blocks name no file"),
        ("submit\n" * 300, "at most 256 edits"),
        ("x" * (edits.MAX_ACTION_LENGTH + 1), "expected at most 16777216 characters"),
    ],
)
def test_what_cannot_be_read_says_why(text, message):
    with pytest.raises(EditError, match=message):
        parse(text)


@pytest.mark.parametrize(
    "line",
    [
        *("`", "```\n", "\n", "<think>", "<think></think>", "<<<<<<< SEARCH\n", "--- a\n+++ b\n"),
        *("model_new.py\n", "\ud800\u202e\0", "```python x.py\n```\n", "x.cu\n\n", "</think>"),
        *("<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n", "@@ -1 +1 @@\n", "a" * 99 + "\n", "\\/*"),
    ],
)
def test_ten_megabytes_take_linear_time(line):
    text = line * (10_000_000 // len(line))
    started = time.perf_counter()
    with pytest.raises(EditError):
        parse(text).apply(START)
    assert time.perf_counter() - started < 8  # quadratic would be hours


def test_a_search_in_a_large_file_takes_bounded_time():
    large = Workspace({"a.cu": "int value = compute(1);\n" * 40_000})
    started = time.perf_counter()
    with pytest.raises(EditError, match="found 20 times"):
        Replace("a.cu", "int value = compute(1);\n" * 20_000, "").apply(large)
    with pytest.raises(EditError, match="Closest is line 1"):
        Replace("a.cu", "int value = compute(2);\n" * 20_000, "").apply(large)
    assert time.perf_counter() - started < 3
