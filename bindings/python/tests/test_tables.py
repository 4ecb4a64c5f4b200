"""Tables whose columns have names: each goes where its name says."""

import numpy as np
import pytest

import lockstep


@pytest.fixture
def oscillator():
    return lockstep.equations({"x": "v", "v": "-k * x - c * v"}, parameters={"k": 2, "c": 0.5})


def frame(**columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def structured(**columns):
    rows = np.zeros(len(next(iter(columns.values()))), [(name, "f8") for name in columns])
    for name, values in columns.items():
        rows[name] = values
    return rows


def labelled(**columns):
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(np.stack(list(columns.values()), 1), dims=("run", "component"),
                            coords={"component": list(columns)})


@pytest.mark.parametrize("table", [frame, structured, labelled])
def test_columns_of_initial_states_go_by_their_names(oscillator, table):
    swapped = table(v=[1.0, 2.0], x=[0.0, 0.5])
    assert lockstep.solve(oscillator, swapped, (0, 1)).initial_state.tolist() == [[0, 1], [0.5, 2]]
    assert lockstep.Solver(oscillator, swapped, (0, 1))().initial_state.tolist() == [[0, 1], [0.5, 2]]
    with pytest.raises(lockstep.InvalidArgument, match=r"^u0.w: found an unknown component, expected one of x, v"):
        lockstep.solve(oscillator, table(x=[1.0], v=[1.0], w=[1.0]), (0, 1))
    with pytest.raises(lockstep.InvalidArgument, match=r"^u0: found no value for x, expected one for each component \(x, v\)"):
        lockstep.solve(oscillator, table(v=[1.0]), (0, 1))


def test_a_solver_maps_each_call(oscillator):
    solver = lockstep.Solver(oscillator, [[1.0, 0.0]], (0, 1))
    for given in (frame(v=[3.0], x=[4.0]), frame(v=[3.0], x=[4.0]), frame(x=[4.0], v=[3.0]), [[4.0, 3.0]]):
        assert solver(given).initial_state.tolist() == [[4, 3]]
    for given in (frame(c=[0.1], k=[4.0]), frame(k=[4.0], c=[0.1]), [[4.0, 0.1]], frame(c=[0.1], k=[4.0])):
        assert solver(parameters=given).parameters.ravel().tolist() == [4, 0.1]


def test_columns_of_parameters_go_by_their_names(oscillator):
    swapped = lockstep.solve(oscillator, [1, 0], (0, 1), parameters=frame(c=[0.1, 0.2], k=[3.0, 4.0]))
    assert swapped.parameters.tolist() == [[3, 0.1], [4, 0.2]]
    assert lockstep.solve(oscillator, [1, 0], (0, 1), parameters=frame(c=[0.1, 0.2])).parameters.tolist() == [[2, 0.1], [2, 0.2]]
    with pytest.raises(lockstep.InvalidArgument, match=r"^parameters.K: found an unknown parameter, expected one of k, c"):
        lockstep.solve(oscillator, [1, 0], (0, 1), parameters=frame(K=[1.0]))


def test_a_row_of_a_table_goes_by_its_names(oscillator):
    row = frame(v=[1.0, 2.0], x=[0.0, 0.5]).iloc[1]
    assert lockstep.solve(oscillator, row, (0, 1)).initial_state.tolist() == [[0.5, 2]]
    assert lockstep.solve(oscillator, {"x": frame(a=[1.0, 2.0])["a"], "v": 0.0}, (0, 1)).initial_state.tolist() == [[1, 0], [2, 0]]


def test_rows_of_a_list_go_by_their_names(oscillator):
    table = frame(v=[1.0, 2.0], x=[0.0, 0.5])
    for rows in ([row for _, row in table.iterrows()], list(table.itertuples(index=False)), table.to_dict("records"),
                 list(table.to_records(index=False)), tuple(table.to_dict("records"))):
        assert lockstep.solve(oscillator, rows, (0, 1)).initial_state.tolist() == [[0, 1], [0.5, 2]]
    assert lockstep.Solver(oscillator, rows[0], (0, 1))(rows[1]).initial_state.tolist() == [[0.5, 2]]
    row = next(table.itertuples(index=False))
    assert lockstep.solve(oscillator, row, (0, 1)).initial_state.tolist() == [[0, 1]]
    columns = type(row)(v=[1.0, 2.0], x=[0.0, 0.5])
    assert lockstep.solve(oscillator, columns, (0, 1)).initial_state.tolist() == [[0, 1], [0.5, 2]]
    both = lockstep.solve(oscillator, [1, 0], (0, 1), parameters=[{"c": 0.1, "k": 3}, {"k": 4, "c": 0.2}]).parameters
    assert both.tolist() == [[3, 0.1], [4, 0.2]]
    for rows, message in (([{"x": 1, "v": 2}, {"x": 1}], r"u0\[1\]: found a row with the names x, expected names as row 0"),
                          ([{"x": 1, "v": 2}, [1, 2]], r"u0\[1\]: found a row with no names, expected names as row 0"),
                          ([[1, 2], {"x": 1, "v": 2}], r"u0\[1\]: found a row with the names x, v, expected rows without")):
        with pytest.raises(lockstep.InvalidArgument, match="^" + message):
            lockstep.solve(oscillator, rows, (0, 1))


def test_an_array_with_components_first_is_turned(oscillator):
    xarray = pytest.importorskip("xarray")
    turned = xarray.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("component", "trajectory"))
    for given in (turned, turned.assign_coords(component=[0, 1]), turned.assign_coords(component=["x", "v"])):
        assert lockstep.solve(oscillator, given, (0, 1)).initial_state.tolist() == [[1, 3], [2, 4]]


def test_columns_of_several_names_are_refused(oscillator):
    pandas = pytest.importorskip("pandas")
    table = pandas.concat({"state": frame(v=[1.0], x=[0.0])}, axis=1)
    with pytest.raises(lockstep.InvalidArgument, match=r"^u0: found a column with several names, \('state', 'v'\)"):
        lockstep.solve(oscillator, table, (0, 1))


def test_columns_without_names_go_by_position(oscillator):
    pandas = pytest.importorskip("pandas")
    xarray = pytest.importorskip("xarray")
    numbers = np.array([[1.0, 2.0], [3.0, 4.0]])
    for table in (pandas.DataFrame(numbers), xarray.DataArray(numbers), pandas.DataFrame(numbers, index=["a", "b"]),
                  xarray.DataArray(numbers, dims=("run", "n"), coords={"run": ["a", "b"]})):
        assert lockstep.solve(oscillator, table, (0, 1)).initial_state.tolist() == numbers.tolist()


def test_the_end_of_a_solution_by_xarray_is_a_start(oscillator):
    pytest.importorskip("xarray")
    end = lockstep.solve(oscillator, [[1.0, 0.0], [0.0, 2.0]], (0, 1), precision="f64").to_xarray()["end_state"]
    for given in (end, end.sel(component=["v", "x"]), end.transpose("component", "trajectory")):
        assert lockstep.solve(oscillator, given, (0, 1)).initial_state.tolist() == end.values.tolist()


def test_times_are_one_column(oscillator):
    times = frame(t=[0.0, 0.25, 1.0])
    for given in (times, times["t"]):
        assert lockstep.solve(oscillator, [1, 0], (0, 1), given).time.tolist() == [0, 0.25, 1]
    with pytest.raises(lockstep.InvalidArgument, match=r"^save_at: found a table with the columns t, x, expected times; give "
                                                       r"its column of times: save_at=table\['t'\]$"):
        lockstep.solve(oscillator, [1, 0], (0, 1), frame(t=[0.0, 1.0], x=[1.0, 2.0]))
    spans = frame(end=[1.0, 2.0], start=[0.0, 0.5])
    assert lockstep.solve(oscillator, [1, 0], spans).end_time.tolist() == [1, 2]


def test_a_name_twice_is_refused(oscillator):
    pandas = pytest.importorskip("pandas")
    twice = pandas.DataFrame([[1.0, 2.0]], columns=["x", "x"])
    with pytest.raises(lockstep.InvalidArgument, match="^u0: found 2 columns called x, expected one$"):
        lockstep.solve(oscillator, twice, (0, 1))


TIMES = np.linspace(0, 6, 31)
EQUATIONS = {"x": "v", "v": "-k * x"}


def fitted(**data):
    return lockstep.train(equations=EQUATIONS, parameters={"k": {"start": 2.0}}, precision="f64", **data).parameters["k"]


@pytest.mark.parametrize("table", [frame, structured, labelled])
def test_columns_of_trajectories_go_to_the_components_of_their_names(table):
    swapped, plain = table(v=-np.sin(TIMES), x=np.cos(TIMES)), np.stack([np.cos(TIMES), -np.sin(TIMES)], 1)
    assert fitted(t=TIMES, u=swapped) == fitted(t=TIMES, u=plain)
    assert abs(fitted(t=TIMES, u=swapped) - 1) < 1e-6
    sigma = table(v=np.full(31, 0.5), x=np.full(31, 0.1))
    weighed = fitted(t=TIMES, u=swapped, sigma=sigma)
    assert weighed == fitted(t=TIMES, u=plain, sigma=np.tile([0.1, 0.5], (31, 1)))
    as_u = np.tile([0.5, 0.1], (31, 1))
    assert weighed == fitted(t=TIMES, u=swapped, sigma=as_u) != fitted(t=TIMES, u=swapped, sigma=as_u[:, ::-1])
    assert fitted(t=[TIMES] * 2, u=[swapped] * 2, sigma=[as_u] * 2) == fitted(t=[TIMES] * 2, u=[plain] * 2, sigma=[as_u[:, ::-1]] * 2)
    with pytest.raises(lockstep.InvalidArgument, match=r"^u.w: found an unknown component, expected one of x, v; leave the"):
        fitted(t=TIMES, u=table(x=TIMES, v=TIMES, w=TIMES))
    with pytest.raises(lockstep.InvalidArgument, match=r"^u: found no column v, expected one for each component \(x, v\); a "
                                                       "component that was not measured is a column of NaN$"):
        fitted(t=TIMES, u=table(x=TIMES))


def test_a_sigma_without_names_is_of_the_shape_of_what_it_stands_beside():
    x = np.linspace(-1, 1, 40)
    y, sigma = frame(q=2 * x, p=x - 1), np.stack([np.full(40, 0.1), np.full(40, 0.3)], 1)
    arguments = dict(x=x, targets=["p", "q"], hidden=[], optimiser="lbfgs", iterations=3)
    named = lockstep.train(y=y, sigma=frame(p=sigma[:, 1], q=sigma[:, 0]), **arguments)
    assert lockstep.train(y=y, sigma=sigma, **arguments).loss == named.loss
    assert lockstep.train(y=y, sigma=sigma[:, ::-1], **arguments).loss != named.loss
    lacking = lockstep.train(t=TIMES, u=frame(x=np.cos(TIMES)), sigma=np.full((31, 1), 0.1), starts={"v": 0}, equations=EQUATIONS,
                             parameters={"k": {"start": 2.0}}, precision="f64")
    assert abs(lacking.parameters["k"] - 1) < 1e-6


def test_numbers_that_may_be_missing_in_pandas_are_numbers(oscillator):
    pandas = pytest.importorskip("pandas")
    swapped = pandas.DataFrame({"v": pandas.array([2, 4], dtype="Int64"), "x": pandas.array([1.0, 3.0], dtype="Float64")})
    for given in (swapped, swapped[["x", "v"]]):
        assert lockstep.solve(oscillator, given, (0, 1)).initial_state.tolist() == [[1, 2], [3, 4]]
    assert lockstep.solve(oscillator, [1, 0], (0, 1), swapped["x"] / 3).time.tolist() == [1 / 3, 1]
    gap = pandas.DataFrame({"v": pandas.array(-np.sin(TIMES), dtype="Float64"), "x": np.cos(TIMES)})
    gap.loc[7, "v"] = pandas.NA
    plain = np.stack([np.cos(TIMES), -np.sin(TIMES)], 1)
    plain[7, 1] = np.nan
    assert fitted(t=TIMES, u=gap) == fitted(t=TIMES, u=plain)
    with pytest.raises(lockstep.InvalidArgument, match="^u0"):
        lockstep.solve(oscillator, gap.iloc[5:9], (0, 1))


def test_rows_are_of_the_trajectories_that_their_labels_say():
    pandas = pytest.importorskip("pandas")
    a = frame(t=TIMES, v=-np.sin(TIMES), x=np.cos(TIMES)).assign(run="a")
    b = frame(t=TIMES[:20], v=np.cos(TIMES[:20]), x=np.sin(TIMES[:20])).assign(run="b")
    apart = fitted(t=[a["t"], b["t"]], u=[a[["v", "x"]], b[["v", "x"]]])
    assert abs(apart - 1) < 1e-6
    mixed = pandas.concat([a, b]).sort_values("t", kind="stable")
    for rows in (pandas.concat([a, b]), mixed):
        assert fitted(t=rows["t"], u=rows[["v", "x"]], trajectory=rows["run"]) == apart
    plain = mixed[["x", "v"]].to_numpy()
    assert fitted(t=mixed["t"], u=plain, trajectory=(mixed["run"] == "b").to_numpy()) == apart
    sigma = fitted(t=mixed["t"], u=plain, trajectory=mixed["run"], sigma=frame(v=np.ones(51), x=np.ones(51)))
    assert abs(sigma - 1) < 1e-6
    with pytest.raises(lockstep.InvalidArgument, match="^t: found 51 rows, expected 50$"):
        fitted(t=mixed["t"], u=plain, trajectory=mixed["run"][1:])
    with pytest.raises(lockstep.InvalidArgument, match=r"^trajectory\[1\]: found nan, expected a number or text that tells"):
        fitted(t=TIMES[:2], u=plain[:2], trajectory=[1, np.nan])


def test_names_of_columns_are_those_of_states_inputs_and_targets():
    ode = lockstep.train(t=TIMES, u=frame(v=-np.sin(TIMES), x=np.cos(TIMES)), hidden=[], iterations=1, optimiser="adam")
    assert [feature["name"] for feature in ode.model.inputs[0]["features"]] == ["v", "x"]
    table = frame(b=TIMES, a=TIMES**2)
    fit = lockstep.train(x=table, y=frame(out=TIMES), hidden=[], iterations=1)
    assert [feature["name"] for feature in fit.model.inputs[0]["features"]] == ["b", "a"]
    on = lockstep.train(x=table[["a", "b"]], y=TIMES, start=fit.model, iterations=1)
    assert on.model.digest == lockstep.train(x=table, y=TIMES, start=fit.model, iterations=1).model.digest
    ordered = [lockstep.train(x=given, y=TIMES, inputs=["a", "b"], hidden=[], iterations=1).model.digest
               for given in (table, table[["a", "b"]], np.stack([TIMES**2, TIMES], 1))]
    assert len(set(ordered)) == 1


def test_the_labels_of_a_column_are_no_names_of_columns():
    series = pytest.importorskip("pandas").Series(TIMES, index=[f"row {i}" for i in range(31)])
    fits = [lockstep.train(x=x, y=x, hidden=[], iterations=2).model.digest for x in (series, TIMES)]
    assert fits[0] == fits[1]
    assert fitted(t=series, u=np.stack([np.cos(TIMES), -np.sin(TIMES)], 1)) == pytest.approx(1)


def test_objects_are_told_how_to_become_numbers(oscillator):
    u0 = np.array([1.0, 0.0], object)
    with pytest.raises(lockstep.WrongType) as caught:
        lockstep.solve(oscillator, u0, (0, 1))
    assert str(caught.value) == "u0: found dtype object, expected real numbers; convert it: numpy.asarray(u0, float)"
    assert lockstep.solve(oscillator, np.asarray(u0, float), (0, 1)).state.shape == (1, 1, 2)


def test_a_column_of_text_is_named(oscillator):
    table = frame(x=[1.0], v=[0.0], who=["a"])
    for call, name in ((lambda: lockstep.solve(oscillator, table, (0, 1)), "u0"), (lambda: fitted(t=[0.0], u=table), "u")):
        with pytest.raises(lockstep.WrongType, match=rf"^{name}.who: found dtype object, expected real numbers; leave the column"):
            call()


def test_a_column_keeps_its_name():
    table = frame(hour=np.linspace(0.0, 1, 20), load=np.linspace(1.0, 2, 20))
    model = lockstep.train(x=table["hour"], y=table["load"], hidden=[], iterations=5, optimiser="lbfgs").model
    assert [model.inputs[0]["features"][0]["name"], model.outputs[0]["features"][0]["name"]] == ["hour", "load"]
    given = lockstep.train(x=table["hour"], y=table["load"].rename(7), inputs=["t"], hidden=[], iterations=5, optimiser="lbfgs").model
    assert [given.inputs[0]["features"][0]["name"], given.outputs[0]["features"][0]["name"]] == ["t", "y0"]

    trained = lockstep.train(t=table["hour"], u=table["load"], hidden=[], iterations=5, optimiser="lbfgs").model
    assert trained.inputs[0]["features"][0]["name"] == "load"


@pytest.mark.parametrize("given, remedy", [
    (np.arange("2024-01-01", "2024-01-04", dtype="M8[D]"), r'divide by a unit: \(t - t\[0\]\) / numpy.timedelta64\(1, "h"\)'),
    (np.arange(3).astype("m8[s]"), r'divide by a unit: t / numpy.timedelta64\(1, "h"\)'),
    (np.array(["0", "1", "2"]), r"convert it: numpy.asarray\(t, float\)")])
def test_times_that_are_no_numbers_are_told_how_to_become_some(given, remedy):
    with pytest.raises(lockstep.WrongType, match=f"^t: found dtype .*, expected real numbers; {remedy}$"):
        lockstep.train(t=given, u=np.zeros((3, 1)), hidden=[2])
