"""Fits of trajectories by Huber's loss: what a glitch does, what is told of it, what is refused."""

import numpy as np
import pytest

import lockstep

T = np.linspace(0, 10, 41)
EXACT = 0.1 + 0.9 * np.exp(-0.5 * T)
DECAY = dict(equations={"A": "-k * (A - rest)"}, parameters={"k": {"start": 1, "positive": True}, "rest": {"start": 0}},
             precision="f64")


def measured(glitches=True):
    u = EXACT + 0.005 * np.random.default_rng(4).standard_normal(41) * (T > 0)
    if glitches:
        u[9] += 0.3
        u[27] *= 100
    return u


def train(u, **options):
    return lockstep.train(t=T, u=u, **{**DECAY, **options})


@pytest.mark.parametrize("sigma", [None, 0.005])
@pytest.mark.parametrize("phases", ["recommended", "noisy"])
def test_rates_are_found_in_spite_of_glitches(phases, sigma):
    training = train(measured(), loss="huber", phases=phases, sigma=sigma)
    for name, truth in {"k": 0.5, "rest": 0.1}.items():
        assert abs(training.parameters[name] - truth) < 3 * training.standard_errors[name]
        assert training.standard_errors[name] < 0.05 * truth
    errors = training.errors["training"]["A"]
    assert errors["rms"] > 1 and errors["rms_within"] < 0.01 and 2 <= errors["beyond"] < 15
    assert training.notes[-1] in training.report
    assert "farthest A at t = 6.75 (" in training.notes[-1] and "A at t = 2.25 (" in training.notes[-1]
    assert not any("explains little" in note for note in training.notes)
    assert training.loss_name == "sum of Huber's losses" + ("" if sigma is None else " over sigma")
    squares = train(measured(), phases=phases, sigma=sigma)
    assert abs(squares.parameters["k"] - 0.5) > 20 * training.standard_errors["k"]


def test_errors_within_the_threshold_have_the_bits_of_squares():
    options = dict(optimiser="lbfgs", iterations=60, sigma=np.full(41, 0.005))
    huber, squares = (train(measured(False), **options, **loss) for loss in ({"loss": "huber", "huber_threshold": 1e9}, {}))
    assert huber.parameters == squares.parameters and huber.loss == squares.loss
    np.testing.assert_array_equal(huber.history["loss"], squares.history["loss"])
    # Errors as stated differ by what is looked up of the normal distribution alone: erf(1e9) is 1.
    assert huber.standard_errors == squares.standard_errors


def test_what_is_no_loss_of_trajectories_is_refused():
    for options, text in ((dict(loss="mean_huber"), 'loss: found "mean_huber", a loss of regressions'),
                          (dict(loss="huber", huber_threshold=0), "huber_threshold: found 0, expected a number greater than 0"),
                          (dict(huber_threshold=2), "huber_threshold: found huber_threshold without loss")):
        with pytest.raises(lockstep.Error, match=text):
            train(measured(), **options)
    with pytest.raises(lockstep.Error, match='loss: found "huber", a loss of neural ODEs'):
        lockstep.train(x=T, y=EXACT, hidden=[3], optimiser="adam", iterations=2, loss="huber")


def test_segments_that_begin_at_data_are_noted():
    training = train(measured(), loss="huber", optimiser="lbfgs", iterations=5, segment=5)
    assert any(line.startswith("phase 1 begins segments at measurements") for line in training.advice)
    free = train(measured(), loss="huber", optimiser="lbfgs", iterations=5, segment=5, continuity=10)
    assert not any("begins segments" in line for line in free.advice)
