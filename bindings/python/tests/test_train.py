"""Training from Python: the tool's bits, and what is refused."""

import inspect
import threading
import _thread
import warnings

import numpy as np
import pytest

import lockstep

RANDOM = np.random.default_rng(11)
X = RANDOM.uniform(-1, 1, (200, 2))
Y = np.sin(3 * X[:, :1]) * X[:, 1:]


def test_a_training_file_gives_the_bits_of_its_arguments(tmp_path):
    table = "\n".join(["a,b,c"] + [",".join(repr(float(value)) for value in row) for row in np.hstack([X, Y])])
    (tmp_path / "table.csv").write_text(table)
    (tmp_path / "train.toml").write_text("""
[net]
hidden = [12]
seed = 3
[data]
file = "table.csv"
inputs = ["a", "b"]
targets = ["c"]
normalise = "standard"
validation = 0.1
[training]
rate = 0.01
iterations = 60
batch = 50
[output]
file = "unwritten"
""")
    by_file = lockstep.train(tmp_path / "train.toml")
    by_arguments = lockstep.train(x=X, y=Y, hidden=[12], seed=3, normalise="standard", validation=0.1, rate=0.01,
                                  iterations=60, batch=50)
    assert by_file.model.digest == by_arguments.model.digest
    np.testing.assert_array_equal(by_file.history["loss"], by_arguments.history["loss"])
    assert by_file.validation_loss == by_arguments.validation_loss
    assert len(by_file.history["loss"]) == 60
    assert not list(tmp_path.glob("unwritten*"))


def test_the_reported_loss_is_the_models():
    training = lockstep.train(x=X, y=Y, hidden=[12], optimiser="lbfgs", iterations=40, precision="f64")
    residual = training.model(X) - Y
    assert training.loss == pytest.approx(np.mean(residual**2), rel=1e-12)  # one sum of 200 terms, in another order
    assert training.loss < 0.1 * np.mean(Y**2)


def test_a_training_says_how_good_it_is_on_data_it_has_not_seen():
    training = lockstep.train(x=X, y=Y, hidden=[12], optimiser="lbfgs", iterations=40, precision="f64", validation=0.25,
                              targets=["height"], units={"height": "m"})
    of = {data: errors["height"] for data, errors in training.errors.items()}
    assert (of["training"]["numbers"], of["validation"]["numbers"]) == (150, 50)
    squares = sum(each["rms"] ** 2 * each["numbers"] for each in of.values())
    residual = training.model(X) - Y
    assert squares == pytest.approx(np.sum(residual**2), rel=1e-12)  # one sum of 200 terms, in another order
    assert max(each["largest"] for each in of.values()) == pytest.approx(np.abs(residual).max(), rel=1e-14)
    assert of["training"]["unit"] == "m" and training.validation_loss == pytest.approx(of["validation"]["rms"] ** 2)
    assert "validation  height" in training.report and " m " in training.report
    assert training.model.metadata["training_errors"].startswith("data,name,unit,rms")


def test_data_that_will_not_be_learned_come_with_advice():
    few = {"hidden": [4], "optimiser": "adam", "iterations": 1}
    training = lockstep.train(x=1e4 * X, y=np.column_stack([Y, 1e5 * Y]), targets=["small", "large"], **few)
    assert ["normalise" in line for line in training.advice] == [True, False]
    assert training.advice[1].startswith("large varies 1e+05 times as much as small")
    assert lockstep.train(x=X, y=Y, **few).advice == []
    spread = np.column_stack([Y, 2.9 * Y]).std(0)
    assert lockstep.train(x=X, y=np.column_stack([Y, 2.9 * Y]), **few).advice == []
    uneven = lockstep.train(x=X, y=np.column_stack([Y, 3.1 * Y]), normalise="standard", **few).advice
    assert len(uneven) == 1 and uneven[0].startswith("y1 varies 3.1 times as much as y0, and the loss is in their own ")
    assert f'sigma={{"y0": {spread[0]:.2g}, "y1": ' in uneven[0]
    t = np.linspace(0, 2, 21)
    orbit = dict(t=t, u=np.stack([np.sin(4 * t), 4 * np.cos(4 * t)], 1), optimiser="adam", iterations=1)
    assert "u1 varies 4 times as much as u0" in "".join(lockstep.train(hidden=[4], **orbit).advice)
    assert "varies" not in "".join(lockstep.train(equations={"u0": "u1", "u1": "-k * u0"}, parameters={"k": {"start": 15.0}},
                                                  **orbit).advice)


def test_float64_is_advised_where_rounding_ended_a_training():
    def report(**keywords):
        noisy = Y + 0.1 * np.random.default_rng(4).normal(size=np.shape(Y))
        return lockstep.train(x=X, y=noisy, hidden=[], **{"optimiser": "lbfgs", "iterations": 300, **keywords}).report

    said = ('note: the last phase ended where steps win no more than float32 rounds: to go on from there, set '
            'precision="f64"')
    assert said in report().splitlines()
    for others in ({"precision": "f64"}, {"iterations": 1}, {"optimiser": "adam", "iterations": 5}):
        assert "float32 rounds" not in report(**others), others


def test_parameters_of_a_system_come_with_their_errors():
    t = np.linspace(0, 3, 16)
    exact = lockstep.solve("lotka_volterra", [[1.0, 1.0]], (0, 3), save_at=16, precision="f64",
                           parameters={"alpha": 1.5, "gamma": 3.0}).state[0]
    u = exact + 0.05 * np.random.default_rng(3).standard_normal(exact.shape)
    u[0] = exact[0]
    training = lockstep.train(t=t, u=u, system="lotka_volterra", precision="f64", states=["prey", "predator"],
                              parameters={"alpha": {"start": 1.0, "positive": True}, "gamma": {"start": 2.0}})
    assert list(training.parameters) == ["alpha", "gamma"]
    for what in ("model", "rhs"):
        with pytest.raises(lockstep.Unsupported, match=f"^{what}: found a training .*parameters"):
            getattr(training, what)
    for name, truth in {"alpha": 1.5, "gamma": 3.0}.items():
        assert abs(training.parameters[name] - truth) < 4 * training.standard_errors[name] < 0.5
        low, high = training.intervals[name]
        assert low < training.parameters[name] < high
    assert training.correlations.shape == (2, 2) and training.correlations[0, 0] == 1
    assert "+-" in training.report and "first points taken to be exact" in training.notes[0]
    assert "alpha, gamma" in repr(training)


def test_parameters_that_data_leave_open_have_no_errors():
    t = np.linspace(0, 1, 11)
    training = lockstep.train(t=t, u=np.exp(-t)[:, None], equations={"x": "-a * b * x"}, precision="f64",
                              parameters={"a": {"start": 0.5}, "b": {"start": 1.0}})
    assert np.isnan(training.standard_errors["a"])
    assert "do not determine the parameters: a 1 % up, b 1 % down" in training.notes[0] or \
        "a 1 % down, b 1 % up" in training.notes[0]


DECAY = dict(equations={"x": "-k * x"}, parameters={"k": {"start": 0.3, "positive": True}}, precision="f64")


def test_starts_that_were_not_measured_are_found():
    t = np.linspace(0, 6, 31)
    exact = lockstep.solve("lotka_volterra", [[1.0, 1.0], [2.0, 0.5]], (0, 6), save_at=31, precision="f64",
                           parameters={"alpha": 1.5, "gamma": 3.0}).state
    u = exact + 0.02 * np.random.default_rng(3).standard_normal(exact.shape)
    u[0, :4, 1] = u[1, :, 1] = np.nan
    arguments = dict(t=t, u=u, system="lotka_volterra", precision="f64", states=["prey", "predator"],
                     parameters={"alpha": {"start": 1.2, "positive": True}, "gamma": {"start": 2.0}})
    with pytest.raises(lockstep.Error, match='trajectory 0, point 0, component predator: found NaN.*phases="noisy"'):
        lockstep.train(**arguments)
    training = lockstep.train(**arguments, phases="noisy")
    for name, truth in {"alpha": 1.5, "gamma": 3.0}.items():
        assert abs(training.parameters[name] - truth) < 4 * training.standard_errors[name] < 0.1
    assert "89 numbers" in training.notes[0] and "6 unknowns, starts among them" in training.notes[0]
    assert training.errors["training"]["predator"]["numbers"] == 27
    with pytest.raises(lockstep.Error, match="validation: found no predator at the first point of trajectory"):
        lockstep.train(**arguments, phases="noisy", validation=0.5)


def test_states_that_nobody_measures_start_at_parameters():
    t = np.linspace(0, 6, 31)
    exact = lockstep.solve("lotka_volterra", [[1.0, 0.5]], (0, 6), save_at=31, precision="f64",
                           parameters={"alpha": 1.5, "gamma": 3.0}).state[0]
    u = exact + 0.02 * np.random.default_rng(3).standard_normal(exact.shape)
    u[:, 1] = np.nan
    equations = {"prey": "a * prey - prey * predator", "predator": "prey * predator - 3 * predator"}
    arguments = dict(t=t, u=u, equations=equations, precision="f64",
                     parameters={"a": {"start": 1.2, "positive": True}, "y0": {"start": 1.0, "positive": True}})
    with pytest.raises(lockstep.Error, match="states: found no number of predator.*starts={.predator"):
        lockstep.train(**arguments, phases="noisy")
    for phases in ("noisy", "recommended"):
        if phases == "recommended":
            u[0, 0] = exact[0, 0]
        training = lockstep.train(**arguments, phases=phases, starts={"predator": "y0"})
        for name, truth in {"a": 1.5, "y0": 0.5}.items():
            assert abs(training.parameters[name] - truth) < 4 * training.standard_errors[name] < 0.1
        assert "31 numbers" in training.notes[0] if phases == "noisy" else "30 numbers" in training.notes[0]
        assert training.errors["training"]["predator"]["numbers"] == 0
    known = lockstep.train(**{**arguments, "parameters": {"a": {"start": 1.2}}}, starts={"predator": 0.5})
    assert known.standard_errors["a"] < training.standard_errors["a"]
    with pytest.raises(lockstep.Error, match=r'starts.predator: found the time t in "exp\(-t\)", expected a number'):
        lockstep.train(**arguments, starts={"predator": "exp(-t)"})


def test_a_parameter_called_as_a_constant_is_one():
    t = np.linspace(0, 2, 11)
    training = lockstep.train(t=t, u=0.2 * np.exp(-t)[:, None], equations={"x": "-k * x"}, starts={"x": "e"},
                              parameters={"k": {"start": 0.5}, "e": {"start": 1.0}}, precision="f64")
    assert "11 numbers" in training.notes[0]
    assert abs(training.parameters["e"] - 0.2) < 1e-6


def test_each_measurement_counts_by_its_own_error():
    """k of exp(-k t) from measured logarithms would be a weighed mean: to first order in the noise it is here, with the
    errors of absolute_sigma. Quadratic terms of noise of at most 1e-4 are below 1e-6."""
    t = np.linspace(0, 2, 21)
    random = np.random.default_rng(2)
    sigma = random.uniform(1e-6, 1e-4, (21, 1))
    exact = np.exp(-0.5 * t)[:, None]
    u = exact + sigma * random.standard_normal((21, 1)) * (t > 0)[:, None]
    u[7] = sigma[7] = np.nan
    slope = -(t[:, None] * exact) / sigma
    there = ~np.isnan(slope) & (t > 0)[:, None]
    k = 0.5 + np.sum((slope * (u - exact) / sigma)[there]) / np.sum(slope[there] ** 2)
    error = 1 / np.sqrt(np.sum(slope[there] ** 2))
    tight = dict(method="dop853", rtol=1e-11, atol=1e-11)
    training = lockstep.train(t=t, u=u, sigma=sigma, **DECAY, **tight)
    assert abs(training.parameters["k"] - k) < 1e-6 * 0.5
    assert abs(training.standard_errors["k"] - error) < 1e-4 * error
    assert "19 numbers and their sigma" in training.notes[0]
    assert 0.3 < training.errors["training"]["x"]["in_sigma"] < 2
    plain = lockstep.train(t=t, u=u, **DECAY, **tight)
    assert abs(plain.parameters["k"] - k) > error and "in_sigma" not in plain.errors["training"]["x"]
    relative = lockstep.train(t=t, u=u, sigma=sigma, absolute_sigma=False, **DECAY, **tight)
    assert relative.parameters == training.parameters
    assert relative.standard_errors["k"] != training.standard_errors["k"]
    # Lists of arrays of unequal length take lists.
    both = lockstep.train(t=[t, t[:5]], u=[u, u[:5]], sigma=[sigma, sigma[:5]], **DECAY, **tight)
    assert both.standard_errors["k"] < training.standard_errors["k"]


def test_errors_and_gaps_of_a_table():
    x = np.linspace(0, 1, 50)
    y = np.where(np.arange(50) % 2, 3.0, 0.0)
    sigma = np.where(np.arange(50) % 2, 2.0, 1.0)
    line = dict(hidden=[], optimiser="lbfgs", iterations=50, precision="f64")
    # Constants weigh 1 and 1/4: the least mean of squares is 0.9, and 0.6 is where (to what a slope in x changes).
    training = lockstep.train(x=np.ones(50), y=y, sigma=sigma, **line)
    assert abs(training.loss - 0.9) < 1e-9 and abs(training.model(np.ones((1, 1)))[0, 0] - 0.6) < 1e-5
    y[3] = np.nan
    with pytest.raises(lockstep.InvalidArgument, match=r'y\[3\].*missing="skip"'):
        lockstep.train(x=x, y=y, **line)
    skipped = lockstep.train(x=x, y=y, missing="skip", **line)
    rest = lockstep.train(x=np.delete(x, 3), y=np.delete(y, 3), **line)
    assert skipped.loss == rest.loss
    with pytest.raises(lockstep.InvalidArgument, match=r"sigma\[4\], of y0: found sigma 0"):
        lockstep.train(x=x, y=y, missing="skip", sigma=sigma * (np.arange(50) != 4), **line)
    with pytest.raises(lockstep.InvalidArgument, match="sigma: found shape"):
        lockstep.train(x=x, y=y, missing="skip", sigma=sigma[:20], **line)
    by_name = lockstep.train(x=x, y=y, missing="skip", sigma={"y0": 2.0}, **line)
    assert abs(by_name.loss - rest.loss / 4) < 1e-9


def test_the_worst_trajectory_is_named():
    t = np.linspace(0, 1, 11)
    u = np.stack([np.stack([start * np.exp(-t)], 1) for start in (1.0, 2.0, 0.5)])
    u[1, 5:] += 0.3
    training = lockstep.train(t=t, u=u, equations={"x": "-k * x"}, parameters={"k": {"start": 0.5}}, precision="f64",
                              units={"x": "mol", "t": "s"})
    assert "worst: trajectory 1 of the training data" in training.report
    assert training.errors["training"]["x"]["largest_at"].startswith("trajectory 1, t = ")
    assert lockstep.solve(training.rhs, [1.0], (0, 1)).units == {"x": "mol"}


def test_training_goes_on_from_a_model():
    first = lockstep.train(x=X, y=Y, hidden=[12], optimiser="lbfgs", iterations=20, precision="f64")
    second = lockstep.train(x=X, y=Y, start=first.model, optimiser="lbfgs", iterations=20, precision="f64")
    assert second.loss < first.loss


def test_a_neural_ode_learns_a_rotation(tmp_path):
    t = np.linspace(0, 3, 31)
    u = np.stack([np.cos(t), -np.sin(t)], axis=1)
    training = lockstep.train(t=t, u=u, hidden=[], states=["x", "v"], target=1e-6, output=tmp_path / "net")
    assert training.loss <= 1e-6
    again = lockstep.load(tmp_path / "net.safetensors")
    assert again.digest == training.model.digest
    solution = lockstep.solve(again, [1.0, 0.0], (0, 3), t, guard="ignore")
    # The loss is the sum of squares over points and components of this very solve, up to float32 and tolerances.
    assert np.sum((solution.state[0] - u) ** 2) < 2e-6
    with pytest.raises(lockstep.FileError):
        lockstep.train(t=t, u=u, hidden=[], target=1e-6, output=tmp_path / "net")


def test_trajectories_may_differ_in_length():
    t = [np.linspace(0, end, points) for end, points in [(3, 31), (1, 11), (2, 17)]]
    u = [np.stack([a * np.cos(s), -a * np.sin(s)], axis=1) for a, s in zip([1, 2, 3], t)]
    training = lockstep.train(t=t, u=u, hidden=[], target=1e-6)
    assert training.loss <= 1e-6
    times, states = np.full((3, 31), np.nan), np.full((3, 31, 2), np.nan)
    for i in range(3):
        times[i, :len(t[i])], states[i, :len(t[i])] = t[i], u[i]
    assert lockstep.train(t=times, u=states, hidden=[], target=1e-6).model.digest == training.model.digest
    with pytest.raises(lockstep.Error, match=r"t\[1\]: found shape \(10,\), expected \(11,\)"):
        lockstep.train(t=[t[0], t[1][1:], t[2]], u=u, hidden=[])
    states[1, 0, 1] = np.nan
    with pytest.raises(lockstep.Error, match="u, trajectory 1, point 0, component u1: found NaN.*noisy"):
        lockstep.train(t=times, u=states, hidden=[])


def test_a_trajectory_that_diverges_is_left_out_where_asked():
    # u' = (w u)^2 has its pole at 1 / (w^2 u0): Glorot's |w| is below 1.74, so that 1 and 2 reach t = 0.1.
    u = np.array([[1, 1], [1e6, 1], [2, 2]])[:, :, np.newaxis]
    arguments = dict(t=[0, 0.1], u=u, hidden=[], activations=["square"], optimiser="adam", iterations=2)
    with pytest.raises(lockstep.Error, match="trajectory 1"):
        lockstep.train(**arguments)
    training = lockstep.train(**arguments, failed="leave_out")
    assert "without 1 of 3 trajectories (1: " in training.loss_name
    assert 0 < training.loss < 10


def test_an_interrupted_training_keeps_the_best_so_far():
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(lockstep.Interrupted) as caught:
        lockstep.train(x=X, y=Y, hidden=[64, 64], iterations=100_000_000)
    timer.join()
    training = caught.value.result
    assert 0 < len(training.history["loss"]) < 100_000_000
    np.testing.assert_allclose(training.loss, np.mean((training.model(X) - Y) ** 2), rtol=1e-3)  # float32


def test_a_training_is_interrupted_within_its_first_iteration():
    # 3,200 trajectories of 100,000 steps take a minute forth alone.
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(lockstep.Interrupted) as caught:
        lockstep.train(t=[0, 1], u=np.linspace(1, 2, 6400).reshape(3200, 2, 1), equations={"x": "-k * x"},
                       parameters={"k": {"start": 1}}, optimiser="adam", iterations=2, dt=1e-5, precision="f64")
    timer.join()
    training = caught.value.result
    assert len(training.history["loss"]) == 0
    assert training.parameters == {"k": 1}
    assert not training.standard_errors and not training.errors


@pytest.mark.parametrize("arguments, words", [
    (dict(y=None), "x and y"),
    (dict(hidden=4), "hidden: found int, expected a list"),
    (dict(x=None, y=None, t=[0, 1], u=[[0], [1]]), "iterations: found a value beside the recommended phases.*name one"),
    (dict(x=None, y=None, t=[0, 1], u=[[0], [1]], iterations=None, segment=0),
     'segment: found a value beside the recommended phases.*name one: optimiser="lbfgs"'),
    (dict(x=None, y=None, t=[0, 1], u=[[0], [1]], iterations=None, segmnt=0), "did you mean"),
    (dict(t=[0, 1], u=[[0], [1]]), "x and y"),
    (dict(y=Y[:100]), "100 samples, expected 200"),
    (dict(x=np.where(X > 0.9, np.nan, X)), r"x\[\d+\].*NaN"),
    (dict(hidden=None), "hidden"),
    (dict(hidden=[0]), "hidden"),
    (dict(optimiser="adamm"), "adam"),
    (dict(rate=-1.0), "rate"),
    (dict(shedule="cosine"), "schedule"),
    (dict(inputs=["a"]), "inputs.*1 names, expected 2"),
    (dict(segment=3), "segment"),
    (dict(starts=4), "starts: found int, expected a dict of numbers or expressions"),
    (dict(starts={"y": 1}), "starts: found starts in a regression"),
])
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(lockstep.Error, match=words) as caught:
        lockstep.train(**{"x": X, "y": Y, "hidden": [4], "iterations": 2, **arguments})
    assert "arguments:" not in str(caught.value)


def test_pictures_are_drawn(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    training = lockstep.train(x=X, y=Y, hidden=[4], iterations=5, validation=0.2)
    solution = lockstep.solve("lorenz", {"normal": {"mean": [1, 0, 0], "std": 0.1}}, (0, 1), 11, trajectories=20)
    axes = lockstep.plot.loss(training)
    assert len(axes.lines) == 2
    assert len(lockstep.plot.time_series(solution).lines) == 3
    assert len(lockstep.plot.phase(solution, "x", "z", trajectories=[0, 1]).lines) == 2
    spread = lockstep.plot.spread(solution, "z")
    # The mean of the two in the middle, in float32 or float64.
    np.testing.assert_allclose(spread.lines[0].get_ydata(), np.median(solution["z"], axis=0), rtol=2**-23)
    spread.figure.savefig(tmp_path / "spread.png")
    assert (spread.get_xlabel(), spread.get_ylabel()) == ("time", "z")
    fall = lockstep.equations({"x": "v", "v": "-9.81"})
    drawn = lockstep.solve(fall, [2, 0], (0, 1), 5, units={"x": "m"}, time_unit="s")
    phase, series = lockstep.plot.phase(drawn), lockstep.plot.time_series(drawn)
    assert (phase.get_xlabel(), phase.get_ylabel(), series.get_xlabel()) == ("x (m)", "v", "time (s)")
    assert [line.get_label() for line in series.lines] == ["x (m)", "v"]


def test_a_fit_is_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    regression = lockstep.train(x=X, y=Y, hidden=[4], iterations=5, validation=0.2, units={"y": "m"}, targets=["y"])
    (panel,) = lockstep.plot.fit(regression)
    training, validation, diagonal = panel.lines
    assert len(training.get_xdata()) + len(validation.get_xdata()) == len(X)
    np.testing.assert_allclose(np.sort(np.concatenate([training.get_xdata(), validation.get_xdata()])), np.sort(np.ravel(Y)))
    assert panel.get_xlabel() == "true y (m)" and "RMS" in panel.get_title()
    t = np.linspace(0, 1, 6)
    u = np.stack([np.exp(-k * t) for k in (1, 2, 3)])[..., None]
    decay = lockstep.train(t=t, u=u, sigma=0.1, equations={"x": "-k * x"}, parameters={"k": {"start": 1}}, precision="f64",
                           units={"x": "m", "t": "s"})
    panels = lockstep.plot.fit(decay)
    assert panels.shape[0] == 1 and 1 <= panels.shape[1] <= 3
    for panel in panels[0]:
        curve = panel.lines[0]
        assert panel.get_title().startswith("training, ")
        np.testing.assert_allclose(curve.get_ydata(), np.exp(-decay.parameters["k"] * curve.get_xdata()), atol=1e-4)
        assert panel.get_xlabel() == "t (s)"
    assert lockstep.plot.fit(decay, axes=panels).shape == panels.shape
    with pytest.raises(lockstep.InvalidArgument, match="^axes: found 7, expected "):
        lockstep.plot.fit(decay, axes=[panel] * 7)


def test_harm_is_warned_of_in_pythons_words():
    t = np.linspace(0, 1, 11)
    states = np.stack([1e5 * np.sin(t), np.cos(t)], 1)
    with pytest.warns(UserWarning) as caught:
        training = lockstep.train(t=t, u=states, hidden=[2], optimiser="adam", iterations=2)
    said = [str(one.message) for one in caught]
    assert all(one.filename == __file__ for one in caught)
    assert any(text.endswith('u0 (8.4e+04) are not; add normalise="standard"') for text in said)
    assert any('sigma={"u0": ' in text and text.endswith(" counts them alike") for text in said)
    assert any(text.startswith("the fit explains little of the data") for text in said)
    assert said == [*training.advice, *training.notes]
    assert "[data]" not in training.report + "".join(said)
    late = 1.7e9 + 600 * t
    with pytest.warns(UserWarning, match=r"reads the time in float32, whose spacing is 1.3e\+02 at t = 1.7e\+09, for a span of 600"):
        lockstep.train(t=late, u=np.sin(t)[:, None], hidden=[2], with_time=True, optimiser="adam", iterations=2)
    equations = {"x": "a * cos(t / 600)"}
    with pytest.warns(UserWarning, match="reads the time in float32"):
        lockstep.train(t=late, u=np.sin(t), equations=equations, parameters={"a": {"start": 1}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = lockstep.train(t=600 * t, u=600 * np.sin(t), equations=equations, parameters={"a": {"start": 1}}, precision="f64")
        assert fine.notes and "Gauss-Newton" in fine.notes[0]  # what is to be known, and no harm
        lockstep.train(t=late, u=np.exp(t), equations={"x": "a * x"}, parameters={"a": {"start": 1e-3}}, precision="f64")


def test_what_is_known_beforehand_of_a_parameter_is_a_measurement_of_a_state():
    """docs/training.md: a state that stands still at k, measured once as the prior's mean with its sigma: the estimate is
    the largest of the posterior, that of least squares over both, which is linear here."""
    t = np.linspace(0, 2, 9)
    noise = np.random.default_rng(3).normal(0, 0.2, t.size)
    y = 1 + 0.7 * t + noise
    mean, deviation, sigma = 0.4, 0.1, 0.2
    u = np.stack([y, np.full(t.size, np.nan)], 1)
    u[0, 1] = mean
    s = np.stack([np.full(t.size, sigma), np.full(t.size, deviation)], 1)
    fit = lockstep.train(t=t, u=u, sigma=s, equations={"x": "k", "pk": "0"}, parameters={"k": {"start": 1}},
                         starts={"x": 1, "pk": "k"}, precision="f64", rtol=1e-10, atol=1e-10)
    weight = (t**2).sum() / sigma**2 + 1 / deviation**2  # x = 1 + k t: the normal equations of one unknown
    expected = ((t * (y - 1)).sum() / sigma**2 + mean / deviation**2) / weight
    assert fit.parameters["k"] == pytest.approx(expected, rel=1e-6)
    assert fit.standard_errors["k"] == pytest.approx(weight**-0.5, rel=1e-4)
    alone = (t * (y - 1)).sum() / (t**2).sum()
    assert abs(expected - alone) > 0.02  # the prior counts


def test_a_net_inside_equations_is_trained():
    t = np.linspace(0, 2, 21)
    true = lockstep.equations({"x": "v", "v": "-2 * sin(x) - 0.3*v"})
    u = lockstep.solve(true, [[1, 0], [-1, 2]], (0, 2), t, precision="f64", rtol=1e-9, atol=1e-9).state
    training = lockstep.train(t=t, u=u, hidden=[], equations={"x": "v", "v": "-g * sin(x) + net(v)"},
                              parameters={"g": 2}, optimiser="lbfgs", iterations=30, precision="f64")
    assert [f["name"] for f in training.model.inputs[0]["features"]] == ["v"]
    assert abs(training.model(np.array([1.0]))[0] + 0.3) < 1e-4
    # The equations know what their net was trained on.
    trained_on, = training.rhs.calls[0]["inputs"][0]["features"]
    assert trained_on == training.model.inputs[0]["features"][0] and np.isfinite(trained_on["maximum"])
    fast = [0, trained_on["maximum"] + 1]
    assert list(lockstep.solve(training.rhs, [[0.1, 0], fast], (0, 0.1)).status) == [0, 5]
    clamped, free = (lockstep.solve(training.rhs, fast, (0, 0.1), guard=guard, precision="f64").state[0, -1]
                     for guard in ("clamp", "ignore"))
    assert clamped[0] > free[0] > 0.1 * trained_on["maximum"]  # less drag, and x follows v as it is


def test_parameters_of_equations_are_found():
    true = lockstep.equations({"x": "v", "v": "-2 * sin(x) - 0.3*v"})
    t = np.linspace(0, 3, 31)
    u = lockstep.solve(true, [1, 0], (0, 3), t, rtol=1e-9, atol=1e-9, precision="f64").state[0]
    training = lockstep.train(t=t, u=u, equations={"x": "v", "v": "-g * sin(x) - k * v"}, precision="f64",
                              parameters={"g": {"start": 1.5}, "k": {"start": 0.1, "positive": True}})
    assert training.models == {} and training.model is training.rhs and "equations" in repr(training)
    assert training.parameters == pytest.approx({"g": 2, "k": 0.3}, abs=1e-5)
    again = lockstep.solve(training.model, [1, 0], (0, 3), t, precision="f64", guard="ignore").state[0]
    np.testing.assert_allclose(again, u, atol=1e-5)  # solves to 1e-6


def test_nets_are_trained_beside_one_that_is_kept(tmp_path):
    t = np.linspace(0, 1, 11)
    u = np.stack([np.exp(-t), np.cos(t)], axis=1)
    kept = lockstep.train(t=t, u=u[:, :1], hidden=[], iterations=5, optimiser="lbfgs").model
    arguments = dict(t=t, u=u, equations={"x": "known(x) + a(x, y)", "y": "b(x)[0] - a(y, x)"}, iterations=5,
                     models={"known": kept}, optimiser="lbfgs", output=tmp_path / "net")
    training = lockstep.train(nets={"a": {"hidden": [3]}, "b": {"hidden": [2], "seed": 4}}, **arguments)
    assert list(training.models) == ["a", "b"] and training.model is training.rhs and training.parameters == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "net_a.h5", "net_a.safetensors", "net_b.h5", "net_b.safetensors", "net_rhs.h5"]
    kept.save(tmp_path / "known.h5")
    assert lockstep.load(tmp_path / "net_rhs.h5").digest == training.rhs.digest
    more = lockstep.train(nets={name: {"start": model} for name, model in training.models.items()},
                          overwrite=True, **(arguments | {"models": {"known": tmp_path / "known.h5"}}))
    assert more.loss < training.loss
    with pytest.raises(lockstep.Error, match="hidden: found a value beside nets"):
        lockstep.train(nets={"a": {"hidden": [3]}}, hidden=[2], **arguments)
    with pytest.raises(lockstep.Error, match="models: found nets without equations"):
        lockstep.train(t=t, u=u, hidden=[2], models={"known": kept})


def test_trajectories_of_one_state_are_read_as_the_times_are():
    time = np.linspace(0, 1, 4)
    t, u = np.tile(time, (4, 1)), np.exp(-np.outer([1, 2, 3, 4], time))  # as many trajectories as times
    arguments = {"equations": {"x": "-k * x"}, "parameters": {"k": {"start": 1}}, "optimiser": "adam", "iterations": 2}
    expected = lockstep.train(t=t, u=u[..., None], **arguments)
    for data in ({"t": t, "u": u}, {"t": list(t), "u": list(u)}, {"t": time, "u": u[..., None]}):
        assert lockstep.train(**data, **arguments).parameters == expected.parameters
    weighed = lockstep.train(t=t, u=u, sigma=np.full((4, 4), 0.1), **arguments)
    assert weighed.parameters == lockstep.train(t=t, u=u, sigma=0.1, **arguments).parameters
    ragged = lockstep.train(t=[t[0], t[1, :3]], u=[u[0], u[1, :3]], **arguments)
    assert ragged.loss == lockstep.train(t=[t[0], t[1, :3]], u=[u[0, :, None], u[1, :3, None]], **arguments).loss
    for other in (u, u[:3]):
        with pytest.raises(lockstep.InvalidArgument, match=r"trajectories of one component, \[trajectory, time\], give u\[..., None\]"):
            lockstep.train(t=time, u=other, **arguments)


def test_one_sigma_serves_for_all():
    x = np.linspace(0, 1, 5)
    arguments = {"x": x, "y": np.stack([x, x**2], 1), "hidden": [2], "targets": ["a", "b"], "optimiser": "adam", "iterations": 2}
    assert lockstep.train(sigma=0.1, **arguments).loss == lockstep.train(sigma={"a": 0.1, "b": 0.1}, **arguments).loss
    assert lockstep.train(sigma=np.float32(0.5), **arguments).loss == lockstep.train(sigma={"a": 0.5, "b": 0.5}, **arguments).loss


def test_phases_are_dicts_and_have_what_is_theirs():
    arguments = {"x": np.arange(4.0), "y": np.arange(4.0), "hidden": [2]}
    adam = {"optimiser": "adam", "iterations": 2}
    assert lockstep.train(phases=adam, **arguments).loss == lockstep.train(phases=[adam], **arguments).loss
    for key, value in (("iterations", 5), ("optimiser", "lbfgs"), ("schedule", "cosine")):
        with pytest.raises(lockstep.InvalidArgument, match=f"^{key}: found a value beside phases, which have their own, expected "
                           "none; put it into the dict of each phase"):
            lockstep.train(phases=[adam], **{key: value}, **arguments)
    for wrong, words in ((["adam"], r"phases\[0\]: found str"), (5, "phases: found int"), ([adam, None], r"phases\[1\]: found None")):
        with pytest.raises(lockstep.WrongType, match=f"^{words}.*, expected a list with a dict for each phase"):
            lockstep.train(phases=wrong, **arguments)


def test_one_series_of_one_state_needs_no_other_dimensions():
    t = np.linspace(0, 4, 41)
    u = np.exp(-0.7 * t)
    given = {"equations": {"x": "-k * x"}, "parameters": {"k": {"start": 0.2}}, "precision": "f64"}
    column = lockstep.train(t=t, u=u[:, None], sigma=np.full((41, 1), 0.1), **given)
    for plain in (lockstep.train(t=t, u=u, sigma=np.full(41, 0.1), **given),
                  lockstep.train(t=np.tile(t, 2), u=np.tile(u, 2), sigma=np.full(82, 0.1),
                                 trajectory=np.repeat(["a", "b"], 41), **given)):
        assert plain.parameters["k"] == pytest.approx(0.7, abs=1e-6) == column.parameters["k"]
    with pytest.raises(lockstep.InvalidArgument, match="t: found 41 points, expected 40"):
        lockstep.train(t=t, u=u[:-1], **given)


def test_a_parameter_that_nothing_determines_leaves_the_others_their_errors():
    t = np.linspace(0, 3, 30)
    x = np.exp(-0.7 * t) + np.random.default_rng(0).normal(0, 0.02, 30)
    both = {"k": {"start": 1}, "q": {"start": 1}}
    with pytest.warns(UserWarning, match="the data do not determine the parameters: q 1 % up leaves the fit as it is"):
        training = lockstep.train(t=t, u=x, equations={"x": "-k * x"}, parameters=both, precision="f64")
    alone = lockstep.train(t=t, u=x, equations={"x": "-k * x"}, parameters={"k": {"start": 1}}, precision="f64")
    assert training.standard_errors["k"] == pytest.approx(alone.standard_errors["k"], rel=1e-6)
    assert training.intervals["k"] == pytest.approx(alone.intervals["k"], rel=1e-6)
    assert np.isnan(training.standard_errors["q"]) and np.isnan(training.intervals["q"]).all()
    np.testing.assert_array_equal(np.isnan(training.correlations), [[False, True], [True, True]])
    assert "not determined" in training.report and "+-" in training.report
    assert training.rhs.metadata["training_parameters"].count("nan") == 6


def epidemic(seed):
    """The beginning of an epidemic of which a share r of 0.3 was counted: what it says of r is next to nothing."""
    t = np.linspace(0, 8, 20)
    equations = {"S": "-b*S*I", "I": "b*S*I-g*I"}
    truth = {"b": 0.5, "g": 0.2, "i0": 0.01, "r": 0.3}
    exact = lockstep.solve(lockstep.equations(equations, parameters={"b": 0.5, "g": 0.2}), [[0.99, 0.01]], (0, 8), 20,
                           precision="f64", rtol=1e-10, atol=1e-12).state[0]
    u = np.full((20, 3), np.nan)
    u[:, 2] = 0.3 * exact[:, 1] + np.random.default_rng(seed).normal(0, 2e-4, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        training = lockstep.train(
            t=t, u=u, equations={**equations, "C": "r*(b*S*I-g*I)"}, starts={"S": "1-i0", "I": "i0", "C": "r*i0"},
            parameters={"b": {"start": 1, "positive": True}, "g": {"start": .5, "positive": True},
                        "i0": {"start": .05, "positive": True}, "r": {"start": .5, "min": 0, "max": 1}},
            precision="f64")
    return truth, training


@pytest.mark.parametrize("seed", [1, 4, 11, 15])
def test_a_parameter_that_came_to_its_bound_by_chance_does_not_narrow_the_others(seed):
    truth, training = epidemic(seed)
    assert training.parameters["r"] > 0.95
    for name, value in truth.items():
        low, high = training.intervals[name]
        assert low <= value <= high, name
    assert not any("at its bound" in note for note in training.notes)


def test_the_states_of_the_fit_begin_where_it_found_them():
    t = [np.linspace(0, 6, 31), np.linspace(0, 4, 21)]
    random = np.random.default_rng(5)
    exact = [start * np.exp(-0.5 * times) for start, times in zip((2.0, 3.0), t)]
    u = [(x + random.normal(0, 0.1, x.size))[:, None] for x in exact]
    u[0][0] = np.nan
    training = lockstep.train(t=t, u=u, phases="noisy", states=["x"], **DECAY)
    assert training.states.shape == (2, 31, 1) and training.times.shape == (2, 31)
    assert training.trajectories == ["0", "1"]
    np.testing.assert_array_equal(training.times[1, :21], t[1])
    assert np.isnan(training.states[1, 21:]).all() and np.isnan(training.times[1, 21:]).all()
    k = training.parameters["k"]
    for i, times in enumerate(t):
        found = training.states[i, :times.size, 0]
        np.testing.assert_allclose(found, found[0] * np.exp(-k * times), rtol=1e-4)
        assert abs(found[0] - exact[i][0]) < 0.2
    residuals = np.concatenate([u[i][1:, 0] - training.states[i, 1:t[i].size, 0] for i in range(2)])
    np.testing.assert_array_equal(np.concatenate([training.residuals[i, 1:t[i].size, 0] for i in range(2)]), residuals)
    assert np.isnan(training.residuals[0, 0]).all() and np.isnan(training.residuals[1, 21:]).all()
    assert training.errors["training"]["x"]["rms"] == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-12)
    by_label = lockstep.train(t=np.concatenate(t), u=np.concatenate(u)[:, 0], trajectory=["a"] * 31 + ["b"] * 21,
                              phases="noisy", states=["x"], **DECAY)
    assert by_label.trajectories == ["a", "b"]
    regression = lockstep.train(x=X, y=Y, hidden=[4], optimiser="adam", iterations=1)
    assert regression.states.size == 0 and regression.residuals.size == 0 and regression.trajectories == []


def test_residuals_are_of_the_trajectories_that_were_trained_on():
    t = np.linspace(0, 4, 9)
    u = (np.array([1.0, 2, 3, 4, 5])[:, None] * np.exp(-0.5 * t))[..., None]
    training = lockstep.train(t=t, u=u, validation=0.4, states=["x"], phases="recommended", **DECAY)
    assert training.residuals.shape == (3, 9, 1) and len(training.trajectories) == 3
    for i, number in enumerate(map(int, training.trajectories)):
        np.testing.assert_array_equal(training.residuals[i], u[number] - training.states[i])


def test_what_was_reached_before_a_phase_that_cannot_begin_is_with_the_error():
    t = np.linspace(0, 1.5, 16)
    u = (1 / (1 - 0.5 * t))[:, None]
    growth = dict(t=t, u=u, equations={"x": "k * x^2"}, parameters={"k": {"start": 2.5}}, precision="f64")
    short = {"optimiser": "adam", "rate": 1e-9, "iterations": 2, "segment": 1}
    with pytest.raises(lockstep.InvalidArgument, match=r"iteration 2 \(phase 2, 0\), trajectory 0: found") as caught:
        lockstep.train(phases=[short, {"optimiser": "lbfgs", "iterations": 5}], **growth)
    assert caught.value.result.parameters["k"] == pytest.approx(2.5, abs=1e-6)
    assert len(caught.value.result.history["loss"]) == 2
    with pytest.raises(lockstep.InvalidArgument, match="start from parameters that are nearer") as caught:
        lockstep.train(optimiser="lbfgs", iterations=5, **growth)
    assert caught.value.result is None


def test_beside_a_net_errors_allow_for_what_the_net_could_do():
    t = np.linspace(0, 6, 40)
    random = np.random.default_rng(2)
    starts = (0.5, 1.5, 3.0)
    u = np.stack([1 + (start - 1) * np.exp(-0.8 * t) for start in starts])[:, :, None]
    u = u + random.normal(0, 0.02, u.shape)
    with pytest.warns(UserWarning, match="beside nets that can make up for it, the data do not determine the parameters: c "):
        training = lockstep.train(t=t, u=u, equations={"x": "c + net(x)"}, parameters={"c": {"start": 0.3}}, hidden=[4],
                                  phases="noisy", normalise="standard", precision="f64")
    assert training.left_by_nets == {"c": 0} and np.isnan(training.standard_errors["c"])
    many = dict(t=t[:12], u=u[:1, :12], equations={"x": "c + net(x)"}, parameters={"c": {"start": 0.3}}, hidden=[16, 16],
                phases=[{"optimiser": "lbfgs", "iterations": 20}], normalise="standard", precision="f64")
    with pytest.warns(UserWarning, match="not ones of the truth"):
        training = lockstep.train(**many)
    assert "95 % given the nets" in training.report and not training.left_by_nets


def test_trainings_from_rest_say_that_their_slopes_are_wrong():
    t = np.r_[0, 12, 24, np.arange(25, 60, 2.0)]
    states = np.full((len(t), 2), np.nan)
    states[:, 1] = 5 - 3 * np.exp(-0.1 * np.abs(t - 30)) * (t > 24)
    with pytest.warns(UserWarning, match="training goes by slopes that are wrong: steps are too long for them"):
        training = lockstep.train(
            t=t, u=states, starts={"C": 0, "R": 5},
            equations={"C": "-k * C", "R": "kin * (1 - C / (C + 1)) - kout * R"}, precision="f64",
            parameters={"k": 0.2, "kin": {"start": 10, "positive": True}, "kout": {"start": 2, "positive": True}},
            impulses={"time": 24, "component": "C", "change": 10},
            phases=[{"optimiser": "lbfgs", "iterations": 5}])
    assert not any("do not determine" in note for note in training.notes)
    assert not training.standard_errors


def test_it_goes_on_from_a_file(tmp_path):
    x = np.linspace(-1, 1, 21)
    net = lockstep.train(x=x, y=x**2, hidden=[4], iterations=5).model
    net.save(tmp_path / "net.h5")
    on = [lockstep.train(x=x, y=x**2, start=start, iterations=5).model.digest for start in (net, tmp_path / "net.h5",
                                                                                           str(tmp_path / "net.h5"))]
    assert on[0] == on[1] == on[2] != net.digest
    t, u = np.linspace(0, 1, 11), np.exp(-np.linspace(0, 1, 11))
    called = [lockstep.train(t=t, u=u, equations={"x": "a(x)"}, nets={"a": {"start": start}}, optimiser="adam",
                             iterations=3).model.digest for start in (net, tmp_path / "net.h5")]
    assert called[0] == called[1]


def test_equations_may_be_those_of_a_model():
    t = np.linspace(0, 3, 31)
    u = np.stack([np.cos(2 * t), -2 * np.sin(2 * t)], 1)
    drag = lockstep.mlp([[[0.0]]], activations="identity")
    texts, definitions = {"x": "v", "v": "force - g * drag(v)"}, {"force": "-k * x"}
    model = lockstep.equations(texts, parameters={"k": 3, "g": 1}, definitions=definitions, models={"drag": drag})
    taken = lockstep.train(t=t, u=u, equations=model, parameters={"k": {"start": 3}}, precision="f64")
    written = lockstep.train(t=t, u=u, equations=texts, definitions=definitions, models={"drag": drag},
                             parameters={"k": {"start": 3}, "g": 1}, precision="f64")
    assert taken.parameters == written.parameters and abs(taken.parameters["k"] - 4) < 1e-4
    with pytest.raises(lockstep.InvalidArgument, match="^parameters.g: found no value, in the equations or beside them"):
        lockstep.train(t=t, u=u, equations=lockstep.equations({"x": "v", "v": "-k * x - g"}, parameters=["k", "g"]),
                       parameters={"k": {"start": 3}})


def test_beside_a_training_file_arguments_override_or_are_refused(tmp_path):
    np.savetxt(tmp_path / "table.csv", np.column_stack([X, Y]), delimiter=",", header="a,b,c", comments="")
    file = tmp_path / "train.toml"
    file.write_text('[net]\nhidden = [4]\nseed = 3\n[data]\nfile = "table.csv"\ninputs = ["a", "b"]\ntargets = ["c"]\n'
                    'validation = 0.1\n[training]\noptimiser = "adam"\niterations = 3\n[output]\nfile = "unwritten"\n')
    plain = lockstep.train(file)
    assert plain.model.digest == lockstep.train(file, seed=3, threads=2).model.digest
    other = lockstep.train(file, seed=np.int64(5), output=tmp_path / "made.h5")
    assert other.model.digest != plain.model.digest
    # The split is the seed's too, as of `lockstep train --seed`.
    by_arguments = lockstep.train(x=X, y=Y, hidden=[4], seed=5, validation=0.1, optimiser="adam", iterations=3)
    assert other.validation_loss == by_arguments.validation_loss and other.model.digest == by_arguments.model.digest
    assert (tmp_path / "made.safetensors").exists()
    assert lockstep.load(tmp_path / "made.h5").digest == other.model.digest
    with pytest.raises(lockstep.Error, match="made.h5"):
        lockstep.train(file, output=tmp_path / "made")
    lockstep.train(file, output=tmp_path / "made", overwrite=True)
    assert lockstep.load(tmp_path / "made.h5").digest == plain.model.digest
    with pytest.raises(lockstep.Error, match="seed: found -1"):
        lockstep.train(file, seed=-1)
    # What the signature has: an argument that is added to it is refused unless it is made to override.
    names = {name for name, one in inspect.signature(lockstep.train).parameters.items() if one.kind == one.KEYWORD_ONLY}
    refused = names - {"seed", "threads", "output", "overwrite", "progress"}
    assert {"iterations", "precision", "phases", "validation", "rtol", "failed", "loss", "name"} <= refused
    values = {"iterations": 1, "batch": 1, "optimiser": "adam", "method": "tsit5"}
    for name in [*refused, "schedule", "clip_norm"]:
        with pytest.raises(lockstep.Error, match=f"^{name}: found a value beside a training file"):
            lockstep.train(file, **{name: values.get(name, 0.5)})


def test_a_huber_threshold_does_not_depend_on_the_unit_of_targets_that_are_normalised():
    x = np.linspace(-1, 1, 60)
    y = np.c_[1 + 2 * x, 3 - x] + 0.05 * np.random.default_rng(2).standard_normal((60, 2))
    y[[7, 31, 40], 0] += 40.0
    arguments = dict(x=x, hidden=[], optimiser="lbfgs", iterations=200, loss="mean_huber", precision="f64")

    def slopes(unit, **others):
        net = lockstep.train(y=y * unit, **{**arguments, **others}).model
        return (net(np.array([1.0])) - net(np.array([-1.0]))) / 2 / unit

    units = np.array([[1.0, 1.0], [1e-3, 1e-3], [1.0, 0.1]])
    normal = {"normalise": "standard", "huber_threshold": 0.05}
    # Trainings of other units end where no step lowers the loss, some 1e-8 of it from the least.
    for unit in units[1:]:
        np.testing.assert_allclose(slopes(unit, **normal), slopes(units[0], **normal), rtol=1e-5)
        sigma = {"y0": unit[0], "y1": unit[1]}
        np.testing.assert_allclose(slopes(unit, sigma=sigma), slopes(units[0], sigma={"y0": 1, "y1": 1}), rtol=1e-5)
    # Robust: three outliers move the line by some hundredths, and least squares by a tenth and more.
    assert abs(slopes(units[0], **normal)[0] - 2) < 0.1
    assert abs(slopes(units[0], normalise="standard", huber_threshold=50.0)[0] - 2) > 0.3
    # Without either it is in the unit of the targets.
    assert abs(slopes(units[1])[0] - slopes(units[0])[0]) > 0.3
    with pytest.raises(lockstep.Error, match="huber_threshold: found huber_threshold without loss"):
        lockstep.train(y=y, **{**arguments, "loss": "mean_squared"}, huber_threshold=1)
    with pytest.raises(lockstep.Error, match="huber_threshold: found 0, expected a number greater than 0"):
        lockstep.train(y=y, **arguments, huber_threshold=0)


def test_trajectories_kept_for_validation_may_be_named():
    t = np.tile([0.0, 1, 2, 3], 3)
    labels = np.repeat(["a", "b", "7"], 4)
    u = np.exp(-0.3 * t) * np.repeat([1.0, 2, 3], 4)
    for kept in (["b"], ("b",), np.array(["b"])):
        training = lockstep.train(t=t, u=u, trajectory=labels, validation=kept, **DECAY)
        assert training.trajectories == ["a", "7"] and training.validation_loss is not None
    assert lockstep.train(t=t, u=u, trajectory=labels, validation=["a", 7], **DECAY).trajectories == ["b"]
    for kept in ([2.5, 7], np.array([2.5, 7])):  # called "2.5" and "7.0"
        assert lockstep.train(t=t, u=u, trajectory=np.repeat([1, 2.5, 7], 4), validation=kept, **DECAY).trajectories == ["1.0"]
    numbered = lockstep.train(t=t[:4], u=u.reshape(3, 4, 1), validation=[0, np.int64(2)], **DECAY)
    assert numbered.trajectories == ["1"]
    with pytest.raises(lockstep.Error, match='validation.*found "c", expected a trajectory of the data: a, b, 7'):
        lockstep.train(t=t, u=u, trajectory=labels, validation=["c"], **DECAY)
    with pytest.raises(lockstep.Error, match="validation: found rows of their own beside trajectories"):
        lockstep.train(t=t, u=u, trajectory=labels, validation=(t, u), **DECAY)


def test_states_by_other_names_are_told_which_components_they_are():
    t = np.linspace(0, 3, 7)
    with pytest.warns(UserWarning, match="states are components by their places: height is x$"):
        training = lockstep.train(t=t, u=np.exp(-t), states=["height"], **DECAY)
    assert len(training.advice) == 1
    assert lockstep.train(t=t, u=np.exp(-t), states=["x"], **DECAY).advice == []


def test_a_label_that_comes_back_is_one_trajectory():
    """As of a CSV: see TrainingData.a_file_names_its_trajectories."""
    t, labels = np.array([0.0, 0, 1, 1, 2, 2]), ["b", "a"] * 3
    u = np.exp(-0.3 * t) * np.where(np.array(labels) == "b", 2, 1)
    training = lockstep.train(t=t, u=u, trajectory=labels, **DECAY)
    assert training.trajectories == ["b", "a"] and training.times.shape == (2, 3)
    with pytest.raises(lockstep.Error, match="trajectory b, point 3: found time 0 after 2, expected times that ascend within a "
                                             "trajectory; sort its rows by the time, or give another experiment a name"):
        lockstep.train(t=np.r_[t, 0, 1], u=np.r_[u, 2, 1], trajectory=[*labels, "b", "b"], **DECAY)


def test_a_bad_fit_from_a_noisy_first_point_names_it():
    t = np.linspace(0, 10, 21)
    u = 2 + np.sin(t)
    u[0] = 12.0
    lost = lockstep.train(t=t, u=u, equations={"x": "k * cos(t)"}, parameters={"k": {"start": 0.8}}, precision="f64")
    hint = 'first points taken to be exact: phases="noisy" trains them'
    assert any("explains little" in note and hint in note for note in lost.notes), lost.notes
    noisy = lockstep.train(t=t, u=u, equations={"x": "k * cos(t)"}, parameters={"k": {"start": 0.8}}, precision="f64",
                           phases="noisy")
    assert not any(hint in note for note in noisy.notes)
    far = lockstep.train(t=t, u=2 + np.sin(t) + 0.3 * np.cos(7 * t), sigma=0.01, equations={"x": "k * cos(t)"},
                         parameters={"k": {"start": 0.8}}, precision="f64")
    assert any("within the stated sigma" in note and hint in note for note in far.notes), far.notes
    ratios = lockstep.train(t=t, u=2 + np.sin(t) + 0.3 * np.cos(7 * t), sigma=0.01, equations={"x": "k * cos(t)"},
                            parameters={"k": {"start": 0.8}}, precision="f64", absolute_sigma=False)
    assert not any("sigma" in note for note in ratios.notes), ratios.notes


def test_a_number_that_has_most_of_the_squares_is_named():
    t = np.linspace(0, 4, 17)
    u = np.exp(-t)
    u[11] = 60.0
    with pytest.warns(UserWarning, match=r"one number has most of the sum of squares: x at t = 2.75 has \d+ % of the "):
        lockstep.train(t=t, u=u, **DECAY)


def test_a_positive_parameter_starts_above_zero():
    with pytest.raises(lockstep.Error, match="found 0, expected a number above 0: a positive parameter never reaches it"):
        lockstep.train(t=[0.0, 1], u=[1.0, 0.5], **{**DECAY, "parameters": {"k": {"start": 0, "positive": True}}})


def test_a_layer_that_a_net_calls_twice_is_trained_as_one_and_no_bias_stays_none():
    random = np.random.default_rng(5)
    middle, bias = random.normal(size=(4, 4)), random.normal(size=4)
    net = lockstep.mlp([random.normal(size=(4, 2)), middle, middle, random.normal(size=(1, 4))], [None, bias, bias, None])
    with pytest.warns(UserWarning, match="layers.1, layers.2 have the same weights, as calls of one layer do"):
        training = lockstep.train(x=X, y=Y, start=net, rate=0.01, iterations=20, precision="f64")
    weights = training.model.weights
    assert weights.shape == net.weights.shape == (12 + 20 + 20 + 5,)
    assert not np.any(weights[8:12]) and weights[-1] == 0
    np.testing.assert_array_equal(weights[12:32], weights[32:52])
    assert np.all(weights[12:32] != net.weights[12:32])
    # A neural ODE, and the net that it gives as the start of the next.
    t = np.linspace(0, 1, 11)
    u = np.stack([np.cos(t), -np.sin(t)], 1)
    outer = random.normal(size=(2, 2))
    even = lockstep.mlp([outer, outer.T], [None, None])
    first = lockstep.train(t=t, u=u, start=even, optimiser="lbfgs", iterations=5, precision="f64")
    second = lockstep.train(t=t, u=u, start=first.model, optimiser="lbfgs", iterations=5, precision="f64").model.weights
    np.testing.assert_array_equal(second[:4].reshape(2, 2).T, second[6:10].reshape(2, 2))
    assert np.all(second[:4] != outer.reshape(-1)) and not np.any(second[4:6]) and not np.any(second[10:])
