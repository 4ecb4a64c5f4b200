"""States that change at events: a ball against its parabolas, neurons' counts, forms, loops, derivatives, refusals."""

import pickle

import numpy as np
import pytest

import lockstep

TIGHT = dict(precision="f64", rtol=1e-11, atol=1e-11)
BALL = lockstep.equations({"x": "v", "v": "-g", "bounces": "0", "last": "0"}, parameters={"g": 9.81, "bounce": 0.9})
GROUND = {"component": "x", "direction": "falling",
          "to": {"x": 0, "v": "-bounce * v", "bounces": "bounces + 1", "last": "t"}}
T = np.linspace(0, 4, 41)


def ball(t, height, g=9.81, bounce=0.9):
    """Exact x, v, bounces, time of the last one, just before any bounce at t."""
    x, v, begun, count = height, 0.0, 0.0, 0
    while True:
        hits = np.sqrt(v * v + 2 * g * x)
        lands = begun + (v + hits) / g
        if lands >= t:
            since = t - begun
            return x + v * since - g * since**2 / 2, v - g * since, count, begun
        x, v, begun, count = 0.0, bounce * hits, lands, count + 1


def solve(resets=GROUND, u0=(10.0, 0, 0, 0), span=(0, 4), save_at=T, **options):
    return lockstep.solve(BALL, np.array(u0, float), span, save_at, resets=resets, **{**TIGHT, **options})


# Parabolas are followed exactly but for rounding, and so is their root.
def test_a_ball_bounces_as_in_closed_form():
    heights = np.linspace(1, 10, 33)
    states = np.stack([heights, *np.zeros((3, 33))], axis=1)
    solution = lockstep.solve(BALL, states, (0, 4), T, parameters={"bounce": 0.85}, resets=GROUND, **TIGHT)
    for row, height in enumerate(heights):
        np.testing.assert_allclose(solution.state[row], [ball(t, height, bounce=0.85) for t in T], atol=1e-10)
    assert (solution.status == 0).all()
    single = solve(precision="f32", rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(single.state[0, :, :2], [ball(t, 10)[:2] for t in T], atol=1e-3)


def test_all_forms_say_the_same(tmp_path):
    expected = solve().state
    by_function = {"function": "x", "direction": "falling", "to": {**GROUND["to"], "x": np.float64(0)}}
    by_number = {**GROUND, "component": 0, "value": 0.0}
    for same in ([GROUND], (GROUND,), by_function, by_number):
        assert np.array_equal(solve(same).state, expected)
    assert not np.array_equal(solve([]).state, expected) and np.array_equal(solve([]).state, solve(None).state)
    text = ('[rhs]\nparameters = { g = 9.81, bounce = 0.9 }\n[rhs.equations]\nx = "v"\nv = "-g"\nbounces = "0"\nlast = "0"\n'
            '[ensemble]\ninitial_state = [10, 0, 0, 0]\n[time]\nspan = [0, 4]\nsave = 41\n[method]\nprecision = "f64"\n'
            'rtol = 1e-11\natol = 1e-11\n[[resets]]\ncomponent = "x"\ndirection = "falling"\n'
            'to = { x = 0, v = "-bounce * v", bounces = "bounces + 1", last = "t" }\n')
    (tmp_path / "ball.toml").write_text(text)
    assert np.array_equal(lockstep.solve(tmp_path / "ball.toml").state, solve(save_at=41).state)
    with pytest.raises(lockstep.InvalidArgument, match="resets"):
        lockstep.solve(tmp_path / "ball.toml", resets=GROUND)


def test_several_resets_and_an_event_go_together():
    caught = {"component": "x", "value": 3, "direction": "rising", "to": {"v": 0}}
    # Steps of a parabola are as long as its flights: it would rise and fall through 3 within one.
    solution = solve([GROUND, caught], event={"component": "bounces", "value": 1.5}, max_step=0.1)
    assert solution.status[0] == 1 and solution.end_state[0, 2] == 2
    assert solution.end_time[0] == solution.end_state[0, 3]
    g, hits = 9.81, np.sqrt(2 * 9.81 * 10)
    rises = (0.9 * hits - np.sqrt((0.9 * hits) ** 2 - 2 * g * 3)) / g
    assert solution.end_time[0] == pytest.approx(hits / g + rises + np.sqrt(2 * 3 / g), abs=1e-10)


def test_a_solver_keeps_them():
    solver = lockstep.Solver(BALL, [10.0, 0, 0, 0], (0, 4), T, resets=GROUND, **TIGHT)
    for again in (solver, pickle.loads(pickle.dumps(solver))):
        for bounce in (0.8, 0.9, 0.95):
            expected = lockstep.solve(BALL, [10.0, 0, 0, 0], (0, 4), T, parameters={"bounce": bounce}, resets=GROUND, **TIGHT)
            assert np.array_equal(again(parameters={"bounce": bounce}).state, expected.state)
    assert np.array_equal(solver([5.0, 0, 0, 0]).state, solve(u0=[5.0, 0, 0, 0]).state)


# At the bounce of a ball from h the flight behind it is a closed form of h, g and the share that is left.
def test_derivatives_pass_them():
    def exact(h, g, bounce, t):
        lands = np.sqrt(2 * h / g)
        speed = bounce * np.sqrt(2 * g * h)
        return np.array([speed * (t - lands) - g / 2 * (t - lands) ** 2, speed - g * (t - lands), 1, lands])

    at = np.array([10.0, 9.81, 0.9])
    expected = np.stack([(exact(*(at + step), 3.0) - exact(*(at - step), 3.0)) / 2e-5 for step in 1e-5 * np.eye(3)])
    for form in (GROUND, {"function": "x", "direction": "falling", "to": GROUND["to"]}):
        solution = solve(form, save_at=[3.0])
        forward = solution.sensitivities()
        for component in range(4):
            bar = np.eye(4)[component]
            back = solution.vjp(state=bar.reshape(1, 1, 4))
            # Central differences err by 1e-10 of curvature and 1e-16 / 1e-5 of rounding.
            np.testing.assert_allclose(back.u0[0, 0], expected[0, component], atol=1e-7)
            np.testing.assert_allclose(back.parameters.ravel(), expected[1:, component], atol=1e-7)
            np.testing.assert_allclose(forward.state_by_parameter[0, 0, component], back.parameters.ravel(), atol=1e-10)


def test_files_keep_them(tmp_path):
    solution = solve(output=tmp_path / "ball.h5")
    assert np.array_equal(solution.state, solve().state)
    solve().save(tmp_path / "saved.h5")
    solve(precision="f32", rtol=1e-6, atol=1e-6).save(tmp_path / "f32.h5")
    for name in ("ball.h5", "saved.h5"):
        assert lockstep.read(tmp_path / name).attributes["resets"].startswith("1 reset: x = 0, v = -bounce * v")


@pytest.mark.parametrize("resets, field, words", [
    (5, "resets", "int.*dict"),
    ([GROUND, "x"], "resets", "list of them"),
    ({}, "resets[0]", "no component"),
    ({"component": "x"}, "resets[0]", "no new state.*to"),
    ({"component": "x", "to": {"y": 1}}, "resets[0].to.y", "one of x, v, bounces, last"),
    ({"component": "y", "to": {"x": 1}}, "resets[0].component", "one of x, v, bounces, last"),
    ([GROUND, {"component": "x", "to": {"v": "-w"}}], "resets[1].to.v", "column 2"),
    ({"component": "x", "to": {"v": True}}, "resets[0].to.v", "expression"),
    ({"component": "x", "to": {"v": float("nan")}}, "to", "finite"),
    ({"component": "x", "affect": {"v": 1}}, "resets[0].affect", "to="),
    ({"function": "x > 1", "to": {"v": 1}}, "resets[0].function", "condition"),
])
def test_what_is_wrong_is_named(resets, field, words):
    with pytest.raises(lockstep.Error, match=words) as caught:
        solve(resets)
    assert field in caught.value.field, str(caught.value)


def test_steps_that_trajectories_share_are_refused():
    for options, found in ((dict(control="common"), "common"), (dict(dt=0.01, rtol=None, atol=None), "fixed")):
        with pytest.raises(lockstep.InvalidArgument, match=f"{found} with resets.*per_trajectory"):
            solve(**options)
    with pytest.raises(lockstep.Error, match="resets|cuda"):
        solve(device="cuda")


def test_words_of_other_programs_are_told_ours():
    with pytest.raises(lockstep.Error, match="write resets="):
        lockstep.solve(BALL, [10.0, 0, 0, 0], (0, 4), callback=GROUND)


def heights(noise=0.02, balls=4, seed=0):
    """Times, heights with errors and first speeds alone of thrown balls; which ball it is."""
    random, times = np.random.default_rng(seed), 0.03 * np.arange(61)
    u = np.full((balls, 61, 2), np.nan)
    for i in range(balls):
        u[i, :, 0] = [ball(t, 1 + 0.2 * i, bounce=0.8)[0] for t in times]
        u[i, 1:, 0] += noise * random.normal(size=60)
        u[i, 0, 1] = 0
    return times, u


FALLING = dict(equations={"x": "v", "v": "-g"}, precision="f64",
               resets={"component": "x", "direction": "falling", "to": {"x": 0, "v": "-bounce * v"}},
               parameters={"g": {"start": 8, "positive": True}, "bounce": {"start": 0.6, "min": 0, "max": 1}})


def test_training_finds_what_a_bounce_leaves():
    t, u = heights()
    found = lockstep.train(t=t, u=u, **FALLING)
    for name, truth in (("g", 9.81), ("bounce", 0.8)):
        lower, upper = found.intervals[name]
        assert lower < truth < upper and upper - lower < 0.02 * truth
    assert found.errors["training"]["x"]["rms"] == pytest.approx(0.02, rel=0.2)
    again = lockstep.train(t=t, u=u, threads=2, **FALLING)
    assert again.parameters == found.parameters
    # What was found is the model's own; who solves says where it is reset.
    solution = lockstep.solve(found.rhs, [1.0, 0], (0, 1.8), t, resets=FALLING["resets"], precision="f64")
    np.testing.assert_allclose(solution.state[0, :, 0], [ball(at, 1, bounce=0.8)[0] for at in t], atol=0.02)


def test_training_refuses_resets_by_name():
    t, u = heights()
    with pytest.raises(lockstep.InvalidArgument, match="dt: found fixed steps with resets"):
        lockstep.train(t=t, u=u, dt=0.01, **FALLING)
    with pytest.raises(lockstep.Error, match="resets: found a value beside x and y"):
        lockstep.train(x=[0.0, 1], y=[0.0, 1], hidden=[2], resets=GROUND)
    with pytest.raises(lockstep.Error, match="resets: found a value beside a training file"):
        lockstep.train("train.toml", resets=GROUND)
    with pytest.raises(TypeError, match="resets: found str"):
        lockstep.train(t=t, u=u, **{**FALLING, "resets": "x"})
    with pytest.raises(lockstep.InvalidArgument, match="a net in a reset that is trained"):
        resets = {"component": "x", "to": {"v": "-net(v)"}}
        lockstep.train(t=t, u=u, hidden=[3], **{**FALLING, "equations": {"x": "v", "v": "-net(v)"}, "resets": resets})


def test_resets_and_events_name_what_the_equations_define_and_call(tmp_path):
    fading = lockstep.table([0, 10], [0.9, 0.4])
    model = lockstep.equations({"x": "v", "v": "-weight"}, parameters={"g": 4.905}, definitions={"weight": "2 * g"},
                               models={"rest": fading})
    ground = {"component": "x", "direction": "falling", "to": {"x": 0, "v": "-rest(t) * v + 0 * weight"}}
    (tmp_path / "ball.toml").write_text('''
[rhs]
parameters = { g = 4.905 }
tables = { rest = { at = [0, 10], values = [0.9, 0.4] } }
definitions = { weight = "2 * g" }
[rhs.equations]
x = "v"
v = "-weight"
[ensemble]
initial_state = [1, 0]
[time]
span = [0, 3]
save = 31
[[resets]]
component = "x"
direction = "falling"
to = { x = 0, v = "-rest(t) * v + 0 * weight" }
[method]
precision = "f64"
''')
    expected = lockstep.solve(tmp_path / "ball.toml").state
    for one in (model, pickle.loads(pickle.dumps(model))):
        solution = lockstep.solve(one, [1, 0], (0, 3), 31, resets=ground, precision="f64")
        assert (solution.state == expected).all() and (solution.state[0, :, 0] > -1e-9).all()
    stopped = lockstep.solve(model, [1, 0], (0, 3), event="v + rest(t) * weight / 8", **TIGHT)
    assert stopped.status.tolist() == [1]
    t = stopped.end_time[0]
    assert abs(9.81 * t - (0.9 - 0.05 * t) * 9.81 / 8) < 1e-9
    solver = lockstep.Solver(model, [1, 0], (0, 3), 31, resets=ground, precision="f64")
    assert (pickle.loads(pickle.dumps(solver))([1, 0]).state == expected).all()
    loaded = lockstep.load(saved(model, tmp_path / "ball.h5"))
    with pytest.raises(lockstep.InvalidArgument, match="rest"):
        lockstep.solve(loaded, [1, 0], (0, 3), resets=ground)


def saved(model, path):
    model.save(path)
    return path


@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("direction, first, apart", [("falling", 0.5, 2), ("rising", 1.5, 2), ("either", 0.5, 1)])
def test_one_that_changes_nothing_records_crossings(precision, direction, first, apart):
    circle = lockstep.equations({"x": "v", "v": "-x"})
    solved = [lockstep.solve(circle, [[1, 0], [2, 0]], (0, 50), 6, resets={"component": "x", "direction": direction, "to": to},
                             keep_events=True, precision=precision) for to in ({}, {"x": "x"})]
    assert np.array_equal(solved[0].state, solved[1].state)
    times = np.arange(first * np.pi, 50, apart * np.pi)  # of cos t
    for i in (0, 1):
        assert np.array_equal(solved[0].events[i], solved[1].events[i]) and len(solved[0].events[i]) == len(times)
        # The solve's tolerance is 1e-6 a step, some 300 of them.
        np.testing.assert_allclose(solved[0].events[i], times, atol=1e-3)
    assert solved[0].end_time.tolist() == [50, 50]
    assert solved[0].attributes["resets"].startswith("1 reset: no change where x ")


def test_files_keep_what_changes_nothing(tmp_path):
    (tmp_path / "p.toml").write_text(
        '[rhs.equations]\nx = "v"\nv = "-x"\n[ensemble]\ninitial_state = [1, 0]\n[time]\nspan = [0, 50]\nsave = 5\n'
        '[[resets]]\nfunction = "x - v"\nto = {}\n[output]\nevents = true\n')
    solution = lockstep.solve(tmp_path / "p.toml", precision="f64", output=tmp_path / "p.h5")
    assert np.array_equal(lockstep.read(tmp_path / "p.h5").events[0], solution.events[0]) and len(solution.events[0]) == 16
    assert lockstep.validate(tmp_path / "p.h5", solution).same_bits
    again = lockstep.solve(tmp_path / "p.toml", precision="f64")
    gradients = again.vjp(end_state=[[1.0, 0.0]])  # x(50) = x0 cos 50 + v0 sin 50
    np.testing.assert_allclose(gradients.u0, [[np.cos(50), np.sin(50)]], atol=1e-3)  # as above


def test_a_training_takes_what_changes_nothing():
    t = np.linspace(0, 4, 41)
    u = np.stack([np.cos(1.2 * t), -1.2 * np.sin(1.2 * t)], 1)
    training = lockstep.train(t=t, u=u, equations={"x": "v", "v": "-k * x"}, parameters={"k": {"start": 1}},
                              resets={"component": "x", "to": {}}, precision="f64")
    assert abs(training.parameters["k"] - 1.44) < 1e-4
