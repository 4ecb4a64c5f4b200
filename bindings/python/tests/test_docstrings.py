"""The examples in docstrings of the compiled part, which pytest's collection of doctests does not see."""

import doctest

import pytest

from lockstep import _lockstep


def documented(owner, name):
    for key in dir(owner):
        member = getattr(owner, key)
        if key.startswith("__"):
            continue
        text = getattr(member, "__doc__", None)
        if isinstance(text, str) and ">>>" in text:
            yield f"{name}.{key}", text
        if isinstance(member, type):
            yield from documented(member, f"{name}.{key}")


EXAMPLES = dict(documented(_lockstep, "_lockstep"))


def test_examples_are_found():
    assert {"_lockstep.Model.jvp", "_lockstep.Model.jacobian", "_lockstep.Model.derivative"} <= set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_says_what_it_prints(name):
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {}, name, None, 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize().failed == 0
