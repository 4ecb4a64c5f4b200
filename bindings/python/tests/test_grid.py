"""Every combination of parameters and initial states."""

import numpy as np
import pytest

import lockstep

GRID = {"rho": np.linspace(20, 28, 5), "z": {"logspace": [0.1, 10, 3]}}


def test_a_grid_has_an_axis_for_each_name(tmp_path):
    solution = lockstep.solve("lorenz", [1, 0, 0], (0, 1), 11, grid=GRID)
    assert len(solution) == 15 and list(solution.grid) == ["rho", "z"]
    np.testing.assert_array_equal(solution.grid["rho"], GRID["rho"])
    np.testing.assert_array_equal(solution.grid["z"], [0.1, 1, 10])
    one = lockstep.solve("lorenz", [1, 0, 10], (0, 1), 11, parameters={"rho": 22})
    np.testing.assert_array_equal(solution["x"].reshape(5, 3, 11)[1, 2], one["x"][0])
    solution.save(tmp_path / "grid.h5")
    read = lockstep.read(tmp_path / "grid.h5")
    assert {name: values.tolist() for name, values in read.grid.items()} == {
        name: values.tolist() for name, values in solution.grid.items()}
    assert lockstep.read(tmp_path / "grid.h5", trajectories=slice(0, 7)).grid == {}
    assert lockstep.solve("lorenz", [1, 0, 0], (0, 1)).grid == {}


def test_an_axis_alone_is_a_sweep():
    sweep = lockstep.solve("lorenz", t_span=(0, 1), grid={"sigma": [9.5, 10.5]})
    assert sweep.parameters[:, 0].tolist() == [9.5, 10.5] and sweep.grid["sigma"].tolist() == [9.5, 10.5]


@pytest.mark.parametrize("arguments, expected", [
    ({"grid": {"rho": [20, 24]}, "trajectories": 3},
     "trajectories: found 3, expected 2, one for each combination of grid (rho 2); leave it out where there is a grid"),
    ({"grid": {"rho": {"linspace": [20, 24]}}}, "grid.rho: found a range without a number of points"),
    ({"grid": {"rho": [20, 24]}, "u0": np.ones((5, 3))}, "u0: found 5 rows, expected 2, one for each combination of grid"),
    ({"grid": {"rh": [20, 24]}}, "grid.rh: found neither a component nor a parameter"),
    ({"grid": [20, 24]}, "grid: found list, expected a dict of values by name"),
    ({"grid": {"rho": [20, 24]}, "parameters": {"rho": 20}}, 
     "grid.rho: found a parameter that has a value of its own, expected one place for each; remove it here, or from "
     "parameters"),
])
def test_what_does_not_fit_a_grid_is_refused(arguments, expected):
    with pytest.raises(lockstep.Error, match="^" + expected.replace("(", r"\(").replace(")", r"\)")):
        lockstep.solve("lorenz", **{"t_span": (0, 1), **arguments})


def test_a_solver_has_no_grid():
    with pytest.raises(lockstep.Error, match="^grid: found a value for a Solver, expected none; use solve"):
        lockstep.Solver("lorenz", t_span=(0, 1), grid=GRID)
