"""What xarray is given, and what it sees in a file."""

import pickle

import numpy as np
import pytest

import lockstep

xarray = pytest.importorskip("xarray")
U0 = np.random.default_rng(5).normal([1, 0, 0], 0.3, (33, 3))
OF_FILES = {"Conventions", "lockstep_format", "resumed"}


def test_xarray_sees_what_the_file_says(tmp_path):
    pytest.importorskip("h5netcdf")
    ours = lockstep.solve("lorenz", U0, (0, 1), 11, output=tmp_path / "a.h5").to_xarray()
    with xarray.open_dataset(tmp_path / "a.h5", engine="h5netcdf") as theirs:
        np.testing.assert_array_equal(theirs["trajectory"], ours["trajectory"])
        for name in ("state", "end_state", "status", "initial_state"):
            assert theirs[name].dims == ours[name].dims
            np.testing.assert_array_equal(theirs[name], ours[name])
    assert ours["state"].sel(component="y").shape == (33, 11)
    assert ours["state"].sel(trajectory=[4, 7]).shape == (2, 11, 3)
    some = lockstep.read(tmp_path / "a.h5", trajectories=slice(3, 20, 4)).to_xarray()
    np.testing.assert_array_equal(some["trajectory"], [3, 7, 11, 15, 19])


def own_times(count):
    return {"t_span": np.array([[0.25 * i, 1 + i] for i in range(count)]), "time_unit": "s", "units": {"x": "m"},
            "save_at": np.array([np.linspace(0.25 * i, 1 + i, 4) for i in range(count)]), "parameters": {"rho": 28.5}}


@pytest.mark.parametrize("options", [{"t_span": (0, 1), "save_at": 11}, own_times(33)], ids=["shared", "own"])
def test_a_dataset_is_what_its_file_is(tmp_path, options):
    pytest.importorskip("h5netcdf")
    solution = lockstep.solve("lorenz", U0, **options)
    solution.save(tmp_path / "a.h5")
    read = lockstep.read(tmp_path / "a.h5")
    with xarray.open_dataset(tmp_path / "a.h5", engine="h5netcdf", decode_times=False) as file:
        for ours in (solution.to_xarray(), read.to_xarray(), pickle.loads(pickle.dumps(solution)).to_xarray()):
            assert set(ours.coords) == set(file.coords) and set(ours.variables) == set(file.variables) - {"committed"}
            for name, variable in ours.variables.items():
                theirs = file.variables[name]
                assert variable.dims == theirs.dims, name
                if name not in ("component", "parameter"):
                    assert variable.dtype == theirs.dtype, name
                np.testing.assert_array_equal(variable.values, theirs.values, err_msg=name)
                assert variable.attrs.keys() == theirs.attrs.keys(), name
                for key, value in variable.attrs.items():
                    np.testing.assert_array_equal(value, theirs.attrs[key], err_msg=f"{name} {key}")
            assert set(ours.attrs) - OF_FILES == set(file.attrs) - OF_FILES
        part = lockstep.read(tmp_path / "a.h5", trajectories=slice(3, 20, 4), times=slice(1, 4, 2)).to_xarray()
        points = "time" if "time_unit" not in options else "save_point"
        expected = file.isel(trajectory=slice(3, 20, 4), **{points: slice(1, 4, 2)})
        for name in ("start_time", points, "trajectory", "state"):
            np.testing.assert_array_equal(part[name], expected[name], err_msg=name)
