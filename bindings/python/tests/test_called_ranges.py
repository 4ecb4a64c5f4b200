"""Training ranges of nets that equations call: a model made of the equations does what a problem file does."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import lockstep


@pytest.mark.parametrize("call", ["spring(x)", "spring(x) + 0 * spring(v)", "spring(2 * x)"])
def test_equations_know_the_ranges_of_their_nets(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.linspace(-1, 1, 21)[:, np.newaxis]
    spring = lockstep.train(x=x, y=-x, hidden=[], optimiser="lbfgs", iterations=3).model
    spring.save("spring.h5")
    Path("p.toml").write_text('[rhs]\nmodels = { spring = "spring.h5" }\n[rhs.equations]\nx = "v"\n'
                              f'v = "{call}"\n[ensemble]\ninitial_state = [[0.5, 0], [2, 0], [0.5, 2]]\n[time]\n'
                              'span = [0, 1]\nsave = 11\n')
    whole = lockstep.equations({"x": "v", "v": call}, models={"spring": spring})
    assert whole.calls[0]["net"] == "spring" and whole.calls[0]["inputs"][0]["features"][0]["maximum"] == 1.02
    whole.save("whole.h5")
    watched = call != "spring(2 * x)"
    for guard in (None, "clamp", "stop", "ignore") if watched else (None, "clamp", "ignore"):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            expected = lockstep.solve("p.toml", guard=guard)
            others = [lockstep.solve(model, [[0.5, 0], [2, 0], [0.5, 2]], (0, 1), 11, guard=guard)
                      for model in (whole, lockstep.load("whole.h5"), pickle.loads(pickle.dumps(whole)))]
            others.append(lockstep.Solver(whole, [[0.5, 0], [2, 0], [0.5, 2]], (0, 1), 11, guard=guard)())
        assert list(expected.status) == ([0, 5, 5] if watched and guard in (None, "stop") else [0, 0, 0])
        for other in others:
            np.testing.assert_array_equal(other.state, expected.state)
            np.testing.assert_array_equal(other.status, expected.status)
            assert other.attributes.get("guard") == expected.attributes.get("guard")
            assert (other.attributes.get("guard") == "clamp") == (guard == "clamp")
            assert other.attributes["rhs_digest"] == expected.attributes["rhs_digest"]
        texts = {str(one.message) for one in said}
        if guard:
            assert texts == set()
        elif watched:
            also = "" if call == "spring(x)" else "; v, known from -1.02 to 1.02, in 2 trajectories, as far as 2"
            assert texts == {"outside the training range, where a net's answers mean nothing: x, known from -1.02 to 1.02, in 2 "
                             "trajectories, as far as 2" + also}
        else:
            assert texts == {"the training range of spring's input 2 * x is not watched: it is no component or parameter"}
        assert {Path(one.filename).name for one in said} <= {Path(__file__).name}
    with pytest.raises(lockstep.InvalidArgument, match="no component or parameter as it is" if not watched else "event"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lockstep.solve(whole, [0.5, 0], (0, 1), guard="stop", event={"component": "x", "value": 0} if watched else None)


def test_a_stack_that_calls_a_net_is_refused_by_safetensors(tmp_path):
    net = lockstep.train(x=[[-1.0], [1.0]], y=[[1.0], [-1.0]], hidden=[], optimiser="lbfgs", iterations=2).model
    whole = lockstep.equations({"x": "f(x)"}, models={"f": net})
    with pytest.raises(lockstep.Unsupported, match="calls of nets with training ranges.*NAME.h5"):
        whole.save(tmp_path / "whole.safetensors")
    whole.save(tmp_path / "whole.h5")
    assert lockstep.load(tmp_path / "whole.h5").calls == whole.calls


def test_calls_by_resets_and_events_are_told_not_to_be_watched_and_clamped_where_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.linspace(-1, 1, 21)[:, np.newaxis]
    net = lockstep.train(x=x, y=-x, hidden=[], optimiser="lbfgs", iterations=30, precision="f64").model
    net.save("net.h5")
    ranges = net.inputs[0]["features"][0]["maximum"]
    Path("p.toml").write_text('[rhs]\nmodels = { net = "net.h5" }\n[rhs.equations]\nx = "1"\ny = "0"\n[ensemble]\n'
                              'initial_state = [0, 0]\n[time]\nspan = [0, 5]\nsave = 51\n[method]\nprecision = "f64"\n'
                              '[[resets]]\ncomponent = "x"\nvalue = 4\nto = { y = "net(x)" }\n')
    model = lockstep.equations({"x": "1", "y": "0"}, models={"net": net})
    reset = {"component": "x", "value": 4, "to": {"y": "net(x)"}}

    def ends(guard=None, **more):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            both = [lockstep.solve("p.toml", guard=guard),
                    lockstep.solve(model, [0, 0], (0, 5), 51, resets=more.pop("resets", reset), guard=guard, precision="f64",
                                   **more)]
        return [one.end_state[0, 1] for one in both], {str(one.message) for one in said}

    note = 'the training range of net is not watched in calls by resets and events; guard = "clamp" acts there, too'
    state, texts = ends()
    assert texts == {note.replace(' = "clamp"', '="clamp"')} or texts == {note}
    np.testing.assert_allclose(state, -4, atol=1e-3)
    state, texts = ends("clamp")
    assert texts == set()
    np.testing.assert_allclose(state, -ranges, atol=1e-3)
    assert ends("ignore")[1] == set()
    for guard in ("flag", "stop"):
        for solve in (lambda: lockstep.solve("p.toml", guard=guard),
                      lambda: lockstep.solve(model, [0, 0], (0, 5), 51, resets=reset, guard=guard)):
            with pytest.raises(lockstep.InvalidArgument,
                               match=f"{guard} with nets that the equations do not call.*resets and events are not watched"):
                solve()
