"""What is said of arguments that cannot be used: in Python's words, with what to do."""

import numpy as np
import pytest

import lockstep

TIMES = np.linspace(0, 6, 31)
U = np.stack([np.cos(TIMES), -np.sin(TIMES)], 1)
EQUATIONS = {"x": "v", "v": "-k * x"}


@pytest.fixture
def oscillator():
    return lockstep.equations(EQUATIONS, parameters={"k": 1})


def message(call, kind=lockstep.InvalidArgument):
    with pytest.raises(kind) as raised:
        call()
    return str(raised.value)


def test_a_number_that_is_not_finite_is_found_where_it_stands(oscillator):
    u0 = np.ones((3, 2))
    own = np.array([[0, 1, 2], [0, 1, np.nan], [0, 1, 2]])
    assert message(lambda: lockstep.solve(oscillator, u0, (0, 5), own)) == (
        "save_at: found nan in row 1, column 2, expected finite numbers; every trajectory has as many save points as the "
        "others: solve those with fewer apart")
    assert message(lambda: lockstep.solve(oscillator, u0, (0, 5), [0, np.inf, 2])) == (
        "save_at: found inf at element 1, expected finite numbers")
    spans = [[0, 1], [0, np.nan], [np.nan, 1]]
    assert message(lambda: lockstep.solve(oscillator, u0, spans)) == (
        "t_span: found nan as the start of trajectory 2, expected finite numbers")
    assert message(lambda: lockstep.solve(oscillator, u0, spans[:2] + [[0, 1]])) == (
        "t_span: found nan as the end of trajectory 1, expected finite numbers")
    assert message(lambda: lockstep.solve(oscillator, u0, (0, np.nan))) == (
        "t_span: found nan as the end of all trajectories, expected finite numbers")


def test_derivatives_of_a_guarded_solve_say_which_guards_have_them():
    x = np.linspace(-1, 1, 21)[:, np.newaxis]
    net = lockstep.train(x=x, y=-x, hidden=[], optimiser="lbfgs", iterations=3).model
    solution = lockstep.solve(net, [0.5], (0, 1), guard="stop")
    for call in (lambda: solution.vjp(np.ones_like(solution.state)), solution.sensitivities):
        assert message(call, lockstep.Unsupported) == (
            'guard: found stop, whose end has no derivative, expected flag, clamp or ignore; solve with guard="flag", which '
            'marks the trajectories that leave the training range')


@pytest.mark.parametrize("parameters", [{"k": 1.0}, {"k": 1}, ["k"]])
def test_a_training_without_anything_to_find_says_so(parameters):
    assert message(lambda: lockstep.train(t=TIMES, u=U, equations=EQUATIONS, parameters=parameters)) == (
        "parameters: found none to be found by the training, and no net in the equations, expected one of them; write "
        'parameters={"k": {"start": 1}}, or call a net, net(x), and give its hidden=[100]')
    assert "no hidden layers" in message(lambda: lockstep.train(t=TIMES, u=U, equations={"x": "v", "v": "net (x)"}))
    assert "no hidden layers" in message(lambda: lockstep.train(t=TIMES, u=U, equations={"x": "v", "v": "a"},
                                                                definitions={"a": "net(x)"}))
    assert 'parameters={"rho": {"start": 1}}' in message(lambda: lockstep.train(
        t=TIMES, u=np.ones((31, 3)), system="lorenz", parameters={"rho": 28.0}))
