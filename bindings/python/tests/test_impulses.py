"""States that change all at once: doses against closed forms, the forms they are given in, derivatives, training,
refusals."""

import pickle

import numpy as np
import pytest

import lockstep

pandas = pytest.importorskip("pandas")
TIGHT = dict(precision="f64", rtol=1e-11, atol=1e-11)
BLOOD = lockstep.equations({"blood": "-k * blood"}, parameters={"k": 0.5})
ORAL = lockstep.equations({"gut": "-ka * gut", "blood": "ka * gut - ke * blood"}, parameters={"ka": 1.2, "ke": 0.25})
T = np.linspace(0, 10, 21)


def blood(t, doses, k=0.5, start=0.0):
    """The exact amount just before any dose at t, of doses (time, change, factor) in their order."""
    amount, at = start, T[0]
    for time, change, factor in doses:
        if T[0] <= time < t:
            amount, at = factor * amount * np.exp(-k * (time - at)) + change, time
    return amount * np.exp(-k * (t - at))


def oral(t, doses, ka=1.2, ke=0.25):
    """The exact amounts just before any dose (time, change) at t, from nothing: a sum, as all is linear."""
    since = [(change, t - time) for time, change in doses if time < t]
    gut = sum(change * np.exp(-ka * h) for change, h in since)
    return gut, sum(change * ka / (ka - ke) * (np.exp(-ke * h) - np.exp(-ka * h)) for change, h in since)


# Adaptive steps at 1e-11 err by a few times that.
def test_doses_are_those_of_the_closed_form():
    doses = [(0, 10, 1), (2, 5, 1), (4, 5, 0.5), (10, 99, 1), (-1, 99, 1)]
    given = dict(zip(("time", "change", "factor"), np.array(doses).T), component="blood")
    solution = lockstep.solve(BLOOD, [1.0], (0, 10), T, impulses=given, **TIGHT)
    expected = [blood(t, doses, start=1.0) for t in T]
    np.testing.assert_allclose(solution.state[0, :, 0], expected, atol=1e-10)
    assert solution.end_state[0, 0] == solution.state[0, -1, 0] and solution.state[0, 0, 0] == 1
    single = lockstep.solve(BLOOD, [1.0], (0, 10), T, impulses=given)
    np.testing.assert_allclose(single.state[0, :, 0], expected, atol=1e-5)
    fixed = lockstep.solve(BLOOD, [1.0], (0, 10), T, impulses=given, precision="f64", method="dop853", dt=0.25)
    np.testing.assert_allclose(fixed.state[0, :, 0], expected, atol=1e-10)


# 3 * 0.1 is 0.30000000000000004: the times of both are one, of the whole ensemble and of a trajectory's own.
def test_those_of_one_time_but_for_roundings_stay_in_their_order():
    halves = {"time": np.array([0.1, 0.2, 0.3]), "component": "x", "factor": 0.5}
    ones = {"time": np.arange(1, 4) * 0.1, "component": "x", "change": 1}
    still = lockstep.equations({"x": "0"})
    for own in ({}, {"trajectory": 1}):
        ends = {}
        for name, impulses in (("ones first", [ones, halves]), ("halves first", [halves, ones])):
            solution = lockstep.solve(still, np.zeros((2, 1)), (0, 1), **TIGHT,
                                      impulses=[{**each, **own} for each in impulses])
            ends[name] = solution.end_state[1, 0]
        assert ends == {"ones first": 0.875, "halves first": 1.75}, own


def test_patients_get_doses_of_their_own():
    doses = [[(0, 4.0), (3.25, 2.0)], [], [(1.5, 3.0)], [(9.5, 1.0), (0.1, 7.0)]]
    rows = [(time, i, change) for i, each in enumerate(doses) for time, change in each]
    time, trajectory, change = zip(*rows)
    solution = lockstep.solve(ORAL, np.zeros((4, 2)), (0, 10), T, **TIGHT, impulses={
        "time": time, "component": "gut", "change": change, "trajectory": trajectory})
    for i, each in enumerate(doses):
        np.testing.assert_allclose(solution.state[i], [oral(t, each) for t in T], atol=1e-9)
    one = lockstep.solve(ORAL, np.zeros((1, 2)), (0, 10), T, **TIGHT, impulses={
        "time": [0, 3.25], "component": 0, "change": [4.0, 2.0]})
    assert np.array_equal(one.state[0], solution.state[0])


def test_a_factor_alone_takes_a_part_away():
    pond = lockstep.equations({"fish": "r * fish * (1 - fish / 100)"}, parameters={"r": 0.3})
    solution = lockstep.solve(pond, [50.0], (0, 20), [5, 5.000001], **TIGHT,
                              impulses={"time": 5, "component": "fish", "factor": 0.4})
    before, behind = solution.state[0, :, 0]
    assert behind == pytest.approx(0.4 * before, rel=1e-6)


def test_all_forms_say_the_same(tmp_path):
    frame = pandas.DataFrame({"time": [1.0, 2.0, 1.0], "component": ["gut", "blood", "gut"], "change": [1.0, 2.0, 3.0],
                              "factor": [1.0, 0.5, 0.5], "trajectory": [0, 1, 1]})
    u0 = np.ones((2, 2))

    def solve(impulses):
        return lockstep.solve(ORAL, u0, (0, 4), 9, impulses=impulses).state

    expected = solve(frame)
    numbers = {**frame.to_dict("list"), "component": [0, 1, 0]}
    structured = np.array(list(zip(*frame.to_dict("list").values())), dtype=[
        ("time", float), ("component", "U5"), ("change", float), ("factor", float), ("trajectory", int)])
    forms = [frame.to_dict("list"), frame.to_dict("records"), frame[frame.columns[::-1]], frame.to_records(index=False),
             numbers, structured, [numbers], [frame[frame.trajectory == i] for i in (0, 1)]]
    xarray = pytest.importorskip("xarray")
    forms += [frame.to_xarray(), xarray.Dataset({name: ("dose", frame[name]) for name in frame.columns})]
    for form in forms:
        assert np.array_equal(solve(form), expected)
    for none in (None, [], (), {"time": [], "component": [], "change": []}):
        assert np.array_equal(solve(none), lockstep.solve(ORAL, u0, (0, 4), 9).state)


def test_names_and_numbers_of_components_may_stand_side_by_side():
    expected = lockstep.solve(ORAL, [0.0, 0.0], (0, 10), T, **TIGHT,
                              impulses={"time": [0, 2, 4], "component": ["gut", "blood", "gut"], "change": [3, 4, 5]})
    for components in (["gut", 1, "gut"], [0, "blood", 0], ["gut", np.int64(1), 0]):
        solution = lockstep.solve(ORAL, [0.0, 0.0], (0, 10), T, **TIGHT,
                                  impulses={"time": [0, 2, 4], "component": components, "change": [3, 4, 5]})
        np.testing.assert_array_equal(solution.state, expected.state)
    for wrong, found in ((["gut", 1.5], r"component\[1\]: found 1\.5"), (["gut", -1], r"component\[1\].*: found -1"),
                         (["gut", True], r"component\[1\]: found True")):
        with pytest.raises(lockstep.Error, match=found):
            lockstep.solve(ORAL, [0.0, 0.0], (0, 10), impulses={"time": [0, 2], "component": wrong, "change": 3})


def test_what_one_gets_stands_among_what_all_get_in_order():
    given = [{"time": 1, "component": "blood", "change": 4}, {"time": 1, "component": "blood", "factor": 0.5, "trajectory": 1},
             {"time": 1, "component": "blood", "change": 1}]
    solution = lockstep.solve(BLOOD, np.zeros((3, 1)), (0, 2), impulses=given, **TIGHT)
    np.testing.assert_allclose(solution.end_state[:, 0], np.array([5, 3, 5]) * np.exp(-0.5), rtol=1e-10)


def test_a_solver_keeps_them(tmp_path):
    given = {"time": [1, 2], "component": "gut", "change": [3.0, 4.0], "trajectory": np.array([0, 1])}
    u0 = np.array([[1.0, 0], [2, 0]])
    solver = lockstep.Solver(ORAL, u0, (0, 4), 9, impulses=given)
    given["trajectory"][:] = 0
    expected = lockstep.solve(ORAL, u0, (0, 4), 9, impulses={**given, "trajectory": [0, 1]}).state
    for again in (solver, solver, pickle.loads(pickle.dumps(solver))):
        assert np.array_equal(again().state, expected)
        assert np.array_equal(again(u0).state, expected)
        assert np.array_equal(again(parameters={"ka": 1.2}).state, expected)
    with pytest.raises(lockstep.Error, match="impulses.trajectory: found 1, expected a trajectory from 0 to 0"):
        solver(u0[:1])
    lockstep.solve(ORAL, u0, (0, 4), 9, impulses={**given, "trajectory": [0, 1]}, output=tmp_path / "dosed.h5")
    assert np.array_equal(lockstep.read(tmp_path / "dosed.h5").state, expected)


def test_files_and_attributes_have_them(tmp_path):
    frame = pandas.DataFrame({"time": [2.0, 1.0, 1.0], "component": ["gut", "gut", "blood"], "change": [1.0, 2.0, 3.0],
                              "trajectory": [0, 0, 1]})
    u0, given = np.ones((2, 2)), dict(save_at=9, precision="f64")
    solution = lockstep.solve(ORAL, u0, (0, 4), **given, impulses=frame)
    lockstep.solve(ORAL, u0, (0, 4), **given, impulses=frame, output=tmp_path / "streamed.h5")
    solution.save(tmp_path / "saved.h5")
    for name in ("streamed.h5", "saved.h5"):
        file = lockstep.read(tmp_path / name)
        assert np.array_equal(file.state, solution.state)
        assert file.attributes["impulses"] == solution.attributes["impulses"]
        assert file.attributes["problem_digest"] == solution.attributes["problem_digest"]
        assert lockstep.validate(solution, tmp_path / name).same_bits
    assert solution.attributes["impulses"].endswith("of gut, blood, at t = 1 to 2")
    # Solved again, by another target: the file alone says what the problem is.
    scalar = lockstep.solve(ORAL, u0, (0, 4), **given, impulses=frame, cpu_target="scalar")
    assert lockstep.validate(tmp_path / "saved.h5", scalar).same_bits
    without = lockstep.solve(ORAL, u0, (0, 4), **given)
    assert without.attributes["problem_digest"] != solution.attributes["problem_digest"]
    assert not lockstep.validate(solution, without)
    # In whatever order of time they were given.
    ordered = lockstep.solve(ORAL, u0, (0, 4), **given, impulses=frame.sort_values("time", kind="stable"))
    assert ordered.attributes["problem_digest"] == solution.attributes["problem_digest"]
    # And as the problem file of the command line tool.
    (tmp_path / "problem.toml").write_text('''
[rhs.equations]
gut = "-ka * gut"
blood = "ka * gut - ke * blood"
[rhs]
parameters = { ka = 1.2, ke = 0.25 }
[ensemble]
trajectories = 2
initial_state = [1, 1]
[time]
span = [0, 4]
save = 9
[method]
precision = "f64"
[[impulses]]
file = "doses.csv"
''')
    frame.to_csv(tmp_path / "doses.csv", index=False)
    assert np.array_equal(lockstep.solve(tmp_path / "problem.toml").state, solution.state)


# As in test_gradients.py; here third derivatives are of size 10, and steps at 1e-11.
def test_derivatives_pass_them():
    w = np.random.default_rng(1).normal(size=(3, len(T), 2))
    u0, values = np.array([[1.0, 0.5], [0.2, 2], [0.1, 0.3]]), np.array([[1.2, 0.25], [0.9, 0.3], [1.5, 0.2]])
    given = {"time": [0, 0.5, 3, 3, 4.1], "component": ["gut", "gut", "blood", "gut", "blood"], "change": [3, 2, 0, 1, 1],
             "factor": [1, 1, 0.5, 0.25, 1], "trajectory": [0, 1, 1, 1, 2]}

    def solve(u0, values):
        return lockstep.solve(ORAL, u0, (0, 10), T, parameters=values, impulses=given, **TIGHT)

    solution = solve(u0, values)
    back, forward = solution.vjp(w), solution.sensitivities()
    np.testing.assert_allclose(back.u0, np.einsum("ntc,ntcd->nd", w, forward.state_by_u0), rtol=1e-9)
    np.testing.assert_allclose(back.parameters, np.einsum("ntc,ntcp->np", w, forward.state_by_parameter), rtol=1e-9)
    for number in range(2):
        for by, of in ((back.u0, 0), (back.parameters, 1)):
            moved = [u0.copy(), values.copy()], [u0.copy(), values.copy()]
            moved[0][of][:, number] += 1e-5
            moved[1][of][:, number] -= 1e-5
            ahead, behind = (np.sum(w * solve(*at).state, axis=(1, 2)) for at in moved)
            np.testing.assert_allclose(by[:, number], (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-6)
    # Behind times 0.5 what blood held counts half: by superposition, exactly.
    alone = lockstep.solve(BLOOD, [2.0], (0, 2), impulses={"time": 1, "component": "blood", "factor": 0.5}, **TIGHT)
    assert alone.vjp(end_state=[[1.0]]).u0[0, 0] == pytest.approx(0.5 * np.exp(-1), rel=1e-10)


ROW = {"time": 1, "component": "blood", "change": 1}


@pytest.mark.parametrize("impulses, message", [
    (5, "impulses: found int, expected a dict"),
    ({"time": 1, "change": 1}, "impulses: found no component, expected time and component of each"),
    ({"time": 1, "component": "blood"}, "impulses: found neither change nor factor"),
    ({"time": 1, "component": "blood", "amt": 1}, 'impulses.amt: found an unknown key, .* did you mean "change"'),
    ({"every": 12, "component": "blood", "change": 1}, "impulses.every: found an unknown key, .* write the times out"),
    ([ROW, {**ROW, "compnent": 1}], r'impulses\[1\].compnent: found an unknown key, .* did you mean "component"'),
    ({**ROW, "component": "bloot"}, 'impulses.component: found "bloot", expected one of blood; did you mean "blood"'),
    ({**ROW, "component": 1}, "impulses.component: found 1, expected a component from 0 to 0"),
    ({**ROW, "component": [-1]}, r"impulses.component\[0\]: found -1, expected a component from 0 on"),
    ({**ROW, "component": 0.5}, "impulses.component: found 0.5, expected the name of a component, or its number"),
    ({**ROW, "trajectory": [0, 2, 1]}, "impulses.trajectory: found 2, expected a trajectory from 0 to 1"),
    ({**ROW, "trajectory": [0, -2]}, r"impulses.trajectory\[1\]: found -2, expected a trajectory from 0 on"),
    ({**ROW, "trajectory": 0.5}, "impulses.trajectory: found dtype float64, expected numbers of trajectories"),
    ({**ROW, "trajectory": [0.0, 1.0]}, r"impulses.trajectory: found dtype float64, .*\.astype\(int\)"),
    ({**ROW, "time": [1, 2], "change": [1, 2, 3]}, "impulses.change: found 3 of them, expected 2, as time has, or one"),
    ({**ROW, "time": [[1]]}, r"impulses.time: found shape \(1, 1\), expected one for each impulse, or one for all"),
    ({**ROW, "time": [1, np.nan]}, r"impulses.time\[1\]: found NaN, expected a finite number"),
    ({**ROW, "change": np.inf}, "impulses.change: found inf, expected a finite number"),
    ({**ROW, "factor": "half"}, "impulses.factor: found dtype <U4, expected real numbers"),
])
def test_what_does_not_fit_is_refused(impulses, message):
    with pytest.raises(lockstep.Error, match=message):
        lockstep.solve(BLOOD, [[1.0], [2.0]], (0, 4), impulses=impulses)


@pytest.mark.parametrize("options, message", [
    ({"t_span": (4, 0)}, "impulses: found some, and a span that runs backwards for trajectory 0"),
    ({"dt": 0.3}, "impulses: found 1 within a step of trajectory 1, expected times at which fixed steps end"),
    ({"control": "common"}, "control: found common with impulses of each trajectory's own"),
])
def test_solves_that_cannot_have_them_are_refused(options, message):
    with pytest.raises(lockstep.Error, match=message):
        lockstep.solve(BLOOD, [[1.0], [2.0]], **{"t_span": (0, 4), **options}, impulses={**ROW, "trajectory": 1})


@pytest.mark.filterwarnings("ignore:not at the least")
def test_times_in_another_unit_are_told():
    with pytest.warns(UserWarning, match="no impulse lies between the start and the end of its trajectory"):
        lockstep.solve(BLOOD, [1.0], (0, 4), impulses={**ROW, "time": [24, 48]})
    with pytest.warns(UserWarning, match="no impulse lies between the first and the last point of its trajectory"):
        lockstep.train(t=T, u=np.exp(-T), impulses={**ROW, "time": 24}, equations={"blood": "-k * blood"},
                       parameters={"k": {"start": 0.9}}, phases=[{"optimiser": "lbfgs", "iterations": 5}])


def patients(count, seed):
    """Doses and noisy blood of patients at times of their own: a table each."""
    random = np.random.default_rng(seed)
    doses, rows = [], []
    for i in range(count):
        own = [(0.0, 4.0), (random.uniform(3, 5), random.uniform(2, 5))]
        doses += [{"time": time, "component": "gut", "change": change, "trajectory": f"p{i}"} for time, change in own]
        for t in [0, *np.sort(random.uniform(0.3, 12, 7 + i % 3))]:
            amount = oral(t, own)[1] + (random.normal(0, 0.05) if t else 0)
            rows.append({"patient": f"p{i}", "t": t, "gut": np.nan if t else 0.0, "blood": amount})
    return pandas.DataFrame(doses), pandas.DataFrame(rows)


def fit(doses, rows, **options):
    return lockstep.train(t=rows["t"], u=rows[["gut", "blood"]], trajectory=rows["patient"], impulses=doses,
                          equations={"gut": "-ka * gut", "blood": "ka * gut - ke * blood"},
                          parameters={"ka": {"start": 0.5, "positive": True}, "ke": {"start": 0.6, "positive": True}},
                          precision="f64", phases=[{"optimiser": "lbfgs", "iterations": 40}], **options)


# The truth within four standard errors, 1 in 8,000 fits would miss it; noise is its own error to 4 of 1 / sqrt(2 n).
def test_rates_are_found_from_patients_and_their_doses():
    doses, rows = patients(20, seed=3)
    found = fit(doses, rows, validation=0.2)
    assert abs(found.parameters["ka"] - 1.2) < 4 * found.standard_errors["ka"] < 0.4
    assert abs(found.parameters["ke"] - 0.25) < 4 * found.standard_errors["ke"] < 0.1
    for data in ("training", "validation"):
        error = found.errors[data]["blood"]
        assert error["rms"] == pytest.approx(0.05, rel=4 / np.sqrt(2 * error["numbers"]))
    again = fit(doses.sample(frac=1, random_state=1).sort_values("time"), rows, validation=0.2)
    assert again.parameters == found.parameters
    later = doses.assign(time=doses["time"] + 1)
    assert fit(later, rows).errors["training"]["blood"]["rms"] > 0.1
    unknown = r"impulses.trajectory\[0\]: found 'p99', expected a label that trajectory has, too; did you mean \"p9\""
    with pytest.raises(lockstep.Error, match=unknown):
        fit(doses.assign(trajectory="p99"), rows)
    with pytest.raises(lockstep.Error, match='impulses.component: found "guts", expected one of gut, blood'):
        fit(doses.assign(component="guts"), rows)
    first = found.history["loss"][0]
    assert fit(doses[doses["time"] == 0], rows).history["loss"][0] != first


# A rate that changes all at once: an infusion is a state that nothing else moves. Into blood that loses a rate k of what
# it has, R for a time h gives R / k (1 - exp(-k h)).
def test_infusions_are_states_of_their_own():
    infused = lockstep.equations({"blood": "rate - k * blood", "rate": "0"}, parameters={"k": 0.5})
    infusions = {"time": [1, 3], "component": "rate", "change": [7, -7]}
    solution = lockstep.solve(infused, [0.0, 0.0], (0, 6), [1, 2, 3, 6], impulses=infusions, **TIGHT)
    at_end = 14 * (1 - np.exp(-1))
    expected = [0, 14 * (1 - np.exp(-0.5)), at_end, at_end * np.exp(-1.5)]
    np.testing.assert_allclose(solution["blood"][0], expected, atol=1e-10)
    assert solution["rate"][0].tolist() == [0, 7, 7, 0]
    # Of states whose starts are given a table of what was measured need not have columns.
    measured = pandas.DataFrame({"t": T, "blood": lockstep.solve(infused, [0.0, 0.0], (0, 10), T, impulses=infusions,
                                                                 **TIGHT)["blood"][0]})
    found = lockstep.train(t=measured["t"], u=measured[["blood"]], impulses=infusions, starts={"rate": 0, "blood": 0},
                           equations={"blood": "rate - k * blood", "rate": "0"}, parameters={"k": {"start": 1.0}},
                           precision="f64", rtol=1e-9, atol=1e-9)
    assert found.parameters["k"] == pytest.approx(0.5, rel=1e-6)
    with pytest.raises(lockstep.Error, match="u: found no column rate, expected one for each component"):
        lockstep.train(t=measured["t"], u=measured[["blood"]], impulses=infusions, starts={"blood": 0},
                       equations={"blood": "rate - k * blood", "rate": "0"}, parameters={"k": {"start": 1.0}})


# Doses of all, and points at their times, which are measured before them: segments meet each once.
@pytest.mark.filterwarnings("ignore:not at the least")  # of residuals of 1e-9
def test_segments_start_behind_doses():
    doses = [(2.0, 3.0), (5.0, 2.0), (7.0, 4.0)]
    given = {"time": [2, 5, 7], "component": "gut", "change": [3, 2, 4]}
    u = np.array([oral(t, [(0, 4.0), *doses]) for t in T])
    u[0] = 4, 0
    for phase in ({}, {"segment": 1}, {"segment": 3}, {"segment": 4, "continuity": 1.0}):
        found = lockstep.train(t=T, u=u, impulses=given, precision="f64", rtol=1e-9, atol=1e-9,
                               equations={"gut": "-ka * gut", "blood": "ka * gut - ke * blood"},
                               parameters={"ka": {"start": 1.0}, "ke": {"start": 0.3}},
                               phases=[{"optimiser": "lbfgs", "iterations": 30, **phase}])
        assert found.parameters["ka"] == pytest.approx(1.2, rel=1e-6)
        assert found.parameters["ke"] == pytest.approx(0.25, rel=1e-6)


def test_trainings_refuse_what_does_not_fit(tmp_path):
    data = dict(t=T, u=np.ones((len(T), 1)), equations={"blood": "-k * blood"}, parameters={"k": {"start": 1}})
    with pytest.raises(lockstep.Error, match="impulses: found a value beside x and y, expected none"):
        lockstep.train(x=[0.0, 1], y=[0.0, 1], hidden=[2], impulses=ROW)
    with pytest.raises(lockstep.Error, match="impulses: found a value beside a training file"):
        lockstep.train("train.toml", impulses=ROW)
    with pytest.raises(lockstep.Error, match="impulses.trajectory: found 1, expected a trajectory from 0 to 0"):
        lockstep.train(**data, impulses={**ROW, "trajectory": 1})
    with pytest.raises(lockstep.Error, match="impulses: found 1.3 within a step of trajectory 0"):
        lockstep.train(**data, dt=0.25, impulses={**ROW, "time": 1.3})


def test_save_points_that_roundings_keep_apart_hold_the_state_before():
    model = lockstep.equations({"x": "0"})
    times = np.array([0.1 * k for k in range(11)])
    assert times[3] != 0.3 and times[7] != 0.7
    for given in ({"time": [0.3, 0.7], "component": "x", "change": 1},
                  {"time": [0.3, 0.7, 0.7], "trajectory": [0, 0, 1], "component": "x", "change": 1}):
        for save_at in (times, np.tile(times, (2, 1)) if "trajectory" in given else times):
            solution = lockstep.solve(model, [[0.0], [0.0]], (0, 1), save_at, impulses=given, precision="f64")
            assert solution.state[0, :, 0].tolist() == [0.0] * 4 + [1.0] * 4 + [2.0] * 3


def test_several_changes_at_one_time_of_one_component_say_of_whom():
    still, starts = lockstep.equations({"x": "0"}), np.zeros((3, 1))
    each = {"time": 1, "component": "x", "change": [100, 50, 75]}
    with pytest.raises(lockstep.InvalidArgument, match=r"^impulses.change: found 3 numbers at one time of one component, "
                       r"expected a number; of trajectories of their own, .trajectory.: range\(3\); all for each: their sum"):
        lockstep.solve(still, starts, (0, 2), [2], impulses=each)
    with pytest.raises(lockstep.InvalidArgument, match=r"^impulses\[0\].factor: found 2 numbers"):
        lockstep.solve(still, starts, (0, 2), [2], impulses=[{"time": 1, "component": "x", "factor": [2, 3]}])
    own = lockstep.solve(still, starts, (0, 2), [2], impulses={**each, "trajectory": range(3)})
    assert own.state.ravel().tolist() == [100, 50, 75]
