"""The same problem again and again: lockstep.Solver."""

import copy
import pickle

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


def test_a_solver_takes_numbers_by_name():
    spring = lockstep.equations({"x": "v", "v": "-k * x - c * v"}, parameters={"k": 1, "c": 0.1})
    options = {"precision": "f64", "rtol": 1e-8, "threads": 1}

    def expected(u0=(1.0, 0.0), **parameters):
        return lockstep.solve(spring, np.array(u0), (0, 1), 3, parameters=parameters, **options)

    solver = lockstep.Solver(spring, [1.0, 0.0], (0, 1), 3, **options)
    for _ in range(2):  # and again, where the last call's shapes are known
        assert_same(solver(parameters={"k": 2.0}), expected(k=2.0))
        assert_same(solver(parameters={"c": 0}), expected(c=0))  # of which the equations say the other
    made = lockstep.Solver(spring, {"x": 1.0, "v": 0.0}, (0, 1), 3, parameters={"k": 3.0}, **options)
    assert_same(made(parameters={"c": 0.5}), expected(k=3.0, c=0.5))
    assert_same(made(parameters={"c": 0.5, "k": 1}), expected(k=1, c=0.5))
    assert_same(made({"v": 2.0}), expected((1.0, 2.0), k=3.0))
    two = [[1.0, 0.0], [0.0, 1.0]]
    assert_same(made(two, parameters={"k": 2}), lockstep.solve(spring, two, (0, 1), 3, parameters={"k": 2}, **options))
    many = made(parameters={"k": [1.0, 2.0]})
    assert many.parameters.tolist() == [[1.0, 0.1], [2.0, 0.1]]
    for given, words in (({"z": 1}, "parameters.z: found an unknown parameter, expected one of k, c"),
                         ({"k": {"linspace": [1, 2]}}, r"parameters.k: found a dict, expected a number, or an array \[traj"),
                         ({"k": [1, 2], "c": [1, 2, 3]}, r"parameters: found arrays of k \[2\], c \[3\], expected numbers, and")):
        with pytest.raises(lockstep.InvalidArgument, match=words):
            solver(parameters=given)
    by_place = lockstep.Solver(spring, [1.0, 0.0], (0, 1), parameters=[3.0, 4.0])
    with pytest.raises(lockstep.InvalidArgument, match="make the Solver with a dict, too"):
        by_place(parameters={"k": 1})  # c is 4, not the equations' 0.1


def test_a_solver_is_pickled_by_its_arguments(lorenz_net):
    u0 = np.array([[1.0, 1, 20], [1, 2, 20]])
    frame = np.array([(1.0, 1, 20)], dtype=[("y", "f8"), ("x", "f8"), ("z", "f8")])
    for problem, states, options in ((lorenz_net, u0, {}), ("lorenz", u0, {"parameters": {"rho": 20}}),
                                     ("lorenz", frame, {"parameters": [10, 28, 2]}),
                                     ("lorenz", {"normal": {"mean": [1, 0, 0], "std": 0.1}}, {"trajectories": 3})):
        solver = lockstep.Solver(problem, states, (0, 1), 3, precision="f64", **options)
        solver()
        for copied in (pickle.loads(pickle.dumps(solver)), copy.deepcopy(solver)):
            assert_same(copied(), solver())
            assert_same(copied(u0[0]), solver(u0[0]))


def test_a_solver_tells_what_float32_makes_of_later_numbers():
    solver = lockstep.Solver(lockstep.equations({"x": "-k * x"}, parameters={"k": 1}), [1.0], (0, 1), 2)
    solver(parameters=[1.0])
    with pytest.warns(UserWarning, match="k .* 0 in float32"):
        solver(parameters=[1e-50])


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
            (lambda: solver(parameters={"rho": "high"}), lockstep.WrongType, "parameters.rho"),
            (lambda: lockstep.Solver("problem.toml"), lockstep.InvalidArgument, "problem: found the problem file"),
            (lambda: lockstep.Solver("lorenz", progress=True), lockstep.InvalidArgument, "progress"),
            (lambda: lockstep.Solver("lorenz", tolerance=1), TypeError, r"tolerance: .*Solver\(\)"),
            (lambda: lockstep.Solver("lorentz")(), lockstep.InvalidArgument, "lorenz"),
            (lambda: lockstep.Solver("lorenz", rtol="a"), lockstep.Error, "rtol")):
        with pytest.raises(error, match=words):
            call()
