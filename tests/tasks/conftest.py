import pytest


def pytest_collection_modifyitems(config, items):
    """Skips what takes minutes, unless markers are chosen on the command line."""
    if config.getoption("markexpr"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; run with -m slow"))
