"""Known parameters of each trajectory in a training."""

import numpy as np
import pytest

import lockstep

TEMPERATURES = np.array([300.0, 320, 340, 360])
T = np.linspace(0, 4, 9)
EQUATIONS = {"A": "-k0 * exp(-E * (1000 / T - 3.1)) * A"}
FOUND = {"k0": {"start": 0.2, "positive": True}, "E": {"start": 3}}


def decays(noise=0.0):
    rates = 0.1 * np.exp(-4 * (1000 / TEMPERATURES - 3.1))
    states = np.exp(-rates[:, None] * T)
    states[:, 1:] += noise * np.random.default_rng(5).normal(size=(len(rates), len(T) - 1))
    return states[..., None]


def trained(u, temperatures, **others):
    return lockstep.train(t=T, u=u, equations=EQUATIONS, parameters={**FOUND, "T": temperatures}, precision="f64",
                          rtol=1e-9, atol=1e-9, **others)


def test_each_trajectory_has_its_own():
    fit = trained(decays(), TEMPERATURES)
    assert fit.parameters == pytest.approx({"k0": 0.1, "E": 4}, rel=1e-5)
    with pytest.raises(lockstep.InvalidArgument, match="no value for T"):
        lockstep.solve(fit.rhs, [1], (0, 4), 9)
    solution = lockstep.solve(fit.rhs, np.ones((4, 1)), (0, 4), 9, parameters={**fit.parameters, "T": TEMPERATURES},
                              precision="f64")
    np.testing.assert_allclose(solution.state, decays(), atol=1e-5)


def test_a_series_goes_by_the_labels_of_trajectories():
    pandas = pytest.importorskip("pandas")
    rows = dict(t=np.tile(T, 4), u=decays().reshape(-1), trajectory=np.repeat(["d", "c", "b", "a"], len(T)),
                equations=EQUATIONS, precision="f64", rtol=1e-9, atol=1e-9)
    expected = trained(decays(), TEMPERATURES).parameters
    own = pandas.Series(TEMPERATURES, index=["d", "c", "b", "a"])
    for temperatures in (own, own.sort_index(), own.reset_index(drop=True)):
        assert lockstep.train(parameters={**FOUND, "T": temperatures}, **rows).parameters == expected
    numbered = {**rows, "trajectory": np.repeat([3, 2, 1, 0], len(T))}
    temperatures = pandas.Series(TEMPERATURES[::-1], index=[0, 1, 2, 3])
    assert lockstep.train(parameters={**FOUND, "T": temperatures}, **numbered).parameters == expected
    with pytest.raises(lockstep.InvalidArgument, match=r"^parameters\['T'\]: found an index of 'd', 'c', 'b', .*, expected the "
                       "labels that trajectory has"):
        lockstep.train(parameters={**FOUND, "T": own.rename({"a": "e"})}, **rows)


def test_rows_with_labels_have_the_same_bits():
    labels = np.repeat(["d", "c", "b", "a"], len(T))
    expected = trained(decays(), TEMPERATURES)
    for temperatures in (TEMPERATURES, np.repeat(TEMPERATURES, len(T))):
        fit = lockstep.train(t=np.tile(T, 4), u=decays().reshape(-1), trajectory=labels, equations=EQUATIONS,
                             parameters={**FOUND, "T": temperatures}, precision="f64", rtol=1e-9, atol=1e-9)
        assert fit.parameters == expected.parameters


def test_a_state_that_stands_still_is_known_as_well():
    """Its data count neither as measurements nor its start as an unknown: the errors are those of the parameter."""
    u = decays(0.01)
    expected = trained(u, TEMPERATURES)
    both = np.concatenate([u, np.broadcast_to(TEMPERATURES[:, None, None], u.shape)], axis=2)
    fit = lockstep.train(t=T, u=both, equations={**EQUATIONS, "T": "0"}, parameters=FOUND, precision="f64", rtol=1e-9,
                         atol=1e-9)
    assert fit.standard_errors == pytest.approx(expected.standard_errors, rel=1e-5)
    assert "from 32 numbers" in fit.report and "from 32 numbers" in expected.report


def test_nets_and_systems_read_them():
    fit = lockstep.train(t=T, u=decays(), equations={"A": "-net(A, T)"}, hidden=[4], normalise="standard",
                         parameters={"T": TEMPERATURES}, precision="f64")
    assert fit.model.inputs[0]["features"][1] == {"name": "T", "unit": "", "minimum": pytest.approx(299.4),
                                                  "maximum": pytest.approx(360.6)}
    assert fit.errors["training"]["A"]["relative"] < 0.05
    rho, start = np.array([20.0, 24, 28]), np.ones((3, 3))
    truth = lockstep.solve("lorenz", start, (0, 0.5), 11, parameters={"rho": rho, "sigma": 9.5}, precision="f64")
    found = lockstep.train(t=truth.time, u=truth.state, system="lorenz", precision="f64",
                           parameters={"rho": rho, "sigma": {"start": 8}}).parameters
    assert found["sigma"] == pytest.approx(9.5, rel=1e-4)


@pytest.mark.parametrize("temperatures, words", [
    (TEMPERATURES[:3], r"parameters\['T'\]: found 3 numbers, expected 4, one for each trajectory"),
    ([300, np.nan, 340, 360], r"parameters\['T'\]\[1\]: found no finite number"),
])
def test_wrong_ones_are_named(temperatures, words):
    with pytest.raises(lockstep.InvalidArgument, match=words):
        trained(decays(), temperatures)


def test_what_changes_within_a_trajectory_is_named():
    temperatures = np.repeat(TEMPERATURES, len(T))
    temperatures[12] = 321
    with pytest.raises(lockstep.InvalidArgument, match=r"\[12\]: found 321.0, expected 320.0 as in the first row of "
                       "trajectory 1"):
        lockstep.train(t=np.tile(T, 4), u=decays().reshape(-1), trajectory=np.repeat(range(4), len(T)),
                       equations=EQUATIONS, parameters={**FOUND, "T": temperatures})
