"""The same problem again and again: lockstep.Solver."""

import numpy as np
import pytest

import lockstep


def assert_same(solution, expected):
    for name in ("state", "end_state", "time", "status", "accepted", "evaluations", "initial_state", "parameters"):
        np.testing.assert_array_equal(getattr(solution, name), getattr(expected, name))
    assert solution.attributes["problem_digest"] == expected.attributes["problem_digest"]
    assert solution.component_names == expected.component_names


@pytest.mark.parametrize("points", [2, [0.5, 1.0], [[0.5, 1.0], [0.25, 1.0]]])
def test_a_solver_gives_the_bits_of_solve(lorenz_net, points):
    equations = lockstep.equations({"x": "s * (y - x)", "y": "x * (28 - z) - y", "z": "x*y - b*z"},
                                   parameters={"s": 10, "b": 8 / 3})
    two = np.array([[1.0, 1, 20], [1, 2, 20]])
    for problem, count in ((equations, 2), ("lorenz", 3), (lorenz_net, 0), (("lorenz", lorenz_net), 3)):
        options = {"rtol": 1e-5, "precision": "f64", "threads": 1}
        solver = lockstep.Solver(problem, two, (0, 1), points, **options)
        given = [{}]
        if count:
            p = np.array([10, 8 / 3, 2])[:count]
            given = [{"parameters": p}, {"parameters": [p, 1.1 * p]}, {"parameters": list(p)}]
            if problem is equations:
                given.append({})  # its own again
        for u0 in (None, two + 0.5, two - 0.25):
            for arguments in given:
                expected = lockstep.solve(problem, two if u0 is None else u0, (0, 1), points, **arguments, **options)
                assert_same(solver(u0, **arguments), expected)


def test_a_solver_keeps_what_it_was_made_with():
    u0, points = np.array([1.0, 1, 20]), np.array([0.5, 1])
    solver = lockstep.Solver("lorenz", u0, (0, 1), points)
    before = solver()
    u0[:], points[:] = 5, 0.25
    assert_same(solver(), before)


def test_a_solvers_solution_has_its_own_numbers(tmp_path):
    decay = lockstep.equations({"x": "-k * x"}, parameters={"k": 2})
    solver = lockstep.Solver(decay, [1.0], (0, 1), 3, precision="f64")
    first, second = solver([1.0], parameters=[1.0]), solver([3.0], parameters=[2.0])
    np.testing.assert_allclose(first.end_state, np.exp(-1), rtol=1e-5)
    np.testing.assert_allclose(second.end_state, 3 * np.exp(-2), rtol=1e-5)
    np.testing.assert_allclose(second.vjp(end_state=[[1.0]]).parameters, -3 * np.exp(-2), rtol=1e-5)
    second.save(tmp_path / "second.h5")
    kept = lockstep.read(tmp_path / "second.h5")
    assert kept.initial_state.tolist() == [[3.0]] and kept.parameters.tolist() == [2.0]
    np.testing.assert_array_equal(kept.state, second.state)


def test_a_solver_names_what_it_cannot_take(tmp_path):
    solver = lockstep.Solver("lorenz", [1.0, 1, 20], (0, 1))
    for call, error, words in (
            (lambda: solver([1.0, 1]), lockstep.InvalidArgument, "u0"),
            (lambda: solver(parameters=[1.0]), lockstep.InvalidArgument, "parameters"),
            (lambda: solver([1.0, 1, np.nan]), lockstep.InvalidArgument, "u0"),
            (lambda: solver("no"), lockstep.WrongType, "u0"),
            (lambda: solver(parameters={"rho": 3}), lockstep.WrongType, "parameters"),
            (lambda: lockstep.Solver("problem.toml"), lockstep.InvalidArgument, "problem: found the problem file"),
            (lambda: lockstep.Solver("lorenz", progress=True), lockstep.InvalidArgument, "progress"),
            (lambda: lockstep.Solver("lorenz", tolerance=1), TypeError, r"tolerance: .*Solver\(\)"),
            (lambda: lockstep.Solver("lorentz")(), lockstep.InvalidArgument, "lorenz"),
            (lambda: lockstep.Solver("lorenz", rtol="a"), lockstep.Error, "rtol")):
        with pytest.raises(error, match=words):
            call()
