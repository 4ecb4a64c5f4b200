"""Stiff problems from Python: where Jacobians are infinite, what float32 cannot hold, and what is said of other words."""

import warnings

import numpy as np
import pytest

import lockstep

INFINITE = {  # equations, initial state; each infinite, or 0 times infinity, in the Jacobian or by the time at the start
    "sqrt": ({"h": "1 - sqrt(h)"}, [0]),
    "power": ({"h": "1 - h^0.5"}, [0]),
    "asin": ({"x": "-asin(x)"}, [1]),
    "hill": ({"s": "1 - s", "p": "1e3 * (s^n / (0.5^n + s^n) - p)", "n": "0"}, [0, 0, 0.5]),
    "drag": ({"u": "1 - 10*u*sqrt(u^2 + v^2)", "v": "0.5 - 10*v*sqrt(u^2 + v^2)"}, [0, 0]),
    "time": ({"x": "-1e3 * (x - sqrt(t))"}, [0]),
}


@pytest.mark.parametrize("name", INFINITE)
def test_infinite_slopes_hold_no_state_still(name):
    equations, u0 = INFINITE[name]
    ends = [lockstep.solve(lockstep.equations(equations), u0, (0, 1), method=method, precision="f64", rtol=rtol, atol=rtol)
            for method, rtol in (("rodas5p", 1e-6), ("tsit5", 1e-9))]
    assert [int(end.status[0]) for end in ends] == [0, 0]
    # Five tolerances, as of other methods (docs/numerics.md), of 1 + |u|.
    assert np.abs(ends[0].end_state - ends[1].end_state).max() < 1e-5


def test_a_reset_to_an_infinite_slope_is_left():
    tank = lockstep.equations({"h": "1 - sqrt(h)"})
    ends = [lockstep.solve(tank, [0.2], (0, 3), method=method, precision="f64", rtol=rtol, atol=rtol,
                           resets={"component": "h", "value": 0.4, "direction": "rising", "to": {"h": 0}}).end_state[0, 0]
            for method, rtol in (("rodas5p", 1e-7), ("tsit5", 1e-9))]
    assert ends[0] == pytest.approx(ends[1], abs=1e-5)


def test_an_infinite_entry_of_the_jacobian_has_no_derivative():
    driven = lockstep.equations({"x": "-a * (x - sqrt(t))"}, parameters={"a": 10.0})
    slopes = []
    for method in ("rodas5p", "tsit5"):
        solution = lockstep.solve(driven, [0], (0, 2), [1, 2], method=method, precision="f64", rtol=1e-9, atol=1e-9)
        slopes.append(solution.vjp(np.ones_like(solution.state)))
    assert slopes[0].parameters == pytest.approx(slopes[1].parameters, rel=1e-4)
    assert slopes[0].u0 == pytest.approx(slopes[1].u0, rel=1e-4)


def notes(*arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lockstep.solve(*arguments, method="rodas5p", **options)
    return [str(one.message) for one in caught]


def test_what_float32_loses_over_decades_is_told():
    told = notes("robertson", [1, 0, 0], (0, 1e10))
    assert any("below the roundings of float32" in note and "ends at" in note for note in told), told
    assert not notes("robertson", [1, 0, 0], (0, 40))
    assert not notes("robertson", [1, 0, 0], (0, 1e10), precision="f64", atol=1e-16)
    assert not notes("robertson", [1, 0, 0], (0, 1e10), atol=1e-12)


def test_float32_that_makes_steps_many_is_told_of_what_got_through():
    stiff = lockstep.equations({"x": "v", "v": "((1 - x^2) * v - x) * 1e6"})
    told = notes(stiff, [2, 0], (0, 1), rtol=1e-6, atol=1e-6, max_steps=1_000_000)
    assert any(note.startswith("float32 is too coarse here: trajectory 0 took ") for note in told), told
    assert not notes(stiff, [2, 0], (0, 1), rtol=1e-4, atol=1e-4)


def test_small_components_are_told_of_what_failed():
    pole = lockstep.equations({"x": "1 + x^2", "y": "-y"})
    told = notes(pole, [0, 1e-9], (0, 2), precision="f64")
    assert any("step_too_small" in note for note in told) and any("y, never above 1e-09" in note for note in told), told


@pytest.mark.parametrize("word, answer", [
    ("mass", "algebraic equations are not solved"), ("mass_matrix", "algebraic equations are not solved"),
    ("jac", "leave it out: Jacobians"), ("jac_sparsity", "leave it out: Jacobians")])
def test_words_for_stiff_problems_are_answered(word, answer):
    with pytest.raises(TypeError, match=answer):
        lockstep.solve("robertson", [1, 0, 0], (0, 40), method="rodas5p", **{word: 1})


def test_stiff_is_no_method_but_rodas5p_is():
    with pytest.raises(lockstep.InvalidArgument, match='for stiff problems take "rodas5p"'):
        lockstep.solve("robertson", [1, 0, 0], (0, 40), method="stiff")


def test_that_float32_is_too_coarse_is_told_once():
    driven = lockstep.equations({"x": "-0.1 * x + sin(2 * pi * t / 24)"})
    told = notes(driven, [[0.0], [0.0]], [[0, 3000], [0, 8760]], max_steps=50_000)
    assert sum("float32 is too coarse here" in note for note in told) == 1, told
