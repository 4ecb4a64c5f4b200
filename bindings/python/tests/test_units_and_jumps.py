"""Data in units far from 1, right-hand sides that jump, and what is said of both."""

import warnings

import numpy as np
import pytest

import lockstep

X = np.linspace(-1, 1, 200)
T = np.linspace(0, 6, 31)
ORBIT = np.linspace(0, 7, 71)


def notes_of(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(one.message) for one in caught]


@pytest.mark.parametrize("scale", [1, 1e-6, 1e-12])
def test_a_rate_does_not_depend_on_the_unit_of_the_data(scale):
    fit = lockstep.train(t=T, u=scale * np.exp(-0.5 * T), equations={"x": "-k*x"}, parameters={"k": {"start": 1.0}},
                         precision="f64")
    # Solves and data are the same function but for rtol = 1e-6, which the fit's errors are a tenth of.
    assert abs(fit.parameters["k"] - 0.5) < 1e-6
    assert float(fit.rhs.metadata["training_atol"]) == pytest.approx(1e-6 * scale, rel=1e-12)
    given = lockstep.train(t=T, u=scale * np.exp(-0.5 * T), equations={"x": "-k*x"}, parameters={"k": {"start": 1.0}},
                           precision="f64", atol=1e-6, optimiser="lbfgs", iterations=3)
    assert float(given.rhs.metadata["training_atol"]) == 1e-6


@pytest.mark.parametrize("scale", [1, 1e-5, 1e-9])
def test_a_neural_ode_does_not_depend_on_the_unit_of_the_data(scale):
    u = scale * np.stack([np.cos(ORBIT), -np.sin(ORBIT)], 1)
    fit = lockstep.train(t=ORBIT, u=u, hidden=[16], normalise="standard", precision="f64")
    assert all(of["relative"] < 1e-3 for of in fit.errors["training"].values())


# Powers of 256 leave the bits as they are; 1e-6 and 1e20 have roundings of their own.
@pytest.mark.parametrize("scale", [1e-25, 1e-9, 1e-6, 1e20])
@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("options, most", [({"optimiser": "lbfgs", "iterations": 100}, 0.02),
                                           ({"optimiser": "adam", "rate": 0.01, "iterations": 500}, 0.08)])
def test_a_regression_does_not_depend_on_the_unit_of_the_targets(scale, precision, options, most):
    def train(unit):
        return lockstep.train(x=X, y=unit * np.sin(3 * X), hidden=[16], normalise="standard", precision=precision,
                              **options)
    usual, other = train(1.0), train(scale)
    assert usual.errors["training"]["y0"]["relative"] < most
    assert other.errors["training"]["y0"]["relative"] < most
    assert 0 < other.loss < (most * scale) ** 2  # of y's own unit, and its spread is 0.69
    unit = 256.0 ** -4
    assert np.array_equal(train(unit).history["loss"] / unit ** 2, usual.history["loss"])


def test_clipping_is_in_the_unit_of_the_loss():
    def last(unit):
        fit = lockstep.train(x=X, y=unit * np.sin(3 * X), hidden=[8], normalise="standard", optimiser="sgd",
                             rate=0.1, iterations=20, clip_norm=1e-3 * unit ** 2)
        return fit.history["gradient_norm"][-1] / unit ** 2, fit.history["loss"][-1] / unit ** 2
    assert last(256.0 ** -2) == last(1.0)


def test_a_first_loss_that_overflows_is_said_to_be_that():
    with pytest.raises(lockstep.Error, match="no step has been taken yet: give data in units in which they are"):
        lockstep.train(x=X, y=1e30 * np.sin(3 * X), hidden=[4], iterations=2)


def test_components_below_their_tolerance_are_named():
    def solve(u0, **options):
        decay = lockstep.equations({"x": "-x", "y": "-y"} if len(u0) > 1 else {"x": "-x"})
        return notes_of(lambda: lockstep.solve(decay, u0, (0, 5), 6, precision="f64", **options))
    solution, notes = solve([1e-9])
    assert len(notes) == 1 and "x, never above 1e-09, has an absolute tolerance of 1e-06" in notes[0]
    assert notes[0].endswith("say 1e-15 for x")
    truth = 1e-9 * np.exp(-np.arange(6))
    assert np.abs(solution.state[0, :, 0] - truth).max() > 1e-10
    solution, notes = solve([1e-9], atol=1e-15)
    assert notes == [] and np.abs(solution.state[0, :, 0] - truth).max() < 1e-14
    assert len(solve([1e-9, 1.0])[1]) == 1 and solve([1e-9, 1.0], atol=[1e-15, 1e-6])[1] == []
    assert solve([0.0, 1.0])[1] == [] and solve([1.0, 1.0])[1] == []


JUMP = lockstep.equations({"x": "if(x < c, 1, 0.25)"}, parameters={"c": 1.0})


def derivatives(model):
    solution = lockstep.solve(model, [0.0], (0, 2), [2.0], precision="f64", rtol=1e-10, atol=1e-10)
    return notes_of(lambda: solution.vjp(np.ones((1, 1, 1)))), notes_of(lambda: solution.sensitivities())


def test_derivatives_warn_of_jumps_that_move():
    for _, notes in derivatives(JUMP):
        assert len(notes) == 1 and "behind one they are wrong; write a ramp in its place" in notes[0]
    delayed = lockstep.equations({"x": "if(t < ts, 1, 0)"}, parameters={"ts": 0.5})
    for _, notes in derivatives(delayed):
        assert len(notes) == 1 and notes[0].startswith("the derivative by ts does not see what ts does by moving a jump")


@pytest.mark.parametrize("text", ["max(x, c)", "min(x, c)", "abs(x - c)", "relu(x - c)", "clamp(x, 0, c)", "x - c",
                                  "if(x < c, x, c)", "if(x < c, c - x, 2 * (x - c))", "(x > c) * (x - c) + x",
                                  "if(t < 1, 1, 0) + c"])
def test_derivatives_do_not_warn_of_bends(text):
    for _, notes in derivatives(lockstep.equations({"x": text}, parameters={"c": 1.0})):
        assert notes == []


@pytest.mark.parametrize("text", ["if(x < 300 * c, 1, 0)", "(x > c) * 1", "if(x^2 > c, x, 2 * x)",
                                  "exp(-x) + (x < c) * (t < 1)"])
def test_derivatives_warn_of_jumps_however_written(text):
    for _, notes in derivatives(lockstep.equations({"x": text}, parameters={"c": 1.0})):
        assert len(notes) == 1 and notes[0].startswith("the right-hand side jumps where a state passes a value")


@pytest.mark.parametrize("width", [0.5, 0.01])
@pytest.mark.parametrize("method", ["tsit5", "dop853"])
@pytest.mark.parametrize("text", ["clamp((t - c) / w, 0, 1)", "ramp((t - c) / w)"])
def test_derivatives_see_a_ramp_move(text, method, width):
    models = {"ramp": lockstep.table([0, 1], [0, 1])} if "ramp" in text else {}
    model = lockstep.equations({"x": text + " - x"}, parameters={"c": 1.1, "w": width}, models=models)
    solution = lockstep.solve(model, [1], (0, 3), parameters={"c": 1.1}, method=method, precision="f64")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_end = solution.sensitivities().state_by_parameter[0, 0, 0, 0]
        back = solution.vjp(np.ones((1, 1, 1))).parameters[0]
    # x(3) holds exp(s - 3) times the ramp at s, summed over s.
    exact = -(np.exp(1.1 + width - 3) - np.exp(1.1 - 3)) / width
    assert by_end == pytest.approx(exact, rel=1e-5) and back == pytest.approx(exact, rel=1e-5)


def test_trainings_say_that_they_do_not_see_jumps_move():
    t = np.linspace(0, 3, 31)
    u = np.where(t < 1, t, 1 + 0.5 * (t - 1))
    found = lockstep.train(t=t, u=u, equations={"x": "if(x < c, 1, b)"}, parameters={"c": {"start": 1.2}, "b": 0.5},
                           precision="f64", iterations=5, optimiser="lbfgs")
    assert any(note.startswith("the right-hand side jumps where a state passes a value") for note in found.notes)
    assert any("to derivatives, which see no jump move" in note for note in found.notes)
    assert not any("leaves the fit as it is" in note for note in found.notes)
    net = lockstep.train(t=t, u=u, equations={"x": "if(x < 1, 1, net(x))"}, hidden=[4], iterations=2,
                         optimiser="adam", segment=1)
    assert any("training goes by slopes that are wrong" in line for line in net.advice)
    smooth = lockstep.train(t=t, u=u, equations={"x": "max(c, net(x))"}, parameters={"c": {"start": 0.2}}, hidden=[4],
                            iterations=2, optimiser="adam", segment=1)
    assert not any("jump" in line for line in [*smooth.advice, *smooth.notes])


def test_a_net_that_goes_round_its_own_orbit_succeeds():
    u = np.stack([np.cos(ORBIT), -np.sin(ORBIT)], 1)
    net = lockstep.train(t=ORBIT, u=u, hidden=[16], normalise="standard", precision="f64").model
    for feature, column in zip(net.inputs[0]["features"], u.T):
        margin = 0.01 * np.ptp(column)
        assert feature["minimum"] == pytest.approx(column.min() - margin, rel=1e-14)
        assert feature["maximum"] == pytest.approx(column.max() + margin, rel=1e-14)
    solution, notes = notes_of(lambda: lockstep.solve(net, u[0], (0, 7), 71, precision="f64"))
    assert list(solution.status) == [0] and notes == []


def test_excursions_show_what_sets_them_apart_from_the_bound():
    u = np.stack([np.cos(ORBIT), -np.sin(ORBIT)], 1)
    net = lockstep.train(t=ORBIT, u=u, hidden=[16], normalise="standard", precision="f64").model
    # 1.02 times the orbit's size: the bound is 1.01994 or so.
    solution, notes = notes_of(lambda: lockstep.solve(net, 1.02003 * u[0], (0, 7), 71, precision="f64"))
    assert list(solution.status) == [5] and len(notes) == 1
    for line in notes[0].split(":", 1)[1].split(";"):
        words = line.replace(",", "").split()
        bounds = [words[words.index("from") + 1], words[words.index("to") + 1]]
        assert words[-1] not in bounds


def test_advice_can_be_followed():
    y = np.sin(3 * X)
    first = lockstep.train(x=1e5 * X, y=y, hidden=[8], normalise="standard", optimiser="adam", iterations=5)
    again = lockstep.train(x=1e5 * X, y=y, start=first.model, optimiser="adam", iterations=5)
    assert again.advice == []
    bare = lockstep.train(x=X, y=y, hidden=[8], optimiser="adam", iterations=5)
    far = lockstep.train(x=1e5 * X, y=y, start=bare.model, optimiser="adam", iterations=5)
    assert len(far.advice) == 1 and "x0 (1e+05) are not; the model to start from was normalised for others" in far.advice[0]
    u = 3000 * np.stack([np.cos(ORBIT), -np.sin(ORBIT)], 1)
    orbit = lockstep.train(t=ORBIT, u=u, hidden=[4], normalise="standard", optimiser="adam", iterations=2, segment=1)
    assert lockstep.train(t=ORBIT, u=u, start=orbit.model, optimiser="adam", iterations=2, segment=1).advice == []


@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 10])
def test_any_number_of_steps_may_run_out(steps, precision):
    for system, u0, span in [("lorenz", [1, 1, 1], (0, 30)), ("lotka_volterra", [1, 1], (0, 30))]:
        solution, notes = notes_of(lambda: lockstep.solve(system, u0, span, 3, max_steps=steps, precision=precision))
        assert list(solution.status) == [4] and len(notes) == 1
        assert "raise max_steps" in notes[0] and "stiff" not in notes[0] and "too coarse" not in notes[0]


def test_jumps_that_lie_too_close_are_named_within_the_span():
    often = lockstep.equations({"x": "-x + (t % 0.001 < 0.0003)"})
    with pytest.raises(lockstep.Error, match=r"jumps every 0\.001 of time at t = 10000, expected jumps 0\.0381 apart"):
        lockstep.solve(often, [0.0], (1e4, 1e4 + 1), 3)
