"""Derivatives of solutions: the limit of differences, each other's transposes, closed forms at events, refusals."""

import warnings

import numpy as np
import pytest

import lockstep

F64 = dict(precision="f64", dt=0.02)  # fixed steps: differences of solves converge to the derivative


def random(*shape, seed):
    return np.random.default_rng(seed).normal(size=shape)


# A central difference with h = 1e-5 is off by h^2 times third derivatives (some 1e3 here) and by 2^-53 |L| / h (some
# 1e-9): below 1e-6 of derivatives of some hundreds.
def test_vjp_is_the_limit_of_differences_by_states_and_weights(lorenz_net):
    u0, w = random(5, 3, seed=1), random(5, 4, 3, seed=2)

    def solve(u0, weights):
        return lockstep.solve(lorenz_net.with_weights(weights), u0, (0, 0.3), 4, **F64)

    weights = lorenz_net.weights
    gradients = solve(u0, weights).vjp(w)
    for by, at, step in ((gradients.u0, (u0, weights), (random(5, 3, seed=3), 0 * weights)),
                         (gradients.weights, (u0, weights), (0 * u0, 0.01 * random(len(weights), seed=4)))):
        ahead, behind = (np.sum(w * solve(*(x + h * d for x, d in zip(at, step))).state) for h in (1e-5, -1e-5))
        along = step[0] if by is gradients.u0 else step[1]
        assert np.sum(by * along) == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)
        assert abs(np.sum(by * along)) > 1e-2


# Both are sums of some thousand products of the same rounded derivatives.
def test_vjp_and_sensitivities_are_transposes():
    parameters = {"rho": [28, 27, 26], "sigma": 10}
    solution = lockstep.solve("lorenz", random(3, 3, seed=5), (0, 0.5), 6, parameters=parameters, precision="f64")
    w = random(3, 6, 3, seed=6)
    gradients, jacobians = solution.vjp(w), solution.sensitivities()
    assert jacobians.state_by_parameter.shape == (3, 6, 3, 3) and gradients.weights.size == 0
    np.testing.assert_allclose(gradients.u0, np.einsum("ntc,ntcd->nd", w, jacobians.state_by_u0), rtol=1e-9)
    np.testing.assert_allclose(gradients.parameters, np.einsum("ntc,ntcp->np", w, jacobians.state_by_parameter),
                               rtol=1e-9)
    ends = random(3, 3, seed=7)
    np.testing.assert_allclose(solution.vjp(end_state=ends).u0, np.einsum("nc,ncd->nd", ends, jacobians.end_state_by_u0),
                               rtol=1e-9)


def test_shared_parameters_get_one_sum(lorenz_net):
    u0, w = random(4, 3, seed=8), np.ones((4, 1, 3))
    given = np.array([10.0, 28.0, 8 / 3])
    shared = lockstep.solve("lorenz", u0, (0, 0.2), parameters=given, **F64).vjp(w)
    each = lockstep.solve("lorenz", u0, (0, 0.2), parameters=np.tile(given, (4, 1)), **F64).vjp(w)
    assert shared.parameters.shape == (3,) and each.parameters.shape == (4, 3)
    np.testing.assert_allclose(shared.parameters, each.parameters.sum(axis=0), rtol=1e-12)


# From h0 with speed v0 to the floor at -2: t* = (v0 + r) / g, r^2 = v0^2 + 2 g (h0 + 2). A parabola is solved exactly;
# what is left is the event's rounding, 2^-52 of a step of some seconds.
@pytest.mark.parametrize("event", [{"component": "h", "value": -2, "direction": "falling"}, "h + 2", "h + 2 + 0*t*g"])
def test_times_of_impact_have_derivatives(event):
    ball = lockstep.equations({"h": "v", "v": "-g"}, parameters={"g": 9.81})
    h0, v0, g = 1.0, 3.0, 9.81
    solution = lockstep.solve(ball, [h0, v0], (0, 10), event=event, precision="f64")
    r = np.sqrt(v0**2 + 2 * g * (h0 + 2))
    t = (v0 + r) / g
    np.testing.assert_allclose(solution.end_time, t, rtol=1e-12)
    gradients = solution.vjp(end_time=[2.0])
    np.testing.assert_allclose(gradients.u0, [[2 / r, 2 * (1 + v0 / r) / g]], rtol=1e-11)
    by_g = (h0 + 2) / (r * g) - t / g
    np.testing.assert_allclose(gradients.parameters.ravel(), [2 * by_g], rtol=1e-11)
    np.testing.assert_allclose(solution.sensitivities().end_time_by_parameter, [[by_g]], rtol=1e-11)


def test_failed_trajectories_have_derivatives_until_then_and_spoil_no_other():
    model = lockstep.equations({"x": "x^2"})  # from 1 infinite at t = 1
    solution = lockstep.solve(model, [[0.1], [1.0], [0.2]], (0, 2), save_at=[0.5, 2], precision="f64", max_steps=500)
    assert solution.status[1] != 0
    gradients = solution.vjp(end_state=np.ones((3, 1)))
    np.testing.assert_allclose(gradients.u0[:, 0], [1 / (1 - 0.2) ** 2, 0, 1 / (1 - 0.4) ** 2], rtol=1e-4)
    gradients = solution.vjp(np.ones((3, 2, 1)))
    sums = np.nansum(solution.sensitivities().state_by_u0, axis=(1, 2, 3))
    np.testing.assert_allclose(gradients.u0[:, 0], sums, rtol=1e-12)
    np.testing.assert_allclose(sums[1], 4, rtol=1e-4)


def test_weights_are_layer_by_layer_and_a_copy(lorenz_net):
    first, second = np.arange(6.0).reshape(3, 2), np.arange(3.0).reshape(1, 3)
    net = lockstep.mlp([first, second], [[7, 8, 9], [10]])
    np.testing.assert_array_equal(net.weights, [0, 1, 2, 3, 4, 5, 7, 8, 9, 0, 1, 2, 10])
    other = net.with_weights(2 * net.weights)
    x = random(3, 2, seed=9)
    np.testing.assert_array_equal(other(x), lockstep.mlp([2 * first, 2 * second], [[14, 16, 18], [20]])(x))
    assert net.weights[1] == 1 and other.digest != net.digest
    again = lorenz_net.with_weights(lorenz_net.weights)
    np.testing.assert_array_equal(again(random(5, 3, seed=10)), lorenz_net(random(5, 3, seed=10)))


def test_other_weights_keep_ranges_and_drop_what_training_said():
    x = np.linspace(0, 1, 20)[:, None]
    net = lockstep.train(x=x, y=x**2, hidden=[3], iterations=2, rate=0.01).model
    other = net.with_weights(0 * net.weights)
    assert any(name.startswith("training_") for name in net.metadata)
    assert not any(name.startswith("training_") for name in other.metadata)
    assert other.inputs == net.inputs and other.inputs[0]["features"][0]["maximum"] == 1.01


def test_what_does_not_fit_is_named(tmp_path, lorenz_net):
    solution = lockstep.solve("lorenz", random(2, 3, seed=11), (0, 0.1), 3)
    with pytest.raises(lockstep.InvalidArgument, match=r"state: found shape \(2, 3\), expected \(2, 3, 3\)"):
        solution.vjp(np.zeros((2, 3)))
    with pytest.raises(lockstep.InvalidArgument, match="end_time: found shape"):
        solution.vjp(end_time=1.0)
    with pytest.raises(lockstep.InvalidArgument, match="found nothing"):
        solution.vjp()
    stored = lockstep.solve("lorenz", random(2, 3, seed=11), (0, 0.1), 3, output=tmp_path / "a.h5")
    for derivatives in (lambda: stored.vjp(np.zeros((2, 3, 3))), stored.sensitivities):
        with pytest.raises(lockstep.Unsupported, match="solve without output"):
            derivatives()
    with pytest.raises(lockstep.InvalidArgument, match="703 numbers"):
        lorenz_net.with_weights(np.zeros(702))


def test_least_squares_of_the_page_find_what_made_the_data():
    physics = lockstep.equations({"x": "v", "v": "-k * x - c * v"}, parameters={"k": 1, "c": 0.1})
    theta, times = np.array([1.0, 0.0, 2.0, 0.3]), np.linspace(0, 10, 51)

    def solve(theta):
        return lockstep.solve(physics, theta[:2], (0, 10), times, parameters=theta[2:], precision="f64", rtol=1e-10,
                              atol=1e-10)

    measured = solve(theta)["x"][0]
    guess = np.array([0.8, 0.1, 1.5, 0.1])
    for _ in range(8):  # Gauss and Newton
        solution = solve(guess)
        s = solution.sensitivities()
        jacobian = np.concatenate([s.state_by_u0[0, :, 0], s.state_by_parameter[0, :, 0]], axis=1)
        guess = guess - np.linalg.lstsq(jacobian, solution["x"][0] - measured, rcond=None)[0]
    np.testing.assert_allclose(guess, theta, atol=1e-7)


def test_what_failed_trajectories_never_came_to_is_told():
    blowing_up = lockstep.equations({"x": "k * x^2"}, parameters={"k": 1.0})
    with pytest.warns(UserWarning, match="1 of 2 trajectories ended early, with states of NaN from there: 1 step_too_small"):
        solution = lockstep.solve(blowing_up, [[0.5], [0.1]], (0, 2.5), 6, precision="f64")
    slopes = np.zeros((2, 6, 1))
    slopes[1, 1] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solution.vjp(slopes).u0[1, 0] > 1
    slopes[0, 1] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isclose(solution.vjp(slopes).u0[0, 0], 1 / (1 - 0.25)**2, rtol=1e-5)
    slopes[0, 5] = 1
    with pytest.warns(UserWarning, match=r"the loss asks for what 1 of 2 trajectories, which failed \(1 step_too_small\), never "
                                         r"came to"):
        assert np.isclose(solution.vjp(slopes).u0[0, 0], 1 / (1 - 0.25)**2, rtol=1e-5)


STIFF = {"a": "k3 * b * c - k1 * a", "b": "k1 * a - k3 * b * c - k2 * b^2", "c": "k2 * b^2"}


# Of Robertson's reaction: both are sums of the same rounded derivatives, and that of a + b + c, which stays 1, is 0.
def test_stiff_solves_have_derivatives():
    rates = {"k1": [0.04, 0.05], "k2": 3e7, "k3": 1e4}
    solution = lockstep.solve(lockstep.equations(STIFF, parameters=list(rates)), [1, 0, 0], (0, 40), [1, 10, 40], parameters=rates,
                              method="rodas5p", precision="f64", rtol=1e-6, atol=1e-10)
    w = random(2, 3, 3, seed=9)
    gradients, jacobians = solution.vjp(w), solution.sensitivities()
    expected = np.einsum("ntc,ntcp->np", w, jacobians.state_by_parameter)
    np.testing.assert_allclose(gradients.parameters, expected, rtol=1e-7)
    assert np.all(np.abs(gradients.parameters[:, 0]) > 0.1)
    by_k1 = jacobians.state_by_parameter[..., 0]
    np.testing.assert_allclose(by_k1.sum(axis=-1), 0, atol=1e-9 * np.abs(by_k1).max())


def test_rates_of_a_stiff_reaction_are_found():
    times = [0, 1e-4, 3e-4, 1e-3, 0.01, 0.1, 1, 3, 10, 20, 40]
    true, sigma = {"k1": 0.04, "k2": 3e7, "k3": 1e4}, {"a": 1e-3, "b": 1e-7, "c": 1e-3}
    stiff = dict(method="rodas5p", precision="f64", rtol=1e-6, atol=[1e-8, 1e-11, 1e-8])
    u = lockstep.solve(lockstep.equations(STIFF, parameters=true), [1, 0, 0], (0, 40), times, **stiff).state[0].copy()
    u[1:] += random(10, 3, seed=10) * list(sigma.values())
    starts = {name: {"start": 2 * value, "positive": True} for name, value in true.items()}
    training = lockstep.train(t=times, u=u, equations=STIFF, parameters=starts, sigma=sigma,
                              phases=[{"optimiser": "lbfgs", "iterations": 100}], **stiff)
    for name, value in true.items():
        assert abs(training.parameters[name] - value) < 3 * training.standard_errors[name] < 0.05 * value


def test_steps_that_are_too_long_for_derivatives_are_told():
    turnover = lockstep.equations({"R": "kin - kout * R"}, parameters={"kin": 10, "kout": 2})
    resting = lockstep.solve(turnover, [5], (0, 100), precision="f64")
    with pytest.warns(UserWarning, match=r"derivatives are wrong: steps are too long for them, .* take max_step = "):
        resting.sensitivities()
    with pytest.warns(UserWarning, match="of trajectory 0 is"):
        resting.vjp(end_state=np.ones((1, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shorter = lockstep.solve(turnover, [5], (0, 100), precision="f64", max_step=0.5)
        slopes = shorter.sensitivities().end_state_by_parameter[0, 0]
        back = shorter.vjp(end_state=np.ones((1, 1)))
    np.testing.assert_allclose(slopes, [0.5, -2.5], rtol=1e-6)  # of kin / kout
    np.testing.assert_allclose(back.parameters.ravel(), [0.5, -2.5], rtol=1e-6)
