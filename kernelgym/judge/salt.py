"""The secret of a judgement: seeds that a candidate cannot know beforehand."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets

__all__ = ["Salt"]


@dataclasses.dataclass(frozen=True)
class Salt:
    """The secret from which a judgement draws all its values."""

    value: bytes

    @classmethod
    def make(cls, seed: int | None, task: str) -> Salt:
        """A fresh secret, or with a seed the same one each time for a task."""
        if seed is None:
            return cls(secrets.token_bytes(32))
        return cls(hashlib.sha256(f"kernelgym:{seed}:{task}".encode()).digest())

    @property
    def commitment(self) -> str:
        """SHA-256 of the secret, hexadecimal: published, so that it can be revealed later."""
        return hashlib.sha256(self.value).hexdigest()

    def seed(self, label: str) -> int:
        """A 63-bit seed for one purpose."""
        digest = hashlib.sha256(self.value + label.encode()).digest()
        return int.from_bytes(digest[:8], "little") >> 1
