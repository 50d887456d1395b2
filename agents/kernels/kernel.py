"""What every kernel template shares: places where elements are at hand, stores, knobs, arguments."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kernelgym.agents.kernels.index import Index, unravel
from kernelgym.agents.kernels.values import C_TYPES, Buffer, Emitter, Load, Value, record

__all__ = ["Code", "Kernel", "Knob", "Place", "Store", "indented"]


@dataclasses.dataclass(frozen=True)
class Knob:
    """A choice that changes speed and not results; `choices[0]` is the one to begin with.

    Choices stand in order of size where they have one, apart from the first: a repair goes to the
    smallest.
    """

    name: str
    choices: tuple[int | str, ...]


@dataclasses.dataclass(frozen=True)
class Place:
    """A point of a kernel at which it stands at one element of a tensor of `numel` elements.

    Attributes:
        name: Unique in the kernel.
        numel: Elements that the kernel passes here altogether, each once.
        offset: Which one it stands at, in terms of the kernel's loop variables.
    """

    name: str
    numel: int
    offset: Index


@dataclasses.dataclass(frozen=True)
class Store:
    """A lazy value that the kernel writes to a buffer at a place."""

    place: Place
    buffer: Buffer
    value: Value

    @property
    def indices(self) -> tuple[Index, ...]:
        """The element's indices."""
        return unravel(self.place.offset, self.value.shape)


@dataclasses.dataclass(frozen=True)
class Code:
    """A rendered kernel.

    Attributes:
        text: The definition of the `__global__` function.
        blocks: Blocks in the grid.
        threads: Threads per block.
    """

    text: str
    blocks: int
    threads: int


class Kernel(abc.ABC):
    """One kernel of a plan.

    Args:
        number: Its position in the plan.
        title: What it computes, in a few words.
    """

    family: ClassVar[str]

    def __init__(self, number: int, title: str) -> None:
        self.number = number
        self.titles = [title]
        self.stores: list[Store] = []

    @property
    def name(self) -> str:
        """The name of the `__global__` function."""
        return f"{self.family}_{self.number}"

    @abc.abstractmethod
    def places(self) -> tuple[Place, ...]:
        """Where lazy values can be attached."""

    @abc.abstractmethod
    def results(self, place: Place) -> Mapping[tuple[Buffer, Index], str]:
        """Elements of the kernel's own results that are in registers at a place."""

    @abc.abstractmethod
    def core_loads(self) -> Iterable[Load]:
        """What it reads to compute its own results."""

    @abc.abstractmethod
    def knobs(self) -> tuple[Knob, ...]:
        """Its choices."""

    @abc.abstractmethod
    def code(self, choice: Mapping[str, int | str]) -> Code:
        """Renders it with a choice for every knob."""

    def attach(
        self, value: Value, producer: Callable[[Buffer], int], make: Callable[[Value], Buffer]
    ) -> Buffer | None:
        """Adds a store of a lazy value if all that it reads is at hand.

        Args:
            value: What to store.
            producer: The number of the kernel that makes a buffer, -1 for an argument.
            make: Makes the buffer.

        Returns:
            The buffer, or None when the value cannot be had here.
        """
        numel = 1
        for size in value.shape:
            numel *= size
        for place in self.places():
            if place.numel != numel:
                continue
            at_hand = self.at_hand(place)
            loads = record(value, unravel(place.offset, value.shape))
            if all(
                producer(load.buffer) < self.number or (load.buffer, load.offset) in at_hand
                for load in loads
            ):
                buffer = make(value)
                self.stores.append(Store(place, buffer, value))
                return buffer
        return None

    def at_hand(self, place: Place) -> dict[tuple[Buffer, Index], str]:
        """What is in registers at a place: own results, and what was stored there before."""
        found = dict(self.results(place))
        for store in self.stores:
            if store.place == place:
                found[store.buffer, place.offset] = ""
        return found

    def arguments(self) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
        """Buffers that it reads, and buffers that it writes."""
        written = tuple(store.buffer for store in self.stores)
        read: dict[Buffer, None] = {load.buffer: None for load in self.core_loads()}
        for store in self.stores:
            at_hand = self.at_hand(store.place)
            for load in record(store.value, store.indices):
                if (load.buffer, load.offset) not in at_hand:
                    read[load.buffer] = None
        return tuple(read), written

    def signature(self) -> str:
        """The kernel's parameters."""
        read, written = self.arguments()
        parts = [f"const {C_TYPES[b.dtype]}* __restrict__ {b.name}" for b in read]
        parts += [f"{C_TYPES[b.dtype]}* __restrict__ {b.name}" for b in written]
        return ", ".join(parts)

    def store_lines(
        self,
        place: Place,
        guard: str = "",
        prefix: str = "v",
        write: Callable[[str, str, str], str] = "{}[{}] = {};".format,
    ) -> list[str]:
        """Statements that compute and write everything that is stored at a place.

        Args:
            place: Where.
            guard: A condition for the writes, or `""`.
            prefix: Of names that the statements bind.
            write: Makes a write from the buffer's name, the offset and the value.
        """
        stores = [store for store in self.stores if store.place == place]
        emitter = Emitter(prefix, dict(self.results(place)))
        writes: list[str] = []
        for store in stores:
            name = emitter.element(store.value, store.indices)
            emitter.registers[store.buffer, place.offset] = name
            writes.append(write(store.buffer.name, place.offset.text(), name))
        if guard and writes:
            writes = [f"if ({guard}) {{", *indented(writes), "}"]
        return [*emitter.lines, *writes]

    def prune(self, wanted: Callable[[Buffer], bool]) -> None:
        """Drops stores of buffers that nobody reads."""
        self.stores = [store for store in self.stores if wanted(store.buffer)]


def indented(lines: Sequence[str], levels: int = 1) -> Iterator[str]:
    """Lines moved in by two blanks a level."""
    return (("  " * levels + line) if line else line for line in lines)
