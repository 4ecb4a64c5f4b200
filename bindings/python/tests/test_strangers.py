"""What people who have not read the manual try first."""

import builtins
import pickle
import sys
import warnings

import numpy as np
import pytest

import lockstep

T, Y = np.linspace(0, 3, 30), np.exp(-0.7 * np.linspace(0, 3, 30))
DECAY = {"equations": {"x": "-k * x"}, "parameters": {"k": {"start": 1}}, "precision": "f64"}
OSCILLATOR = lockstep.equations({"x": "v", "v": "-k * x"}, parameters={"k": 1})
BALL = lockstep.equations({"x": "v", "v": "-9.81"})
GROUND = {"component": "x", "direction": "falling", "to": {"x": 0, "v": "-0.5 * v"}}
ARRAYS = ("state", "time", "end_state", "end_time", "start_time", "status", "accepted", "rejected", "evaluations",
          "initial_state", "parameters")


def solve(*given, **arguments):
    return lockstep.solve(OSCILLATOR, *(given or ([1, 0], (0, 1))), **arguments)


def train(**arguments):
    return lockstep.train(**{**dict(t=T, u=Y), **DECAY, **arguments})


def refused(call, *expected, error=lockstep.Error):
    with pytest.raises(error) as caught:
        call()
    for part in expected:
        assert part in str(caught.value)
    return caught.value


@pytest.mark.parametrize("made", ["solved", "solved f64", "read", "unpickled"])
def test_arrays_of_a_solution_cannot_be_written_to(made, tmp_path):
    solution = lockstep.solve(BALL, [[1, 0], [2, 0]], (0, 0.6), 4, resets=GROUND, keep_events=True,
                              precision="f64" if made == "solved f64" else "f32")
    if made == "read":
        solution.save(tmp_path / "a.h5")
        solution = lockstep.read(tmp_path / "a.h5", components=["v", "x"])
    if made == "unpickled":
        solution = pickle.loads(pickle.dumps(solution))
    for array in [*(getattr(solution, name) for name in ARRAYS), solution["x"], solution.events.time,
                  solution.events.reset, solution.events.first, solution.events[0]]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 7
    if made.startswith("solved"):
        for name in ("state", "end_state"):
            with pytest.raises(ValueError):  # they are views of memory that is not NumPy's to give away
                getattr(solution, name).flags.writeable = True
    copied = solution.state.copy()
    copied[...] = 7
    assert (solution.state != 7).any()


def test_what_cannot_be_written_to_is_taken_everywhere(tmp_path):
    net = lockstep.mlp([np.eye(2)], activations=["identity"])
    solution = lockstep.solve(net, [[1, 0], [0, 2]], (0, 1), 5, precision="f64")
    np.testing.assert_array_equal(net(solution.state[:, 0]), solution.state[:, 0])
    again = lockstep.solve(net, solution.end_state, (0, 1), solution.time, precision="f64")
    assert lockstep.solve(net, solution.state[:, -1], (0, 1), 5, precision="f64").state.tobytes() == again.state.tobytes()
    solution.vjp(solution.state, end_state=solution.end_state)
    lockstep.train(t=solution.time, u=solution.state, hidden=[2], phases=[{"optimiser": "lbfgs", "iterations": 1}])
    xarray = pytest.importorskip("xarray")
    dataset = solution.to_xarray()
    assert isinstance(dataset.mean("trajectory"), xarray.Dataset)
    changed = dataset.copy(deep=True)
    changed["state"][:] = 7
    assert (changed["state"] == 7).all() and (solution.state != 7).any()
    dataset.to_dataframe()


def test_a_training_names_the_trajectories_that_it_goes_without():
    # x' = k x^2 ends at t = 1 / (k x0): with k near 1 before 1 where x0 = 2.
    times = [np.array([0, 1.0])] * 6
    states = [np.array([0.1, 0.11])] * 2 + [np.array([2.0, 3])] * 4
    given = dict(t=times, u=states, equations={"x": "k * x^2"}, parameters={"k": {"start": 1}}, precision="f64",
                 failed="leave_out", phases=[{"optimiser": "lbfgs", "iterations": 3}])
    with pytest.warns(UserWarning, match=r"^left out, since they could not be solved: 4 of 6 trajectories of the training "
                                         r"data \(2: \w+ at t = [\d.e+]+, 3: .*, 4: .*, and 1 more\); the result was not "
                                         r"fitted to them$") as warned:
        training = lockstep.train(**given)
    left_out = [str(each.message) for each in warned if "left out" in str(each.message)]
    assert len(left_out) == 1 and left_out[0] in training.notes and "note: " + left_out[0] in training.report
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        whole = lockstep.train(**{**given, "t": times[:2], "u": states[:2]})
    assert whole.parameters == pytest.approx(training.parameters, rel=1e-3)  # three iterations of either
    assert not any("left out" in text for text in [*whole.notes, *(str(each.message) for each in others)])


@pytest.mark.parametrize("key, value", [("iterations", 4), ("rate", 0.1), ("batch", 1), ("segment", 2), ("optimiser", "lbfgs")])
def test_named_phases_go_without_what_they_name_themselves(key, value):
    refused(lambda: train(phases="noisy", **{key: value}), f'{key}: found a value beside phases="noisy", which names its '
            "own, expected target alone; leave it away, or write the phases out")


def test_infinite_targets_are_not_missing():
    infinite = np.where(T > 1, np.inf, T)
    text = str(refused(lambda: lockstep.train(x=T, y=infinite, missing="skip", hidden=[3], iterations=3),
                       "y[10]: found infinity, expected finite numbers; what was not measured is NaN"))
    assert "missing=" not in text
    refused(lambda: lockstep.train(x=T, y=np.where(T > 1, np.nan, T), hidden=[3], iterations=3), 'missing="skip"')


def test_one_state_of_all_trajectories_has_no_row_of_its_own():
    refused(lambda: solve([[1, 0]], (0, 1), parameters=np.ones((3, 1))), "found 3 rows, expected 1 as u0 lists; for all "
            "trajectories the same give u0 as [component], one dimension")
    assert len(solve([1, 0], (0, 1), parameters=np.ones((3, 1)))) == 3
    refused(lambda: solve(np.ones((3, 2)), (0, 1), parameters=[[1]]), "found 1 row, expected 3 as u0 lists; for all "
            "trajectories the same give parameters as [parameter], one dimension")
    refused(lambda: solve(np.ones((3, 2)), (0, 1), parameters=np.ones((2, 1))), "set trajectories to use the first rows")


def test_components_choose_nothing():
    for names in (["c0"], ["v", "x"]):
        refused(lambda: solve(components=names), "names are given here in the model's order, and choose nothing")


def test_integers_are_those_of_numpy_too():
    for number in (5, np.int8(5), np.uint64(5), np.array(5)):
        assert solve(save_at=number).state.shape == (1, 5, 2)
        assert len(solve(trajectories=number, threads=number, seed=number, max_steps=np.array(1000))) == 5
        trained = lockstep.train(x=T, y=Y, hidden=[number], iterations=number, batch=number, seed=number, threads=number)
        assert trained.model.parameter_count == 16 and len(trained.history["loss"]) == 5
        np.testing.assert_array_equal(trained.model(T[:, None], threads=number), trained.model(T[:, None], None, 1))
        trained = lockstep.train(x=T, y=Y, hidden=np.array([5]), phases={"optimiser": "Adam", "iterations": number})
        assert len(trained.history["loss"]) == 5


@pytest.mark.parametrize("number", [11.0, 1.5, np.float32(11), np.array(1.5)])
def test_a_float_is_no_integer_anywhere(number):
    shown = float(number)
    remedy = "write 11" if shown == 11 else ""
    refused(lambda: solve(save_at=number), f"save_at: found the number {shown}, expected a number of points as an integer, "
            f"or times; for an interval give save_at={{'every': {shown}}}")
    solver = {name: lambda name=name: lockstep.Solver(OSCILLATOR, [1, 0], (0, 1), **{name: number})
              for name in ("trajectories", "max_steps")}
    for name, call in {**solver, **{name: lambda name=name: solve(**{name: number})
                                    for name in ("trajectories", "seed", "threads", "max_steps")},
                       **{name: lambda name=name: lockstep.train(x=T, y=Y, hidden=[2], **{name: number})
                          for name in ("iterations", "batch", "stop_after", "seed", "threads")},
                       "phases[0].iterations": lambda: lockstep.train(x=T, y=Y, hidden=[2], phases={"iterations": number}),
                       "hidden[1]": lambda: lockstep.train(x=T, y=Y, hidden=[2, number])}.items():
        error = refused(call, f"{name}: found {shown}, expected an integer", error=lockstep.WrongType)
        assert error.remedy == remedy
    for other, found in ((True, "True"), ("5", "'5'"), ([5], "list")):
        refused(lambda: solve(trajectories=other), f"trajectories: found {found}, expected an integer",
                error=lockstep.WrongType)


def test_messages_say_what_was_given():
    refused(lambda: solve(dt=0), "dt: found 0, expected a step size above 0")
    refused(lambda: solve(atol={"x": 1e-6}), "atol: found a dict, expected a number, or a list of one for each component")
    refused(lambda: lockstep.solve({"x": "-x"}, [1], (0, 1)), "problem: found dict", "make a model of equations: "
            "lockstep.equations({...})")
    refused(lambda: solve([[1, 0], [1]], (0, 1)), "u0: found rows of unequal lengths: 2 numbers in row 0, a number in row 1, "
            "expected an array of numbers; give rows of one length", error=lockstep.WrongType)
    for progress in (3, "yes"):
        for call in (solve, train):
            refused(lambda: call(progress=progress), f"progress: found {progress!r}, expected True for a bar, or a function",
                    error=lockstep.WrongType)
    refused(lambda: lockstep.validate(solve(), 3), "b: found int, expected a Solution, or the path of a result file",
            error=lockstep.WrongType)
    assert repr(OSCILLATOR).startswith("<lockstep.Model equations: ") and ", no weights\n" in repr(OSCILLATOR)
    assert ", 5 parameters, float64\n" in repr(lockstep.mlp([np.eye(2)[:1], [[1.0]]]))
    assert ", 5 parameters, float64\n" in repr(lockstep.mlp([np.eye(2)[:1], [[1.0]]], [[0.5], [2.0]]))


def test_a_gradient_that_is_no_number_is_called_so():
    # Of x = e^700 the square is none; float64 holds no more than e^709.
    text = str(refused(lambda: train(equations={"x": "k * x"}, parameters={"k": {"start": 350}}, t=[0.0, 2.0], u=[1.0, 1.0],
                                     phases=[{"optimiser": "lbfgs", "iterations": 3}], max_step=0.01)))
    assert "that is not finite" in text and "nan" not in text


def test_resets_that_pile_up_are_thought_of():
    with pytest.warns(UserWarning, match="1 step_too_small .*: resets may follow each other ever faster there"):
        lockstep.solve(BALL, [1, 0], (0, 30), resets=GROUND)


def test_names_are_taken_in_any_case():
    for name in ("ReLU", "relu", "RELU"):
        assert "relu" in repr(lockstep.train(x=T, y=Y, hidden=[2], activation=name, optimiser="Adam", iterations=1).model)
        assert "relu" in repr(lockstep.mlp([np.ones((2, 1)), np.ones((1, 2))], activations=name))
    assert solve(method="Tsit5").state.tobytes() == solve(method="tsit5").state.tobytes()
    lockstep.Solver(OSCILLATOR, [1, 0], (0, 1), method="RK4", dt=0.1)()
    assert train(phases={"optimiser": "LBFGS", "iterations": 1}, method="DOPRI5").history["loss"].size == 1
    refused(lambda: lockstep.mlp([np.ones((2, 1)), np.ones((1, 2))], activations="tahn"),
            'activations[0]: found "tahn", expected one of identity', 'did you mean "tanh"?')


@pytest.mark.parametrize("name, said", [
    ("epochs", "write iterations=; with batch an iteration is one batch"), ("iteration", 'did you mean "iterations"?'),
    ("data", "give x= and y= of a regression, or t= and u= of a neural ODE"), ("time", "write t="),
    ("noise", "sigma="), ("event", "resets="), ("grid", "help(lockstep.train) lists them"), ("lr", "write rate="),
    ("sample_weight", "sigma = 1 / sqrt(weight)")])
def test_words_of_a_training_are_answered_by_what_is_meant(name, said):
    error = refused(lambda: train(**{name: 1}), f"{name}: found an argument that train() does not take", error=TypeError)
    assert said in error.remedy and ("did you mean" in error.remedy) == ("did you mean" in said)


def test_arguments_that_are_not_taken_are_named_by_every_function(tmp_path):
    net = lockstep.mlp([np.ones((3, 2)), np.ones((2, 3))])
    x = np.ones(2)
    for call, name, meant in [
            (lambda: lockstep.equations({"x": "-x"}, parameter={"k": 1}), "parameter", "parameters"),
            (lambda: lockstep.read(tmp_path / "a.h5", component=["x"]), "component", "components"),
            (lambda: lockstep.load(tmp_path / "a.h5", activation="tanh"), "activation", "activations"),
            (lambda: lockstep.table([0, 1], [0, 1], interpolaton="linear"), "interpolaton", "interpolation"),
            (lambda: lockstep.mlp([np.eye(2)], bias=None), "bias", "biases"),
            (lambda: lockstep.validate(solve(), solve(), lyapunow=1), "lyapunow", "lyapunov"),
            (lambda: solve().vjp(stat=1), "stat", "state"),
            (lambda: net(x, thread=3), "thread", "threads"),
            (lambda: net(x, output=x), "output", None),
            (lambda: net.jvp(x, vv=x), "vv", "v")]:
        error = refused(call, f"{name}: found an argument that", error=lockstep.WrongType)
        assert meant is None or meant in error.remedy, error
    refused(lambda: net.vjp(x, v=x), "v: found an argument that vjp() does not take, expected one of x, w",
            error=lockstep.WrongType)
    refused(lambda: net(x, threads="a"), "threads: found 'a', expected an integer", error=lockstep.WrongType)
    refused(lambda: net(x, None, 1, 2), "arguments: found 4, expected at most 3: x, out, threads", error=lockstep.WrongType)
    refused(net, "x: found none, expected an array", error=lockstep.WrongType)


@pytest.mark.parametrize("package, use", [
    ("matplotlib", lambda: lockstep.plot.spread(solve(save_at=3))), ("xarray", lambda: solve().to_xarray()),
    ("tqdm", lambda: solve(progress=True))])
def test_a_package_that_is_not_there_is_named(package, use, monkeypatch):
    there = builtins.__import__

    def without(name, *others, **more):
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name}")
        return there(name, *others, **more)

    for name in [one for one in sys.modules if one.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=rf"needs {package}: pip install {package}$"):
        use()


def test_tables_of_a_shifted_time_are_no_matter_of_a_warning():
    wind = lockstep.table([0, 5], [1, 2])

    def notes(call):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            parameters = {"lag": 1} if "lag" in call else {}
            model = lockstep.equations({"x": call}, parameters=parameters, models={"wind": wind})
            lockstep.solve(model, [0], (0, 3))
        return [str(one.message) for one in warned]

    for call in ("wind(t - lag)", "wind(t + 1)", "wind(2 - t)", "wind(t - lag) - wind(t)"):
        assert notes(call) == [], call
    for call in ("wind(t - x)", "wind(x + lag)"):
        assert len(notes(call)) == 1 and "is not watched" in notes(call)[0], call
    for call in ("wind(t / 2)", "wind(t * lag)"):
        assert notes(call) == [], call
    assert notes("wind(2 * t)") == ["wind(2 * t) knows times from 0 to 2.5, and is asked for 0 to 3: beyond its ends a "
                                    "table keeps the value there"]


def test_trajectories_are_called_by_their_labels():
    t, labels = np.tile(np.linspace(0, 1, 15), 2), np.repeat(["A", "B"], 15)
    u = np.exp(-t)
    report = train(t=t, u=u, trajectory=labels).report
    assert "trajectory A" in report or "trajectory B" in report
    assert not any(f"trajectory {i}" in report for i in (0, 1))
    missing, infinite, late = u.copy(), u.copy(), t.copy()
    missing[15], infinite[16], late[17] = np.nan, np.inf, 0
    refused(lambda: train(t=t, u=missing, trajectory=labels), "u, trajectory B, point 0, component x: found NaN")
    refused(lambda: train(t=t, u=infinite, trajectory=labels), "u, trajectory B, point 1, component 0: found infinity")
    refused(lambda: train(t=late, u=u, trajectory=labels), "t, trajectory B, point 2: found time 0")
    numbers = np.repeat([7, 9], 15)
    refused(lambda: train(t=t, u=infinite, trajectory=numbers), "u, trajectory 9, point 1")
    of_numbers = train(t=t, u=u, trajectory=numbers)
    assert of_numbers.trajectories == ["7", "9"]
    assert "trajectory 7" in of_numbers.report or "trajectory 9" in of_numbers.report


def test_equations_are_called_with_the_defaults_of_their_parameters():
    model = lockstep.equations({"x": "v * a", "v": "-b * x"}, parameters={"a": 2, "b": 3})
    u = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(model({"u": u}), np.stack([2 * u[:, 1], -3 * u[:, 0]], axis=1))
    np.testing.assert_array_equal(model({"u": u[0].astype(np.float32)}), np.array([4, -3], np.float32))
    refused(lambda: lockstep.equations({"x": "-a * x"}, parameters=["a"])({"u": np.ones(1)}), 'no key "p"')
    refused(lambda: model({"u": u, "q": u}), "key 'q'")


def test_the_history_has_the_phase_of_each_iteration():
    phases = [{"optimiser": "adam", "iterations": 3}, {"optimiser": "lbfgs", "iterations": 2}]
    assert train(phases=phases).history["phase"].tolist() == [1, 1, 1, 2, 2]


def test_samples_for_validation_may_be_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, far = np.linspace(-1, 1, 21), np.linspace(2, 4, 9)
    given = dict(x=x, y=x**2, hidden=[4], optimiser="lbfgs", iterations=20, inputs=["x"], targets=["z"], precision="f64")
    own, plain = lockstep.train(**given, validation=(far, 0 * far)), lockstep.train(**given)
    rows = min(len(own.history["loss"]), len(plain.history["loss"]))
    np.testing.assert_array_equal(own.history["loss"][:rows], plain.history["loss"][:rows])
    assert (own.history["watched"] != own.history["loss"]).all() and plain.validation_loss is None
    error = own.model(far[:, None]).reshape(-1) - 0 * far
    assert own.validation_loss == pytest.approx((error**2).mean(), rel=1e-10) == own.errors["validation"]["z"]["rms"] ** 2
    assert own.errors["validation"]["z"]["numbers"] == 9 and own.errors["training"]["z"]["numbers"] == 21
    for name, columns in (("rows", np.c_[x, x**2]), ("test", np.c_[far, 0 * far])):
        np.savetxt(f"{name}.csv", columns, delimiter=",", header="x,z", comments="", fmt="%.17g")
    (tmp_path / "train.toml").write_text(
        '[net]\nhidden = [4]\nname = "net"\n[data]\nfile = "rows.csv"\nvalidation_file = "test.csv"\ninputs = ["x"]\n'
        'targets = ["z"]\n[training]\noptimiser = "lbfgs"\niterations = 20\n[method]\nprecision = "f64"\n'
        '[output]\nfile = "net"\n')
    by_file = lockstep.train("train.toml")
    assert by_file.model.digest == own.model.digest and by_file.validation_loss == own.validation_loss
    pandas = pytest.importorskip("pandas")
    two = dict(x=pandas.DataFrame({"a": x, "b": -x}), y=x, hidden=[], optimiser="lbfgs", iterations=3)
    swapped = lockstep.train(**two, validation=(pandas.DataFrame({"b": -far, "a": far}), far))
    assert swapped.validation_loss == lockstep.train(**two, validation=(np.c_[far, -far], far)).validation_loss
    weighed = lockstep.train(**given, sigma=0.1 + 0 * x, validation=(far, 0 * far, 0.1 + 0 * far))
    assert weighed.validation_loss is not None
    for validation, words in [((far,), "validation: found 1 arrays, expected 2: x, y"),
                              ((far, far[:3]), "validation.y: found 3 samples, expected 9"),
                              ((np.c_[far, far], far), "validation.x: found 2 columns, expected 1, as x has"),
                              ((far, np.nan * far), "validation.y[0]: found NaN"), (1.5, "validation: found 1.5")]:
        refused(lambda: lockstep.train(**given, validation=validation), words)
    refused(lambda: train(validation=(T, Y)), "validation: found rows of their own beside trajectories")
    assert refused(lambda: train(validation_data=(T, Y)), "validation_data").remedy == "write validation="
