"""YAML from strangers: mappings, lists and scalars, nothing that grows when it is read."""

from __future__ import annotations

from typing import Any

import yaml

from kernelgym.errors import RecordError

__all__ = ["read_mapping", "write_mapping"]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Refuses aliases, from which bombs are made, and keys given twice."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """As its parent's, without aliases."""
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("expected no aliases (*name), got one")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """As its parent's; every key must be a text, once."""
        keys: set[str] = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None or name in keys:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: expected each key once, got {name!r}")
            keys.add(name)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


def read_mapping(data: bytes, where: str) -> dict[str, Any]:
    """The mapping that a YAML document holds.

    Args:
        data: The document, UTF-8; its caller limits its size.
        where: For messages.

    Raises:
        RecordError: It is no YAML, holds an alias, a tag or a key given twice, is nested too deeply,
            or is no mapping.
    """
    try:
        found = yaml.load(data.decode("utf-8"), Loader=_Loader)
    except RecursionError as error:
        raise RecordError(f"{where}: expected plain YAML, got one nested too deeply") from error
    except (yaml.YAMLError, ValueError) as error:
        said = " ".join(str(error).split())
        raise RecordError(f"{where}: expected plain YAML, got: {said[:300]}") from error
    if not isinstance(found, dict):
        raise RecordError(f"{where}: expected a mapping, got {type(found).__name__}")
    return found


def write_mapping(mapping: dict[str, Any]) -> bytes:
    """A mapping as YAML, in its own order of keys."""
    text: str = yaml.safe_dump(mapping, sort_keys=False, allow_unicode=True)
    return text.encode("utf-8")
