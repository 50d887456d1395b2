"""Tasks from elsewhere: KernelBench's checkout and data sets, single files, lines of JSON.

Reading parses and runs nothing: what is read may be anyone's. `kernelgym.judge.vet` runs it, in a
confined process, before anything else does.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from kernelgym.errors import TaskFormatError, UsageError
from kernelgym.tasks import format as task_format
from kernelgym.tasks import records
from kernelgym.tasks.task import Task, load_file

__all__ = ["HUB_SOURCES", "Loaded", "Rejection", "load"]

HUB_SOURCES = ("ScalingIntelligence/KernelBench", "BytedTsinghua-SIA/CUDA-Agent-Ops-6K")
"""Data sets whose columns are known."""

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_LEVEL_FILE = re.compile(r"(\d+)_(\w+)\.py")
_TABLES = (".parquet", ".jsonl", ".json")

Row: TypeAlias = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Rejection:
    """A row that is not a task that can be used.

    Attributes:
        where: Where it comes from: a file with a line or row number, or a task id.
        reason: A stable code, such as `"format"`; `kernelgym.judge.vet` has more.
        message: What was expected and what came.
    """

    where: str
    reason: str
    message: str


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What a source holds. Iterates over its tasks.

    Attributes:
        tasks: The tasks, in the source's order, not yet vetted.
        rejected: The rows that are no tasks.
    """

    tasks: tuple[Task, ...]
    rejected: tuple[Rejection, ...]

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[index]


def load(source: str | pathlib.Path) -> Loaded:
    """Reads tasks from elsewhere. They are parsed, not run.

    Args:
        source: One of

            * a checkout of KernelBench, or its folder that holds `level1`, `level2`, …;
            * a file of Python in KernelBench's form;
            * a `.jsonl` file whose lines are tasks (`kernelgym.tasks.records.TaskRecord`), or rows
              of one of the two data sets;
            * a `.parquet` file, or a folder of such files, with rows of one of the two data sets;
            * the name of a data set of the Hugging Face Hub that has their columns, such as
              `"ScalingIntelligence/KernelBench"` or `"BytedTsinghua-SIA/CUDA-Agent-Ops-6K"`. This
              and the one before need `pip install 'kernelgym[datasets]'`.

    Returns:
        The tasks, and the rows that are none with the reason.

    Raises:
        UsageError: There is no such source, or its reader is not installed.
        TaskFormatError: The source holds no task at all.
    """
    path = pathlib.Path(source)
    if path.is_dir():
        levels = _level_folders(path)
        loaded = _collect(_checkout(levels) if levels else _table_rows(path))
    elif path.is_file():
        loaded = _collect(_file(path))
    elif _HUB_NAME.fullmatch(str(source)) and not str(source).endswith((".py", *_TABLES)):
        loaded = _collect(_data_set(str(source), str(source)))
    else:
        raise UsageError(
            f"source: expected a folder, a .py, .jsonl or .parquet file, or a data set such as "
            f"{HUB_SOURCES[0]!r}, got {str(source)!r}, which is none of them"
        )
    if not loaded.tasks:
        why = "".join(f"; {row.where}: {row.message}" for row in loaded.rejected[:1])
        raise TaskFormatError(
            f"{source}: expected at least one task, got none in {len(loaded.rejected)} row(s){why}"
        )
    return loaded


Entry: TypeAlias = tuple[str, Callable[[], Task]]


def _collect(entries: Iterable[Entry]) -> Loaded:
    """Reads each row; one that is no task is noted, and so is an id that comes twice."""
    tasks: dict[str, Task] = {}
    rejected: list[Rejection] = []
    for where, read in entries:
        try:
            task = read()
            task_format.parse(task.text, where)
        except TaskFormatError as error:
            rejected.append(Rejection(where, "format", str(error)))
            continue
        if task.id in tasks:
            message = f"id: expected a new one, got {task.id!r} again"
            rejected.append(Rejection(where, "duplicate", message))
            continue
        tasks[task.id] = task
    return Loaded(tuple(tasks.values()), tuple(rejected))


def _level_folders(path: pathlib.Path) -> list[tuple[int, pathlib.Path]]:
    """The folders `level1`, … of a checkout, or of its inner folder `KernelBench`."""
    for folder in (path, path / "KernelBench"):
        levels = [(n, folder / f"level{n}") for n in range(1, 10)]
        if found := [(n, level) for n, level in levels if level.is_dir()]:
            return found
    return []


def _checkout(levels: list[tuple[int, pathlib.Path]]) -> Iterator[Entry]:
    for level, folder in levels:
        numbered = (
            (int(match[1]), path)
            for path in folder.iterdir()
            if (match := _LEVEL_FILE.fullmatch(path.name))
        )
        for number, path in sorted(numbered):
            yield (
                str(path),
                lambda path=path, level=level, number=number: dataclasses.replace(  # type: ignore[misc]
                    load_file(path), id=f"kernelbench/L{level}/{number}"
                ),
            )


def _file(path: pathlib.Path) -> Iterator[Entry]:
    if path.suffix == ".py":
        yield str(path), lambda: load_file(path)
    elif path.suffix == ".jsonl":
        for number, line in records.numbered_lines(path):
            where = f"{path}:{number}"
            yield where, lambda line=line, where=where: _line(line, where, path)  # type: ignore[misc]
    elif path.suffix == ".parquet":
        yield from _data_set("parquet", str(path), data_files=str(path))
    else:
        raise UsageError(f"{path}: expected a .py, .jsonl or .parquet file, got {path.suffix!r}")


def _line(line: bytes, where: str, path: pathlib.Path) -> Task:
    """One line of JSON: a task of ours, or a row of a data set."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise TaskFormatError(f"{where}: expected a task as a JSON object, got: {error}") from error
    if isinstance(row, dict) and "code" in row and "text" not in row:
        return _row_task(row, path.stem, where)
    return records.decode(line, where).task(where)


def _table_rows(path: pathlib.Path) -> Iterator[Entry]:
    if not any(file.suffix in _TABLES for file in path.rglob("*")):
        raise UsageError(
            f"{path}: expected a folder with level1, level2, … or with .parquet or .jsonl files, "
            "got neither"
        )
    return _data_set(str(path), str(path))


def _data_set(name: str, shown: str, **arguments: Any) -> Iterator[Entry]:
    """The rows of every split, through the `datasets` library."""
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{shown}: reading it needs the extra: pip install 'kernelgym[datasets]'"
        ) from error
    try:
        splits = datasets.load_dataset(name, **arguments)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise UsageError(f"{shown}: expected a data set that can be read, got: {error}") from error
    stem = pathlib.Path(shown).stem if pathlib.Path(shown).exists() else shown.split("/")[-1]
    for split, rows in splits.items():
        for index, row in enumerate(rows):
            where = f"{shown}[{split}:{index}]"
            row_id = f"{stem}/{split}/{index}"
            yield (
                where,
                lambda row=row, where=where, row_id=row_id: _row_task(  # type: ignore[misc]
                    row, row_id, where, numbered=False
                ),
            )


def _row_task(row: Row, prefix: str, where: str, *, numbered: bool = True) -> Task:
    """A row of KernelBench (code, level, name, problem_id) or of Ops-6K (ops, data_source, code)."""
    code = row.get("code")
    if not isinstance(code, str):
        have = ", ".join(map(str, row))
        raise TaskFormatError(
            f"{where}: expected the columns code and either level, name, problem_id or ops, "
            f"got {have}"
        )
    if "problem_id" in row:
        task_id = f"kernelbench/L{row.get('level')}/{row['problem_id']}"
        name = str(row.get("name") or task_id)
    else:
        task_id = f"{prefix}:{where.rsplit(':', 1)[-1]}" if numbered else prefix
        name = "_".join(part.split(".")[-1] for part in _operators(row.get("ops"))) or task_id
    return Task(id=task_id, level=0, number=0, name=name, path=where, text=code)


def _operators(ops: Any) -> list[str]:
    """The names in Ops-6K's column, which holds a list or the text of one."""
    if isinstance(ops, str):
        try:
            ops = ast.literal_eval(ops)
        except (SyntaxError, ValueError):
            return [ops]
    return [str(op) for op in ops] if isinstance(ops, (list, tuple)) else []
