"""Solutions, trainings and errors on their way to other processes and notebooks: pickled, copied, read again."""

import copy
import os
import pickle

import numpy as np
import pytest

import lockstep

ARRAYS = ("state", "time", "end_state", "end_time", "status", "accepted", "rejected", "evaluations", "initial_state",
          "parameters")


def solved(**arguments):
    return lockstep.solve("lorenz", np.eye(3), (0, 1), 11, parameters={"rho": 20}, units={"x": "m"}, **arguments)


def same(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert repr(one) == repr(other) and one.units == other.units == {"x": "m"}
    assert one.attributes == other.attributes and one.parameter_names == other.parameter_names
    np.testing.assert_array_equal(one["z"], other["z"])


def test_a_pickled_solution_has_its_arrays_and_says_what_it_lacks(tmp_path):
    solution = solved()
    again = pickle.loads(pickle.dumps(solution))
    same(solution, again)
    for use in (lambda: again.vjp(np.ones_like(again.state)), again.sensitivities,
                lambda: again.save(tmp_path / "a.h5"), lambda: lockstep.validate(solution, again)):
        with pytest.raises(lockstep.Unsupported, match="solution: found one that was unpickled.*where it was solved"):
            use()
    solution.sensitivities()  # which the first still has


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_solution_has_all_that_the_first_has(copied, tmp_path):
    solution = solved()
    again = copied(solution)
    same(solution, again)
    assert lockstep.validate(solution, again).same_bits
    np.testing.assert_array_equal(again.vjp(np.ones_like(again.state)).u0, solution.vjp(np.ones_like(again.state)).u0)
    again.save(tmp_path / "a.h5")
    assert (again.state is solution.state) == (copied is copy.copy)
    with pytest.raises(ValueError, match="read-only"):
        again.state[:] = 0


def test_a_solution_in_a_file_is_read_by_whoever_unpickles_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solution = solved(output="a.h5")
    content = pickle.dumps(solution)
    os.mkdir("elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = pickle.loads(content)
    monkeypatch.chdir(tmp_path)
    same(solution, again)
    assert len(content) < 5000, "its states stay in the file"
    with pytest.raises(lockstep.Unsupported, match="lies in .*a.h5, expected one in memory"):
        again.vjp(np.ones_like(again.state))


def test_a_solution_in_a_file_is_read_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solutions = [solved(output="a.h5"), lockstep.read("a.h5")]
    os.mkdir("elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for solution in solutions:
        same(solution, pickle.loads(pickle.dumps(solution)))


def test_a_training_and_derivatives_are_pickled_with_all_they_have():
    trained = lockstep.train(x=np.linspace(-1, 1, 20), y=np.linspace(0, 2, 20), hidden=[3], iterations=5)
    again = pickle.loads(pickle.dumps(trained))
    assert again.loss == trained.loss and again.model.digest == trained.model.digest and repr(again) == repr(trained)
    gradients = solved().vjp(np.ones((3, 11, 3)))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(gradients)).u0, gradients.u0)


def test_an_error_of_a_worker_arrives_whole():
    with pytest.raises(lockstep.InvalidArgument) as caught:
        lockstep.solve("lorentz", [1, 0, 0], (0, 1))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is lockstep.InvalidArgument and str(again) == str(caught.value)
    assert (again.field, again.expected, again.remedy) == (caught.value.field, caught.value.expected,
                                                           caught.value.remedy)
