"""From lines of a string's value to lines of the file."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgym.toolchain.build import SourceFile
from kernelgym.toolchain.sourcemap import Place, SourceMap


def value_of(program: str, name: str = "text") -> str:
    scope: dict[str, str] = {}
    exec(program, scope)
    return scope[name]


def locate(program: str, line: int, column: int = 0, **others: str) -> Place | None:
    files = [SourceFile("m.py", program), *(SourceFile(n, t) for n, t in others.items())]
    return SourceMap(files).locate(value_of(program), line, column)


@pytest.mark.parametrize(
    ("program", "line", "column", "place"),
    [
        ('a = 1\ntext = """\none\ntwo\n"""\n', 2, 1, (3, 1)),
        ('a = 1\ntext = """\none\ntwo\n"""\n', 3, 3, (4, 3)),
        ('text = """one\ntwo"""\n', 1, 2, (1, 12)),
        ('text = r"""one \\n\ntwo"""\n', 2, 1, (2, 1)),
        ('text = """one \\\\n x\ntwo"""\n', 1, 8, (1, 19)),
        ('text = """one\\ntwo\nthree"""\n', 2, 1, (1, 16)),
        ('text = """one\\ntwo\nthree"""\n', 3, 1, (2, 1)),
        ('text = """one \\\ngoes on\ntwo"""\n', 1, 5, (2, 1)),
        ('text = """one \\\ngoes on\ntwo"""\n', 2, 1, (3, 1)),
        ('text = "one\\ntwo\\nthree"\n', 3, 2, (1, 20)),
        ('text = ("one\\n"\n  # a comment\n  "two\\n")\n', 2, 1, (3, 4)),
        ('text = "a" \\\n    "b\\nc"\n', 1, 2, (2, 6)),
        ("text = 'it\\'s \\x0a two'\n", 2, 2, (1, 20)),
        ('é = 1; text = """\nx"""\n', 2, 1, (2, 1)),
    ],
)
def test_string_constants_map_exactly(
    program: str, line: int, column: int, place: tuple[int, int]
) -> None:
    assert locate(program, line, column) == Place("m.py", *place)


def test_a_line_past_the_end_is_the_last() -> None:
    assert locate('text = """a\nb\n"""\n', 9) == Place("m.py", 2, 0)


@pytest.mark.parametrize(
    "program",
    [
        'n = 4\ntext = f"""\nint a = {n};\nfor (;;) {{\n  b();\n}}\n"""\n',
        'n = 4\ntext = """\nint a = %d;\nfor (;;) {\n  b();\n}\n""" % n\n',
        'n = 4\ntext = """\nint a = N;\nfor (;;) {\n  b();\n}\n""".replace("N", "4")\n',
        'n = 4\ntext = """\nint a = 4;\nfor (;;) {\n  b();\n}\n""".strip() + "\\nint c;\\n"\n',
        'import textwrap\ntext = textwrap.dedent("""\n  int a = 4;\n  for (;;) {\n'
        '    b();\n  }\n""")\n',
    ],
)
def test_texts_made_at_run_time_map_by_their_lines(program: str) -> None:
    text = value_of(program)
    line = text.split("\n").index("  b();") + 1
    found = SourceMap([SourceFile("m.py", program)]).locate(text, line, 3)
    assert found is not None
    written = program.split("\n")
    assert written[found.line - 1].strip() == "b();"
    assert written[found.line - 1][found.column - 1 :] == "b();"


def test_a_line_that_was_made_maps_below_the_one_above() -> None:
    program = 'n = 4\ntext = f"""\nfirst();\nint a = {n};\nlast();\n"""\n'
    assert locate(program, 3) == Place("m.py", 4, 0)


def test_whole_files_map_to_themselves() -> None:
    program = "text = open_elsewhere = 'int x;\\nint y;\\n'\n"
    assert locate(program, 2, 5, **{"k.cu": "int x;\nint y;\n"}) == Place("k.cu", 2, 5)


def test_what_is_nowhere_is_not_found() -> None:
    source_map = SourceMap([SourceFile("m.py", "x = 'a'\n")])
    assert source_map.locate("int unrelated;\n", 1) is None
    assert source_map.line_text("m.py", 7) == ""
    assert source_map.line_text("other.py", 1) == ""


def test_a_file_that_does_not_parse_still_has_lines() -> None:
    program = 'text = """\nint a;\n"""\ndef (:\n'
    found = SourceMap([SourceFile("m.py", program)]).locate("\nint a;\n", 2, 1)
    assert found == Place("m.py", 2, 1)


@given(st.text(alphabet="ab\n\\'\"{}% \té", max_size=60), st.booleans())
def test_every_character_is_found_where_it_was_written(value: str, wrapped: bool) -> None:
    literal = repr(value)
    program = f"x = 0\ntext = ({literal}\n)" if wrapped else f"text = {literal}"
    source_map = SourceMap([SourceFile("m.py", program)])
    written = program.split("\n")
    for number, line in enumerate(value.split("\n"), 1):
        for column, character in enumerate(line, 1):
            place = source_map.locate(value, number, column)
            assert place is not None
            rest = written[place.line - 1][place.column - 1 :]
            length = 2 if rest.startswith("\\") else 1
            assert ast.literal_eval(f'"""{rest[:length]} """')[:-1] == character
