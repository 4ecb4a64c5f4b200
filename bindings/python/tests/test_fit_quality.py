"""What a training says of a fit that explains nothing, and of data that will not be learned as they stand."""

import numpy as np
import pytest

import lockstep

T = np.linspace(0, 10, 101)
U = np.stack([np.cos(T), -np.sin(T)], 1)


def oscillator(start, **options):
    return lockstep.train(t=T, u=U, equations={"x": "v", "v": "-k*x"}, parameters={"k": {"start": start}},
                          precision="f64", **options)


def test_a_fit_that_explains_nothing_has_no_errors():
    lost = oscillator(40.0, optimiser="adam", rate=1e-3, iterations=50)
    assert lost.errors["training"]["x"]["relative"] > 1
    assert lost.standard_errors == {} and lost.intervals == {} and lost.correlations.shape == (0, 0)
    assert len(lost.notes) == 1 and lost.notes[0].startswith("no standard errors: they and intervals presuppose a fit")
    assert lost.notes[0] in lost.report and "+-" not in lost.report
    assert "the fit explains little of the data, or nothing: RMS of x" in lost.report.splitlines()[-1]
    assert "training_parameters" not in lost.rhs.metadata
    found = oscillator(1.1)
    assert abs(found.parameters["k"] - 1) < 1e-5 and "k" in found.standard_errors
    assert not any("explains little" in line for line in [*found.notes, found.report])


def orbit(iterations):
    """A circle measured to a ten-millionth, of which an optimiser that remembers one step finds little."""
    t = np.linspace(0, 25, 51)
    u = np.stack([np.cos(t), np.sin(t), -np.sin(t), np.cos(t)], 1) + np.random.default_rng(4).normal(0, 1e-7, (51, 4))
    return lockstep.train(t=t, u=u, equations={"x": "vx", "y": "vy", "vx": "-gm*x/r3", "vy": "-gm*y/r3"},
                          definitions={"r3": "(x^2+y^2)^1.5"}, parameters={"gm": {"start": 1.000005, "scale": 1e-6}},
                          sigma=np.full(u.shape, 1e-7), precision="f64", method="vern9", rtol=1e-11, atol=1e-11,
                          optimiser="lbfgs", continuity=1, history=1, iterations=iterations)


def test_a_fit_that_has_not_converged_has_no_errors_and_blames_nothing_else():
    with pytest.warns(UserWarning, match="the fit has not converged"):
        short = orbit(40)
    assert short.standard_errors == {} and short.intervals == {}
    assert len(short.notes) == 1 and short.notes[0].startswith("the fit has not converged")
    assert "sigma" not in short.report.splitlines()[-1] and "+-" not in short.report
    whole = orbit(1000)  # from the 50th iteration on by least squares
    assert len(whole.history["loss"]) < 60 and not any("least" in note for note in whole.notes)
    assert abs(whole.parameters["gm"] - 1) < 4 * whole.standard_errors["gm"]


def test_a_net_that_explains_nothing_is_said_to():
    x = np.linspace(-1, 1, 50)
    training = lockstep.train(x=x, y=100 + x, hidden=[4], optimiser="adam", rate=1e-3, iterations=3)
    assert training.notes == [training.report.splitlines()[-2]]
    assert training.notes[0].startswith("the fit explains little of the data, or nothing: RMS of y0 ")


def test_states_far_from_size_one_are_named():
    u = 3000 * U
    training = lockstep.train(t=T, u=u, hidden=[8], optimiser="adam", iterations=2, segment=1)
    assert training.advice == ['nets learn from inputs of size 1: u0 (3e+03), u1 (3e+03) are not; '
                               'add normalise="standard"']
    assert lockstep.train(t=T, u=u, hidden=[8], optimiser="adam", iterations=2, normalise="standard").advice == []
    known = lockstep.train(t=T, u=u, equations={"x": "v", "v": "-k*x"}, parameters={"k": {"start": 1.0}}, iterations=2,
                           optimiser="lbfgs")
    assert known.advice == []


def test_targets_far_from_size_one_are_named():
    x = np.linspace(-1, 1, 50)
    arguments = dict(optimiser="lbfgs", iterations=2, targets=["y"])

    def advice(y, **others):
        return lockstep.train(x=x, y=y, **{"hidden": [4], **arguments, **others}).advice

    assert advice(900 * x**2) == ['nets learn targets of size 1: y (9e+02) are not; add normalise="standard"']
    assert advice(1e-3 * x**2) == ['nets learn targets of size 1: y (0.001) are not; add normalise="standard"']
    both = lockstep.train(x=1e4 * x, y=900 * x**2, hidden=[4], inputs=["x"], **arguments).advice
    assert both == ['nets learn from inputs and targets of size 1: x (1e+04), y (9e+02) are not; add normalise="standard"']
    assert advice(9 * x**2) == advice(900 * x**2, normalise="standard") == advice(900 * x, hidden=[]) == []
    start = lockstep.train(x=x, y=900 * x**2, hidden=[4], normalise="standard", **arguments).model
    assert lockstep.train(x=x, y=900 * x**2, start=start, **arguments).advice == []


def test_inputs_of_nets_in_equations_are_named_where_they_are_far_from_size_one():
    t, warm = np.linspace(0, 2, 9), np.array([300.0, 320.0, 340.0])
    u = np.stack([np.stack([np.exp(-t * (w - 280) / 50), np.full(9, w)], 1) for w in warm])
    given = dict(t=t, u=u, equations={"A": "-net(T) * A", "T": "0"}, hidden=[3], optimiser="lbfgs", iterations=2)
    assert lockstep.train(**given).advice == ['nets learn from inputs of size 1: T (3.4e+02) are not; add normalise="standard"']
    assert lockstep.train(**given, normalise="standard").advice == []
    given["equations"] = {"A": "-net(T / 300) * A", "T": "0"}
    assert lockstep.train(**given).advice == []


def test_a_training_that_fails_on_such_states_says_so():
    # Of states of 1e7 the optimiser sees the loss in units of (256^3)^2: a rate of 1e3 in the states' own.
    with pytest.raises(lockstep.InvalidArgument) as raised:
        lockstep.train(t=T, u=1e7 * U, hidden=[16], optimiser="sgd", rate=1e3 * 256.0**6, iterations=50)
    assert 'normalise="standard"' in raised.value.remedy and "lower the learning rate" in raised.value.remedy


def test_the_loss_is_that_of_the_last_phase():
    """With trained starts their distance from the measured first points counts in both."""
    random = np.random.default_rng(5)
    noisy = U + random.normal(0, 0.1, U.shape)
    noisy[3, 0] = np.nan
    noisy[0, 0] = 1.3
    many = np.stack([noisy, noisy + 0.01])
    for u in (noisy, many):
        for sigma in (None, {"x": 0.1, "v": 0.2}, np.full(u.shape, 0.1)):
            for starts in (None, {"x": "x0"}):
                parameters = {"k": {"start": 1.1}, **({"x0": {"start": 0.9}} if starts else {})}
                training = lockstep.train(t=T, u=u, equations={"x": "v", "v": "-k*x"}, parameters=parameters,
                                          precision="f64", phases="noisy", sigma=sigma, starts=starts)
                assert training.loss == pytest.approx(training.history["loss"][-1], rel=1e-9)


def test_the_farthest_number_is_told_by_a_time_that_no_other_row_has():
    seconds = 1.7e9 + 60 * np.arange(101.0)
    x = np.exp(-1e-3 * (seconds - seconds[0]))
    x[37] += 1
    of_time = lockstep.train(x=seconds[:, None], y=x, inputs=["t"], hidden=[4], iterations=20, precision="f64")
    assert of_time.errors["training"]["y0"]["largest_at"] == "t = 1700002220"
    ode = lockstep.train(t=seconds, u=x, equations={"x": "-k*x"}, parameters={"k": {"start": 1e-3}}, precision="f64",
                         phases=[{"optimiser": "lbfgs", "iterations": 2}])
    assert ode.errors["training"]["x"]["largest_at"] == "t = 1700002220"
