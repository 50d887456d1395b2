"""What flows through a composition: a tensor's layout and dimensions, at both sizes at once."""

from __future__ import annotations

import dataclasses
import enum

__all__ = ["BATCH", "Dim", "Layout", "Value"]

BATCH = "batch_size"
"""Name of the preset that every first dimension has; nothing else depends on it."""


class Layout(enum.Enum):
    """What a tensor's dimensions mean; the first is the batch, but for a scalar."""

    SCALAR = 0
    VECTOR = 1  # (batch,)
    MATRIX = 2  # (batch, features)
    SEQUENCE = 3  # (batch, length, features)
    SIGNAL = 4  # (batch, channels, length)
    IMAGE = 5  # (batch, channels, height, width)
    VOLUME = 6  # (batch, channels, depth, height, width)

    @property
    def spatial(self) -> int:
        """Number of spatial dimensions behind the channels; 0 where there are no channels."""
        return {Layout.SIGNAL: 1, Layout.IMAGE: 2, Layout.VOLUME: 3}.get(self, 0)

    @classmethod
    def of_rank(cls, rank: int) -> Layout:
        """The layout of what is left after dimensions were reduced away."""
        return (cls.SCALAR, cls.VECTOR, cls.MATRIX, cls.SEQUENCE, cls.IMAGE)[rank]


@dataclasses.dataclass(frozen=True)
class Dim:
    """One dimension.

    Attributes:
        full: Its extent in the preset `full`.
        small: Its extent in the preset `small`.
        name: The preset's name that it goes by, or `""` where it is only computed.
    """

    full: int
    small: int
    name: str = ""

    @property
    def extents(self) -> tuple[int, int]:
        """Extents at `full` and `small`."""
        return self.full, self.small


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor in the middle of a composition.

    Attributes:
        layout: What its dimensions mean.
        dims: Its dimensions.
        nonnegative: Whether no element can be below 0, so that a rectifier would do nothing.
    """

    layout: Layout
    dims: tuple[Dim, ...]
    nonnegative: bool = False

    @property
    def channels(self) -> Dim:
        """The second dimension."""
        return self.dims[1]

    @property
    def features(self) -> Dim:
        """The last dimension."""
        return self.dims[-1]

    @property
    def named(self) -> bool:
        """Whether every dimension has a name, so that another input can have this shape."""
        return bool(self.dims) and all(dim.name for dim in self.dims)

    @property
    def narrowest(self) -> int:
        """The smallest spatial extent at either size; 0 where there are no spatial dimensions."""
        if not self.layout.spatial:
            return 0
        return min(extent for dim in self.dims[2:] for extent in dim.extents)

    def replace(self, **changes: object) -> Value:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def with_dim(self, position: int, dim: Dim) -> Value:
        """A copy with one dimension changed and unknown sign."""
        dims = list(self.dims)
        dims[position] = dim
        return Value(self.layout, tuple(dims))
