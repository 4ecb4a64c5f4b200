"""Functions given as numbers, of all that has a column of them, in solves, gradients and trainings."""
import datetime
import pickle

import numpy as np
import pytest

import lockstep

HOURS = [0.0, 1.0, 2.5, 3.0, 6.0, 6.5, 10.0]
RAIN = [0.0, 2.0, 1.0, 4.0, 0.0, 3.0, 1.0]


def between(model, *x):
    return model(np.array(x, dtype=float)[:, None]).tolist()


def names(model):
    return [feature["name"] for feature in model.outputs[0]["features"]]


def test_numbers_lie_between_knots_and_stay_beyond_them():
    assert between(lockstep.table([0, 2], [1, 5]), -1, 0, 0.5, 2, 3) == [[1], [1], [2], [5], [5]]
    steps = lockstep.table([0, 1, 2], [3, 1, 2], interpolation="previous")
    assert between(steps, 0, 0.9, 1, 1.5, 2, 9) == [[3], [3], [1], [1], [2], [2]]
    smooth = lockstep.table([0, 1, 2], [0, 1, 1], interpolation="pchip")
    assert between(smooth, 1, 1.5, 2) == [[1], [1], [1]] and 0.5 < between(smooth, 0.5)[0][0] < 1
    assert np.isnan(between(smooth, np.nan)[0][0])


def test_columns_have_names_or_are_given_them():
    assert names(lockstep.table([0, 1], {"rain": [1, 2], "heat": [3, 4]})) == ["rain", "heat"]
    assert names(lockstep.table([0, 1], [[1, 3], [2, 4]], columns=["rain", "heat"])) == ["rain", "heat"]
    assert names(lockstep.table([0, 1], [[1, 3], [2, 4]])) == ["", ""]
    heat = lockstep.table([0, 1], {"rain": [1, 2], "heat": [3, 4]}, columns="heat")
    assert names(heat) == ["heat"] and between(heat, 0.5) == [[3.5]]
    structured = np.array([(1, 3), (2, 4)], dtype=[("rain", float), ("heat", float)])
    assert between(lockstep.table([0, 1], structured, columns=["heat", "rain"]), 0.5) == [[3.5, 1.5]]


def test_tables_of_pandas_come_with_their_index():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"rain": [1.0, 2.0], "heat": [3.0, 4.0]}, index=pandas.Index([0.0, 1.0], name="hour"))
    for weather in (lockstep.table(frame), lockstep.table(frame.index, frame)):
        assert names(weather) == ["rain", "heat"] and between(weather, 0.5) == [[1.5, 3.5]]
        assert weather.inputs[0]["features"][0]["name"] == "hour"
    rain = lockstep.table(frame["rain"])
    assert names(rain) == ["rain"] and between(rain, 0.5) == [[1.5]]
    read = frame.reset_index()
    assert between(lockstep.table(read["hour"], read[["heat"]]), 0.5) == [[3.5]]
    # Rows that are only numbered are no hours.
    for given in (read, read["rain"]):
        with pytest.raises(lockstep.InvalidArgument, match="at: found rows without an index"):
            lockstep.table(given)
    assert between(lockstep.table(read.index, read["rain"]), 0.5) == [[1.5]]


def test_dates_are_refused_with_what_makes_numbers_of_them():
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2020-01-01", periods=2, freq="D")
    for at in (days, days.values, days.tz_localize("UTC"), days.to_series(), np.array(days.tolist(), dtype="datetime64[s]")):
        with pytest.raises(lockstep.WrongType, match=r"at: found dates or times of day, expected real numbers; divide"):
            lockstep.table(at, [1, 2])
    with pytest.raises(lockstep.WrongType, match="at: found dates"):
        lockstep.table(pandas.Series([1.0, 2.0], index=days))
    with pytest.raises(lockstep.WrongType, match="at: found time differences"):
        lockstep.table(days - days[0], [1, 2])
    assert between(lockstep.table((days - days[0]) / np.timedelta64(1, "h"), [1, 2]), 12) == [[1.5]]
    with pytest.raises(lockstep.WrongType, match="at: found"):
        lockstep.table([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], [1, 2])


def test_tables_of_xarray_come_with_their_coordinate():
    xarray = pytest.importorskip("xarray")
    rain = xarray.DataArray([1.0, 2.0], coords={"hour": [0.0, 1.0]}, dims="hour", name="rain")
    weather = lockstep.table(xarray.Dataset({"rain": rain, "heat": rain + 2}))
    assert names(weather) == ["rain", "heat"] and between(weather, 0.5) == [[1.5, 3.5]]
    assert weather.inputs[0]["features"][0]["name"] == "hour"
    assert names(lockstep.table(rain)) == ["rain"] and between(lockstep.table(rain), 0.5) == [[1.5]]
    grid = xarray.DataArray([[1.0, 3.0], [2.0, 4.0]], coords={"hour": [0.0, 1.0], "of": ["rain", "heat"]}, dims=("hour", "of"))
    assert names(lockstep.table(grid)) == ["rain", "heat"] and between(lockstep.table(grid), 0.5) == [[1.5, 3.5]]
    with pytest.raises(lockstep.InvalidArgument, match="values: found none"):
        lockstep.table(xarray.DataArray([1.0, 2.0], dims="hour"))


def test_tables_of_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"hour": [0.0, 1.0], "rain": [1.0, 2.0], "heat": [3.0, 4.0]})
    weather = lockstep.table(frame["hour"], frame[["rain", "heat"]])
    assert names(weather) == ["rain", "heat"] and between(weather, 0.5) == [[1.5, 3.5]]


@pytest.mark.parametrize("at, values, more, message", [
    ([0, 2, 1], [1, 2, 3], {}, r"at\[2\]: found 1 after 2, expected ascending numbers, none twice; sort the rows by it"),
    ([0, 1, 1], [1, 2, 3], {}, r"at\[2\]: found 1 after 1.*keep one of the two"),
    ([0, np.nan], [1, 2], {}, r"at\[1\]: found nan"),
    ([0, 1], [1, np.inf], {}, r"values\[1\]: found inf"),
    ([0, 1, 2], [1, 2], {}, "values: found 2 numbers, expected 3, one for each of at"),
    ([0, 1, 2], np.ones((2, 3)), {}, "values: found 2 rows, expected 3, one for each of at; transpose them"),
    ([0, 1], np.ones((2, 1, 1)), {}, "values: found 3 dimensions"),
    (np.ones((2, 2)), np.ones(4), {}, r"at: found shape \[2, 2\], expected \[knot\]"),
    ([0, 1], {"a": [1, 2], "b": [3]}, {}, "values.b: found 1 number, expected 2, one for each of at"),
    ([0, 1], {}, {}, "values: found no columns"),
    ([], [], {}, "at: found none, expected at least one"),
    ([0, 1], None, {}, "values: found none, expected a number for each of at"),
    ([0, 1], [1, 2], {"columns": ["a", "b"]}, "columns: found 2, expected 1"),
    ([0, 1], [[1, 2], [3, 4]], {"columns": ["a", "a"]}, 'columns: found "a" twice'),
    ([0, 1], {"a": [1, 2]}, {"columns": ["b"]}, 'columns: found "b", expected one of a'),
    ([0, 1], [1, 2], {"interpolation": "cubic"}, 'interpolation: found "cubic", expected "linear", "previous", "pchip" or "spline"'),
])
def test_numbers_that_do_not_fit_are_named(at, values, more, message):
    with pytest.raises(lockstep.InvalidArgument, match=message):
        lockstep.table(at, values, **more)


@pytest.mark.parametrize("at, values, more", [(["a", "b"], [1, 2], {}), ([0, 1], [1j, 2], {}),
                                              ([0, 1], np.ma.array([1.0, 2.0], mask=[0, 1]), {}),
                                              ([0, 1], [1, 2], {"interpolation": None})])
def test_other_types_are_refused(at, values, more):
    with pytest.raises(lockstep.WrongType):
        lockstep.table(at, values, **more)


def test_what_equations_call_is_a_model():
    for wrong, found in (([0, 1], "list"), (([0, 1], [1, 2]), "tuple"), (np.ones(2), "ndarray"), ("rain.h5", "str")):
        with pytest.raises(lockstep.WrongType, match=rf"models.rain: found {found}, expected a lockstep.Model"):
            lockstep.equations({"x": "rain(t)"}, models={"rain": wrong})
    with pytest.raises(lockstep.WrongType, match="models: found list, expected a dict"):
        lockstep.equations({"x": "rain(t)"}, models=[lockstep.table([0, 1], [1, 2])])
    with pytest.raises(lockstep.WrongType, match="models.rain: found list"):
        lockstep.train(t=[0, 1], u=[[1], [2]], equations={"x": "rain(t) * k"}, parameters={"k": {"start": 1}},
                       models={"rain": [1, 2]})


def test_calls_that_do_not_fit_speak_of_the_table():
    models = {"rain": lockstep.table([0, 1], {"mm": [1, 2]}, input="hour")}
    for text, message in (("rain(t, x)", "found rain of 2 arguments, expected 1, what the table is of: hour"),
                          ("rain(t).snow", 'found "snow", expected one of mm'), ("rain", r"call it, rain\(...\)"),
                          ("x(t)", "a function, net or table")):
        with pytest.raises(lockstep.InvalidArgument, match=message):
            lockstep.equations({"x": text}, models=models)


def basin(interpolation, net=None):
    """Rain into a store whose bed conducts by what is in it, to which a net may add."""
    models = {"rain": lockstep.table(HOURS, RAIN, interpolation=interpolation),
              "k": lockstep.table([0, 1, 2, 4, 8], [1, 1.5, 1.2, 0.7, 0.5], interpolation="pchip")}
    text = "a * rain(t) - 0.2 * k(x) * x"
    if net is not None:
        models["net"], text = net, text + " + 0.1 * net(x, rain(t))"
    return lockstep.equations({"x": text}, parameters={"a": 1}, models=models)


def test_interpolation_between_the_knots_is_that_of_numpy():
    # x' = rain(t) - 0.2 x over the straight lines from knot to knot has a solution: x = c e^(-t/5) + p + q t.
    model = lockstep.equations({"x": "rain(t) - 0.2 * x"}, models={"rain": lockstep.table(HOURS, RAIN)})
    solution = lockstep.solve(model, [1.0], (0, 10), HOURS, precision="f64", rtol=1e-11, atol=1e-11, max_step=0.1)
    x, expected = 1.0, [1.0]
    for a, b, y0, y1 in zip(HOURS, HOURS[1:], RAIN, RAIN[1:]):
        q = (y1 - y0) / (b - a) / 0.2
        p = (y0 - q) / 0.2
        x = (x - p) * np.exp(-0.2 * (b - a)) + p + q * (b - a)
        expected.append(x)
    # Steps with a kink in them err by more than the tolerance; six of them by less than a hundred times as much.
    np.testing.assert_allclose(solution["x"][0], expected, atol=1e-8)


@pytest.mark.parametrize("interpolation", ["linear", "previous", "pchip", "spline"])
def test_gradients_are_the_differences_of_what_was_computed(interpolation):
    random = np.random.default_rng(3)
    net = lockstep.mlp([random.normal(size=(5, 2)), random.normal(size=(1, 5))], [random.normal(size=5), np.zeros(1)])
    model = basin(interpolation, net)
    w = np.cos(np.arange(11.0)).reshape(1, 11, 1)

    def solve(x0=0.7, a=1.2, weights=model.weights):
        # Fixed steps: an adaptive solve has other steps a little further on.
        return lockstep.solve(model.with_weights(weights), [x0], (0, 10), 11, parameters=[a], precision="f64", dt=0.02,
                              method="rk4", guard="ignore")

    gradients = solve().vjp(w)
    h = 1e-6

    def difference(**moved):
        (name, (low, high)), = moved.items()
        return float(np.sum(w * (solve(**{name: high}).state - solve(**{name: low}).state)) / (2 * h))

    # Central differences err by h^2 and by rounding, 1e-15 / h.
    assert gradients.u0[0, 0] == pytest.approx(difference(x0=(0.7 - h, 0.7 + h)), rel=1e-6)
    assert gradients.parameters.reshape(-1)[0] == pytest.approx(difference(a=(1.2 - h, 1.2 + h)), rel=1e-6)
    for place in range(0, len(model.weights), 5):
        move = np.eye(len(model.weights))[place] * h
        assert gradients.weights.reshape(-1)[place] == pytest.approx(
            difference(weights=(model.weights - move, model.weights + move)), rel=1e-5, abs=1e-8)


def test_solves_go_back_to_where_they_began():
    model = lockstep.equations({"x": "rain(t) - 0.02 * x"}, models={"rain": lockstep.table(HOURS, RAIN, interpolation="pchip")})
    given = {"precision": "f64", "rtol": 1e-10, "atol": 1e-10, "max_step": 0.5}
    there = lockstep.solve(model, [1.0], (0, 10), 11, **given)
    back = lockstep.solve(model, there.state[:, -1], (10, 0), 11, **given)
    np.testing.assert_allclose(back.state[0, ::-1], there.state[0], atol=1e-8)


def test_steps_end_at_jumps_that_are_known_or_given():
    exact = (1 - np.exp(-2)) * np.exp(-2)  # x' = 1 - x until 2, then -x until 4
    given = {"precision": "f64", "rtol": 1e-8, "atol": 1e-8}
    known = lockstep.solve(lockstep.equations({"x": "if(t < 2, 1, 0) - x"}), [0.0], (0, 4), **given)
    assert known.rejected[0] == 0
    assert known.state[0, -1, 0] == pytest.approx(exact, abs=1e-7)
    blind = {**given, "stop_at_knots": False}
    plain = lockstep.equations({"x": "if(t < 2, 1, 0) - x"})
    passing = lockstep.solve(plain, [0.0], (0, 4), **blind)
    assert passing.rejected[0] > 0
    for stops in (2, [2.0, 7], np.array([2])):
        told = lockstep.solve(plain, [0.0], (0, 4), stops=stops, **blind)
        assert told.state.tobytes() == known.state.tobytes()
    with pytest.raises(lockstep.Error, match="stops"):
        lockstep.solve(plain, [0.0], (0, 4), stops=["a"], **given)


def test_steps_end_where_parameters_let_it_jump():
    # x' = 200 for half an hour from a patient's own time on, less 0.1 x: 48 short doses in 60 hours.
    patients = lockstep.equations({"x": "if(t < at, 0, if(t < at + 0.5, 200, 0)) - 0.1 * x"}, parameters={"at": 30.0})
    at = np.linspace(1, 58, 48)[:, None]
    given = {"precision": "f64", "rtol": 1e-9, "atol": 1e-9}
    found = lockstep.solve(patients, np.zeros((48, 1)), (0, 60), parameters=at, **given)
    exact = 2000 * (1 - np.exp(-0.05)) * np.exp(-0.1 * (60 - at[:, 0] - 0.5))
    np.testing.assert_allclose(found.state[:, -1, 0], exact, rtol=1e-7)
    assert (found.rejected <= 4).all()
    shared = lockstep.solve(patients, [0.0], (0, 60), parameters=at[7], **given)
    assert shared.state.tobytes() == found.state[7:8].tobytes()
    # And where a table is read at a lag of its own: lines from 0 at 4 to 1 at 5 and back.
    pulse = lockstep.table([4, 5, 6], [0.0, 1, 0])
    late = lockstep.equations({"x": "pulse(t - lag)"}, models={"pulse": pulse}, parameters={"lag": 0.0})
    lags = np.arange(0.0, 40)[:, None]
    found = lockstep.solve(late, np.zeros((40, 1)), (0, 60), parameters=lags, **given)
    np.testing.assert_allclose(found.state[:, -1, 0], 1, rtol=1e-7)


def test_a_table_of_one_day_repeats():
    day = lockstep.table([0.0, 6, 12, 18, 24], [1.0, 4, 2, 0, 1])  # a day's mean is 1.75
    model = lockstep.equations({"x": "wind((t - start) % 24)"}, models={"wind": day}, parameters=["start"])
    found = lockstep.solve(model, np.zeros((3, 1)), (0, 240), parameters=[[0.0], [5.5], [-30.0]], precision="f64")
    np.testing.assert_allclose(found.state[:, -1, 0], 420, rtol=1e-12)  # of lines each step is exact
    assert found.accepted.max() < 100 and found.rejected.max() == 0


def test_whole_parts_and_remainders_are_numpys():
    x = np.linspace(-7.25, 7.25, 59)[:, None]
    model = lockstep.equations({"x": "x % 1.5", "y": "mod(x, -2) + 10 * floor(x) + 100 * ceil(x) + 1000 * round(x)"})
    found = model({"u": np.hstack([x, x])})
    np.testing.assert_array_equal(found[:, :1], np.mod(x, 1.5))
    np.testing.assert_array_equal(found[:, 1:], np.mod(x, -2) + 10 * np.floor(x) + 100 * np.ceil(x) + 1000 * np.round(x))


def test_trainings_stop_where_they_are_told():
    t = np.linspace(0, 4, 21)
    u = np.where(t < 2, 1 - np.exp(-t), (1 - np.exp(-2)) * np.exp(2 - t))[:, None]
    found = {}
    for stops in (2, [2.0]):
        training = lockstep.train(t=t, u=u, equations={"x": "if(cos(t * 0.7853981633974483) > 0, 1, 0) - k * x"},
                                  precision="f64", parameters={"k": {"start": 0.5}}, stops=stops)
        found[str(stops)] = training.parameters["k"]
    assert found["2"] == found["[2.0]"] == pytest.approx(1, abs=1e-5)


def test_a_parameter_that_only_moves_a_jump_is_told():
    t = np.linspace(0, 20, 81)
    u = np.where(t < 7, 0, 1 - np.exp(-0.5 * (t - 7)))[:, None]
    given = {"t": t, "u": u, "precision": "f64", "parameters": {"t0": {"start": 5.0}, "k": {"start": 0.3, "positive": True}}}
    jump = lockstep.train(equations={"x": "k * (if(t < t0, 0, 1) - x)"}, **given)
    assert jump.notes[0].startswith("training does not see what t0 does by moving a jump, if(t < t0, ..): write a ramp")
    ramp = lockstep.train(equations={"x": "k * (clamp((t - t0) / 2 + 0.5, 0, 1) - x)"}, **given)
    assert not any("moving a jump" in note for note in ramp.notes)
    assert ramp.parameters["t0"] == pytest.approx(7, abs=0.1)


def test_models_with_tables_are_stored_and_pickled(tmp_path):
    model = basin("pchip")
    model.save(tmp_path / "basin.h5")
    x = {"u": np.linspace(-1, 9, 50)[:, None], "p": np.ones((50, 1)), "t": np.linspace(-1, 11, 50)[:, None]}
    for again in (lockstep.load(tmp_path / "basin.h5"), pickle.loads(pickle.dumps(model))):
        assert again(x).tobytes() == model(x).tobytes()


def test_warnings_say_what_is_not_known_and_what_steps_may_pass_over():
    model = lockstep.equations({"x": "rain(t)"}, models={"rain": lockstep.table(HOURS, RAIN)})
    with pytest.warns(UserWarning) as caught:
        lockstep.solve(model, [0.0], (0, 12), max_step=5, stop_at_knots=False)
    messages = [str(warning.message) for warning in caught]
    assert messages[0].startswith("steps of 5 may pass over what rain does within")
    assert messages[1].startswith("rain knows times from 0 to 10, and is asked for 0 to 12: beyond its ends a table keeps")


def test_what_switches_at_times_that_nothing_tells_gets_a_warning(recwarn):
    model = lockstep.equations({"x": "if(sin(t) > 0.9, 1, 0) - x"})
    lockstep.solve(model, [0.0], (0, 60), max_step=0.1)
    lockstep.solve(model, [0.0], (0, 60), dt=0.1, stops=[7.0])
    assert not recwarn.list
    with pytest.warns(UserWarning, match="as in if.sin.t. > 0.9, ....: steps may pass over what that switches; give max_step"):
        lockstep.solve(model, [0.0], (0, 60))
    with pytest.warns(UserWarning, match="steps of 0.1 may pass over what that switches, and keep no order across it"):
        lockstep.solve(model, [0.0], (0, 60), dt=0.1)


def test_warnings_stay_away_where_steps_are_short(recwarn):
    model = lockstep.equations({"x": "rain(t)"}, models={"rain": lockstep.table(HOURS, RAIN)})
    lockstep.solve(model, [0.0], (0, 10))
    lockstep.solve(model, [0.0], (0, 10), dt=0.5)
    assert not recwarn.list


def test_training_finds_a_parameter_under_a_measured_input():
    rain = lockstep.table(np.arange(0.0, 40.0), np.where(np.arange(40) % 7 == 2, 5.0, 0.0), interpolation="previous")
    times = np.arange(0.0, 39.5, 0.5)
    given = {"precision": "f64", "rtol": 1e-9, "atol": 1e-9, "max_step": 1}
    measured = lockstep.solve(lockstep.equations({"x": "rain(t) - 0.3 * x"}, models={"rain": rain}), [2.0], (0, 39), times,
                              **given)
    training = lockstep.train(t=times, u=measured.state[0], equations={"x": "rain(t) - k * x"}, models={"rain": rain},
                              parameters={"k": {"start": 0.1, "positive": True}}, **given)
    # Kinks within steps err by up to some hundred times the tolerance.
    assert training.parameters["k"] == pytest.approx(0.3, abs=1e-6)
    assert training.advice == []
    again = lockstep.solve(training.rhs, [2.0], (0, 39), times, **given)
    np.testing.assert_allclose(again.state, measured.state, atol=1e-5)


def test_training_of_a_net_that_reads_an_input():
    signal = lockstep.table(np.linspace(0, 10, 101), np.sin(np.linspace(0, 10, 101)))
    times = np.linspace(0, 10, 51)
    measured = lockstep.solve(lockstep.equations({"x": "u(t) - x^3"}, models={"u": signal}), [0.0], (0, 10), times,
                              precision="f64", max_step=0.1)
    training = lockstep.train(t=times, u=measured.state[0], equations={"x": "net(x, u(t))"}, models={"u": signal},
                              hidden=[8], optimiser="lbfgs", iterations=60, segment=5, normalise="standard",
                              precision="f64")
    spread = np.std(measured.state)
    assert training.errors["training"]["x"]["rms"] < 0.05 * spread
    assert [feature["name"] for feature in training.model.inputs[0]["features"]] == ["x", "u(t)"]
