"""Defences can be switched off by tests alone, and a verdict reached so says so."""

import dataclasses

import pytest

from kernelgym.config import JudgeConfig
from kernelgym.errors import ConfigError
from kernelgym.judge.defences import ALL_DEFENCES, Defences, is_complete


def test_all_are_in_force_unless_a_test_says_otherwise():
    assert ALL_DEFENCES.missing() == ()
    assert Defences.without("poison", "clock").missing() == ("off:poison", "off:clock")
    assert is_complete(("landlock", "seccomp"))
    assert not is_complete(("landlock", "off:poison"))


def test_no_configuration_reaches_them():
    names = {field.name for field in dataclasses.fields(JudgeConfig)}
    assert not names & {*Defences.names(), "defences"}
    with pytest.raises(ConfigError):
        JudgeConfig().replace(defences=Defences.without("poison"))


def test_a_name_that_is_none_is_an_error():
    with pytest.raises(TypeError):
        Defences.without("everything")
