"""A Solver's calls, which set up no more than what changed, give what solve() gives."""

import _thread
import copy
import datetime
import pickle
import threading
import time

import numpy as np
import pytest

import lockstep

ARRAYS = ("state", "end_state", "time", "status", "accepted", "rejected", "evaluations", "end_time", "initial_state",
          "parameters")
OPTIONS = {"precision": "f64", "rtol": 1e-8, "atol": 1e-8}
START, PARAMETERS = [1.0, 2, 20], [10.0, 28, 8 / 3]


def assert_same(solution, expected):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(solution, name), getattr(expected, name), err_msg=name)
    differ = {"history", "seconds", "command"}
    assert ({name: value for name, value in solution.attributes.items() if name not in differ}
            == {name: value for name, value in expected.attributes.items() if name not in differ})


def test_numbers_may_come_in_any_form_and_shape():
    solver = lockstep.Solver("lorenz", START, (0, 1), 5, **OPTIONS)
    rows = np.array([START, [1, 1, 19], [0, 1, 18]])
    forms = (START, tuple(START), np.array(START), np.array(START, "f4"), [1, 2, 20], np.array([1, 2, 20]),
             [1, np.float64(2), 20], rows[:1], rows, rows.tolist(), list(rows), np.asfortranarray(rows), rows[::-1],
             rows[:, ::-1], rows[::2], np.ma.array(rows), np.array(START, ">f8"),
             [1, np.int64(2), np.float32(20)], None)
    for _ in range(2):
        for u0 in forms:
            for parameters in (None, PARAMETERS, np.array(PARAMETERS)):
                expected = lockstep.solve("lorenz", START if u0 is None else u0, (0, 1), 5, parameters=parameters,
                                          **OPTIONS)
                assert_same(solver(u0, parameters=parameters), expected)
                assert_same(solver(u0, parameters=parameters), expected)
    many = PARAMETERS * np.linspace(0.9, 1.1, 4)[:, np.newaxis]
    for u0 in (START, [START] * 4, [START] * 4):  # the numbers of one row stand for all
        for scale in (1.0, 1.01):
            assert_same(solver(u0, parameters=scale * many),
                        lockstep.solve("lorenz", u0, (0, 1), 5, parameters=scale * many, **OPTIONS))


def test_a_number_of_trajectories_takes_the_first_rows():
    solver = lockstep.Solver("lorenz", t_span=(0, 1), trajectories=2, seed=3, parameters={"rho": {"box": [20, 30]}})
    rows = np.array([START, [1, 1, 19], [0, 1, 18]])
    for u0 in (rows, rows + 1, rows[0], rows[1]):
        assert_same(solver(u0), lockstep.solve("lorenz", u0, (0, 1), trajectories=2, seed=3,
                                               parameters={"rho": {"box": [20, 30]}}))


def test_a_refused_call_says_what_solve_says_and_spoils_none_after_it():
    def told(call):
        with pytest.raises(lockstep.Error) as caught:
            call()
        return type(caught.value), str(caught.value), caught.value.field

    solver = lockstep.Solver("lorenz", START, (0, 1), **OPTIONS)
    for u0, parameters in (([1, np.nan, 0], None), (np.array([np.inf, 0, 0]), None), (START, [1, 2, np.nan]),
                           ([1, 2], None), (np.ones((2, 4)), None), ([], None), (START, [1.0]),
                           (START, np.ones((2, 3, 1))), ([[START, [1, 2, np.inf]]][0], None), ("no", None),
                           ([1, "2", 3], None), ([1j, 2, 3], None),
                           ([True, True, False], None), ([1, 2, 2**70], None), (1.0, None),
                           (np.ma.array(START, mask=[0, 1, 0]), None), (np.array([1, 2, 3], "M8[s]"), None)):
        solver(START, parameters=PARAMETERS)
        assert (told(lambda: solver(u0, parameters=parameters))
                == told(lambda: lockstep.solve("lorenz", u0, (0, 1), parameters=parameters, **OPTIONS)))
        assert_same(solver([1, 1, 20], parameters=PARAMETERS),
                    lockstep.solve("lorenz", [1, 1, 20], (0, 1), parameters=PARAMETERS, **OPTIONS))


def test_a_solution_that_was_never_read_is_all_there_later():
    solver = lockstep.Solver("lorenz", START, (0, 1), 5, **OPTIONS)
    for u0 in (START, START, [3.0, 2, 20]):
        untouched, given = solver(u0), list(u0)
        begun = datetime.datetime.now(datetime.timezone.utc)
        for later in ([0.0, 1, 18], np.ones((4, 3))):
            solver(later)
        expected = lockstep.solve("lorenz", given, (0, 1), 5, **OPTIONS)
        pickled, copied, deep = pickle.dumps(untouched), copy.copy(untouched), copy.deepcopy(untouched)
        for solution in (pickle.loads(pickled), copied, deep, untouched):
            assert_same(solution, expected)
            assert repr(solution) == repr(expected) and solution.units == {} and solution.time_unit == ""
        assert deep.state is not untouched.state
        assert untouched.state.all() and copied.attributes is untouched.attributes
        np.testing.assert_array_equal(untouched.vjp(np.ones_like(untouched.state)).u0,
                                      expected.vjp(np.ones_like(expected.state)).u0)
        told = datetime.datetime.fromisoformat(untouched.attributes["history"].split("Z")[0] + "+00:00")
        assert datetime.timedelta(0) <= begun - told <= datetime.timedelta(seconds=2)


def test_history_tells_when_it_was_solved_not_when_it_was_asked():
    solution = lockstep.solve("lorenz", START, (0, 1))
    time.sleep(2.1)
    told = datetime.datetime.fromisoformat(solution.attributes["history"].split("Z")[0] + "+00:00")
    assert datetime.datetime.now(datetime.timezone.utc) - told > datetime.timedelta(seconds=2)


def test_a_solution_is_the_callers_after_its_numbers_changed():
    solver = lockstep.Solver("lorenz", START, (0, 1), 5, **OPTIONS)
    u0 = np.array(START)
    for _ in range(2):
        solution = solver(u0)
        u0 += 1
        np.testing.assert_array_equal(solution.initial_state[0] + 1, u0)


def test_a_net_with_a_training_range_is_watched_in_every_call():
    x = np.linspace(-1, 1, 50)[:, np.newaxis]
    net = lockstep.train(x=x, y=-x, hidden=[4], iterations=20).model
    for guard in (None, "stop", "ignore", "clamp"):
        solver = lockstep.Solver(net, [0.5], (0, 1), guard=guard)
        for u0 in ([0.5], [0.9], [3.0], [0.5], [-3.0]):
            assert_same(solver(u0), lockstep.solve(net, u0, (0, 1), guard=guard))


def test_threads_may_share_a_solver():
    equations = lockstep.equations({"x": "s * (y - x)", "y": "x * (28 - z) - y", "z": "x*y - b*z"},
                                   parameters={"s": 10, "b": 8 / 3})
    solver = lockstep.Solver(equations, START, (0, 2), 101, **OPTIONS)
    inputs = [np.array(START) + 0.01 * i for i in range(8)] + [np.array([START] * 2) + 0.01 * i for i in range(8)]
    expected = [lockstep.solve(equations, u0, (0, 2), 101, **OPTIONS).state for u0 in inputs]
    wrong = []

    def work(first):
        for i in range(400):
            k = (first + i * (1 + first)) % len(inputs)
            solution = solver(inputs[k])
            if not (np.array_equal(solution.state, expected[k])
                    and np.array_equal(solution.initial_state, np.atleast_2d(inputs[k]))):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_solve_of_more_steps_than_were_tried_gives_the_bits_of_a_watched_one(lorenz_net):
    both, many = ("lorenz", lorenz_net), 1000.0  # more than 5,000 steps: begun here, done again elsewhere

    def watched(end, **options):
        return lockstep.solve(both, START, (0, end), 7, progress=lambda *_: None, **options)

    for options in ({}, {"max_steps": 20_000}, {"event": {"component": "z", "value": 60}}, {"control": "common"}):
        solver = lockstep.Solver(both, START, t_span=(0, many), save_at=7, **options)
        for _ in range(2):
            assert_same(solver(START), watched(many, **options))
        assert_same(lockstep.solve(both, START, (0, 0.5), 7, **options), watched(0.5, **options))
    # Outside its net's range from the start: what the guard makes of it does not count as an end within those steps.
    model = lockstep.train(x=np.random.default_rng(1).uniform(-1, 1, (50, 3)), y=np.zeros((50, 3)), hidden=[100],
                           iterations=2).model
    outside = [lockstep.solve(("lorenz", model), [1.0, 2, 20], (0, many), 7, guard="stop", progress=progress)
               for progress in (None, lambda *_: None)]
    assert_same(*outside)
    assert outside[0].accepted[0] > 20_000
    with pytest.warns(UserWarning, match="1 of 1 trajectory ran out of steps .*: the problem is stiff: .*raise max_steps to"):
        stopped = lockstep.solve(both, START, (0, 1e5), max_steps=20_000)
    assert (stopped.status[0], stopped.accepted[0] + stopped.rejected[0]) == (4, 20_000)


def test_an_interrupt_while_fewer_steps_are_tried_leaves_no_trajectory_out_of_steps(lorenz_net):
    def solve():
        return lockstep.solve(("lorenz", lorenz_net), START, (0, 1000.0))

    expected = solve()
    for _ in range(50):
        stopping = threading.Timer(0.002, _thread.interrupt_main)
        try:
            stopping.start()
            solve()
            stopping.join()
            time.sleep(0.01)
        except lockstep.Interrupted as interrupted:
            result = interrupted.result
            assert result.status[0] in (0, 6)
            if result.status[0] == 0:
                np.testing.assert_array_equal(result.end_state, expected.end_state)
            return
        except KeyboardInterrupt:  # before or after the solve, while the timer starts perhaps
            pass
    pytest.fail("no interrupt came while a solve went on")


def test_what_a_solve_may_take_is_estimated_once_for_each_number_of_trajectories():
    def estimates(call):
        before = lockstep._lockstep.estimates_made()
        call()
        return lockstep._lockstep.estimates_made() - before

    rows = np.array([START, [1, 1, 19], [0, 1, 18]])
    wide = lockstep.equations({f"u{i}": f"sin(u{(i + 1) % 400}) - u{i}" for i in range(400)})
    # Short whatever it does; perhaps short; long.
    for problem, start, options in (("lorenz", rows, {"max_steps": 1000}), ("lorenz", rows, {"max_steps": 10**8}),
                                    (wide, np.linspace(0, 1, 1200).reshape(3, 400), {"max_steps": 10**8})):
        solver = lockstep.Solver(problem, start[0], (0, 0.1), **options, **OPTIONS)
        assert estimates(lambda: solver()) > 0
        for scale in (1, 0.99, 0.98):
            assert estimates(lambda: solver(scale * start[0])) == 0
        assert estimates(lambda: solver(start)) > 0  # more trajectories
        for scale in (1, 0.99):
            assert estimates(lambda: solver(scale * start)) == 0
        expected = lockstep.solve(problem, 0.9 * start, (0, 0.1), **options, **OPTIONS)
        assert_same(solver(0.9 * start), expected)
        # Another span, tolerance or right-hand side is another Solver.
        for other in (lockstep.Solver(problem, start[0], (0, 0.2), **options, **OPTIONS),
                      lockstep.Solver(problem, start[0], (0, 0.1), **options, **{**OPTIONS, "rtol": 1e-5})):
            assert estimates(lambda: other()) > 0
    solver = lockstep.Solver("lorenz", START, (0, 0.1), max_steps=10**8)
    assert estimates(lambda: solver(parameters={"rho": 20})) > 0
    assert estimates(lambda: solver(parameters={"rho": 21})) == 0  # set up anew, for the same time
