"""Verdicts from Python, over memory and files."""

import numpy as np
import pytest

import lockstep

U0 = np.random.default_rng(5).normal([1, 0, 0], 0.3, (64, 3))


def solve(**changes):
    return lockstep.solve("lorenz", U0, (0, 10), 51, **{"method": "dop853", "precision": "f64", "rtol": 1e-10,
                                                       "atol": 1e-10, **changes})


def test_the_same_problem_has_the_same_bits_in_memory_and_file(tmp_path):
    a, b = solve(), solve(output=tmp_path / "b.h5", threads=1)
    for first, second in ((a, b), (b, a), (tmp_path / "b.h5", a)):
        verdict = lockstep.validate(first, second)
        assert verdict and verdict.same_bits and verdict.outcome == "agree"


def test_another_method_is_no_port():
    verdict = lockstep.validate(solve(), solve(method="tsit5"))
    assert not verdict and verdict.outcome == "disagree" and verdict.reasons and not verdict.same_bits


def test_another_problem_cannot_be_judged():
    verdict = lockstep.validate(solve(), solve(parameters={"rho": 28.001}))
    assert not verdict and verdict.outcome == "undecided" and "28.001" in verdict.sentence


def test_rounding_alone_is_a_port(tmp_path):
    a, b = solve(), solve()
    b.state[...] = np.nextafter(b.state, np.inf)
    verdict = lockstep.validate(a, b, report=tmp_path / "report")
    assert verdict and not verdict.same_bits and "rounding" in verdict.sentence
    assert verdict.page.read_text().lstrip().lower().startswith("<!doctype")
    b.state[0, 3, 1] += 1e-3
    assert lockstep.validate(a, b).outcome == "disagree"


def test_files_that_are_no_results_are_errors(tmp_path):
    (tmp_path / "a.h5").write_text("nothing")
    with pytest.raises(lockstep.FileError):
        lockstep.validate(tmp_path / "a.h5", tmp_path / "a.h5")
