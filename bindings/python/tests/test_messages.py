"""What is said of arguments that cannot be used: in Python's words, with what to do."""

import weakref
from decimal import Decimal

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


def test_the_guards_that_have_derivatives_have_them():
    net = lockstep.mlp([[[1.0]]], activations="identity").with_ranges([-1.0], [2.0])  # u' = u within
    for guard, expected in (("flag", np.e), ("ignore", np.e), ("clamp", 1.0)):  # from -2 on the clamped net says -1
        solution = lockstep.solve(net, [-2.0], (0, 1), [1], guard=guard, precision="f64", rtol=1e-10, atol=1e-10)
        gradients = solution.vjp(np.ones_like(solution.state))
        np.testing.assert_allclose(gradients.u0, [[expected]], rtol=1e-8)
        np.testing.assert_allclose(solution.sensitivities().state_by_u0.ravel(), [expected], rtol=1e-8)
        assert gradients.weights.shape == (2,)


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


def test_shapes_that_do_not_fit_come_with_those_that_do(oscillator):
    decay = lockstep.equations({"x": "-k * x"}, parameters={"k": 1})
    five = np.linspace(1, 2, 5)
    assert message(lambda: lockstep.solve(decay, five, (0, 1))) == (
        "u0: found 5 numbers, expected 1 number, one for each component (x); for 5 trajectories give a row for each: u0[:, None]")
    assert message(lambda: lockstep.solve(decay, [1], (0, 1), parameters=five)) == (
        "parameters: found 5 numbers, expected 1 number, one for each parameter (k); for 5 trajectories give a row for each: "
        "parameters[:, None]")
    assert message(lambda: lockstep.solve(oscillator, np.ones((2, 7)), (0, 1))) == (
        "u0: found 7 numbers, expected 2 numbers, one for each component (x, v); give a row for each trajectory: u0.T")
    assert message(lambda: lockstep.solve(oscillator, np.ones((3, 7)), (0, 1))) == (
        "u0: found 7 numbers, expected 2 numbers, one for each component (x, v)")
    assert message(lambda: lockstep.solve(oscillator, [1, 0, 2], (0, 1))) == (
        "u0: found 3 numbers, expected 2 numbers, one for each component (x, v); give k under parameters, apart from the state")
    net = lockstep.mlp([np.ones((1, 2))])
    assert message(lambda: lockstep.solve(net, [1, 1], (0, 1))) == (
        "u0: found 2 numbers, expected 1 number, one for each component (u0); give p0 under parameters, apart from the state; "
        "or for 2 trajectories give a row for each: u0[:, None]")


def test_remedies_are_arguments_of_python(oscillator):
    solve = lockstep.solve
    needy = lockstep.equations(EQUATIONS, parameters=["k"])
    for call, end in [
            (lambda: solve(oscillator, [1, 0]), "start and end of the integration; give t_span=(0, 1)"),
            (lambda: solve(oscillator, None, (0, 1)), "starts from; give u0, [component] or [trajectory, component]"),
            (lambda: solve(oscillator, np.ones((2, 2)), (0, 1), parameters=[[1], [2], [3]]),
             "2 as u0 lists; set trajectories to use the first rows of each"),
            (lambda: solve(oscillator, {"x": [1, 2], "v": [1, 2, 3]}, (0, 1)),
             "2 as u0.x lists; set trajectories to use the first rows of each, or write a number for all without [ ]"),
            (lambda: solve(needy, [1, 0], (0, 1)), 'found no value for k, expected a number for each parameter; give '
                                                   'parameters={"k": 1}'),
            (lambda: solve(oscillator, [1, 0], (0, 1), dt=0.1, rtol=1e-3), 'or choose control="per_trajectory" without dt'),
            (lambda: solve(oscillator, [1, 0], (0, 1), dt=1e-9, max_steps=9), "at most 9 steps (max_steps); take larger steps, "
                                                                              "or raise max_steps"),
            (lambda: solve(oscillator, {"x": {"uniform": [0, 1]}, "v": 0}, (0, 1)), ""),
            (lambda: solve(oscillator, {"uniform": 1}, (0, 1)), 'write box for uniform numbers: {"box": {"low": 0, "high": 1}}'),
            (lambda: lockstep.train(x=TIMES, y=TIMES), "their widths; add hidden=[100], or hidden=[] for a linear map"),
            (lambda: lockstep.train(t=np.r_[TIMES, TIMES], u=np.r_[U, U], hidden=[]),
             "times that ascend within a trajectory; sort the rows, or say which trajectory each row is of, trajectory=labels; or "
             "give lists with an array for each trajectory"),
            (lambda: lockstep.train(t=TIMES, u=np.r_[[[np.nan, 0]], U[1:]], hidden=[]), 'by phases="noisy" or a continuity in '
             'every phase, say where it starts, starts={"u0": 1}, or leave out the points before the first complete one'),
    ]:
        said = message(call)
        assert said.endswith(end), said
        assert " = " not in said and not any(f"[{table}]" in said for table in ("time", "ensemble", "method", "net")), said


def test_what_is_said_of_files_is_in_their_words(tmp_path):
    (tmp_path / "p.toml").write_text("[rhs.equations]\nx = \"-x\"\n[ensemble]\ninitial_state = [1]\n")
    assert message(lambda: lockstep.solve(tmp_path / "p.toml")).endswith("add [time] with span = [0, 1]")


def test_devices_and_files_are_named_as_arguments(oscillator, tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_CUDA_LIBRARY", str(tmp_path / "none.so"))
    said = message(lambda: lockstep.solve(oscillator, [1, 0], (0, 1), device="cuda"), lockstep.Unsupported)
    assert said.endswith('run on the CPU with device="cpu"')
    path = tmp_path / "a.h5"
    lockstep.solve(oscillator, [1, 0], (0, 1), output=path)
    with pytest.raises(lockstep.InvalidArgument, match='^components: found "y"'):
        lockstep.read(path, components=["y"]).state
    for wrong, found in (([], "an empty list, expected at least one name; leave it out"), ([0], "0, expected names"),
                         ("x", "'x', expected a list of names; write \\['x'\\]")):
        with pytest.raises(lockstep.Error, match="components: found " + found):
            lockstep.read(path, components=wrong)


def unknown(call, name):
    """What is said of an argument that there is not: a lockstep.Error and a TypeError."""
    with pytest.raises(lockstep.WrongType) as raised:
        call()
    assert isinstance(raised.value, TypeError) and raised.value.field == name
    return str(raised.value)


@pytest.mark.parametrize("other, ours", [
    ("t_eval", "save_at"), ("saveat", "save_at"), ("tol", "rtol"), ("reltol", "rtol"), ("abstol", "atol"),
    ("args", "parameters"), ("p", "parameters"), ("params", "parameters"), ("tspan", "t_span"), ("y0", "u0"), ("x0", "u0"),
    ("initial_state", "u0"), ("hmax", "max_step"), ("dtmax", "max_step"), ("first_step", "initial_step"), ("h", "dt"),
    ("n_trajectories", "trajectories"), ("dtype", "precision"), ("solver", "method"), ("alg", "method"),
    ("events", "event"), ("save", "save_at"), ("nthreads", "threads")])
def test_words_of_other_programs_are_answered_with_ours(oscillator, other, ours):
    expected = f"{other}: found an argument that {{}} does not take, expected one of its own; write {ours}="
    for name, call in ("solve()", lockstep.solve), ("Solver()", lockstep.Solver):
        assert unknown(lambda: call(oscillator, [1, 0], (0, 1), **{other: 1}), other) == expected.format(name)


def test_words_for_the_problem_are_answered_with_where_it_goes():
    for word in ("fun", "f", "rhs", "func", "ode", "model", "system", "equations"):
        for call in (lambda: lockstep.solve(**{word: 1}), lambda: lockstep.solve("lorenz", **{word: 1})):
            assert unknown(call, word).endswith(
                "; give it first, problem: a Model, the name of a system, or lockstep.equations({...})")
    assert unknown(lambda: lockstep.solve("lorenz", guad="stop"), "guad").endswith('; did you mean "guard"?')
    assert unknown(lambda: lockstep.solve("lorenz", zzz=1), "zzz").endswith("; help(lockstep.solve) lists them")
    assert "problem: found nothing" in unknown(lambda: lockstep.solve(u0=[1, 0, 0]), "problem")


@pytest.mark.parametrize("other, ours", [
    ("lr", "rate"), ("learning_rate", "rate"), ("iters", "iterations"), ("batch_size", "batch"), ("optimizer", "optimiser"),
    ("layers", "hidden"), ("features", "x"), ("labels", "y"), ("times", "t"), ("group", "trajectory"),
    ("t_eval", "t"), ("tol", "rtol"), ("normalize", "normalise"), ("validation_split", "validation")])
def test_words_of_other_trainers_are_answered_with_ours(other, ours):
    assert unknown(lambda: lockstep.train(x=TIMES, y=TIMES, hidden=[3], **{other: 1}), other) == (
        f"{other}: found an argument that train() does not take, expected one of its own; write {ours}=")


def test_keys_of_phases_are_arguments_of_trainings():
    assert unknown(lambda: lockstep.train(x=TIMES, y=TIMES, momentm=1), "momentm").endswith('; did you mean "momentum"?')
    lockstep.train(x=TIMES, y=TIMES, hidden=[3], iterations=2, schedule="cosine", clip_norm=1.0)
    assert unknown(lambda: lockstep.train("a.toml", lr=1), "lr").endswith("; write rate=")


def test_equations_are_called_so(oscillator):
    solution = lockstep.solve(oscillator, [1, 0], (0, 1))
    assert solution.attributes["title"] == "Equations of x, v"
    assert repr(solution).startswith("<lockstep.Solution Equations of x, v: state[")
    assert repr(solution.vjp(np.ones_like(solution.state))).startswith("<lockstep.Gradients: u0 [")
    named = lockstep.equations(EQUATIONS, parameters={"k": 1}, name="spring")
    assert lockstep.solve(named, [1, 0], (0, 1)).attributes["title"] == "spring, equations of x, v"
    assert lockstep.solve(lockstep.mlp([np.eye(1)]), [1], (0, 1)).attributes["title"] == "Net net"


def test_a_parameter_listed_twice_is_refused():
    assert message(lambda: lockstep.equations({"x": "k * x + c"}, parameters=["k", "k", "c"])) == (
        'parameters: found the name "k" a second time, expected names that differ; choose another name')


def test_calls_of_a_solver_take_states_and_parameters_alone(oscillator):
    solver = lockstep.Solver(oscillator, [1, 0], (0, 1))
    for name in ("rtol", "problem", "t_span", "save_at"):
        assert unknown(lambda: solver(**{name: 1e-3}), name) == (
            f"{name}: found an argument of Solver() in a call of one, expected u0 or parameters; make a Solver with it")
    assert unknown(lambda: solver(p=[2.0]), "p").endswith("; write parameters=")


def test_a_solution_too_large_for_memory_is_sized():
    with pytest.raises(MemoryError, match=r"4,000,000 trajectories of 2,000,001 save points take 96.0 TB: save fewer points, or "):
        lockstep.solve("lorenz", np.ones((4_000_000, 3)), (0, 1), save_at=2_000_001)


def test_more_save_points_than_memory_has_room_for_are_refused():
    with pytest.raises(lockstep.InvalidArgument, match="^save_at: found 1,000,000,000,000, expected at most 1e9 save points; save fewer"):
        lockstep.solve("lorenz", [1.0, 0, 0], (0, 1), save_at=10**12)
    spans = np.tile([0.0, 1.0], (1_000_000, 1)) * np.linspace(1, 2, 1_000_000)[:, None]  # 8 PB of times
    with pytest.raises(lockstep.InvalidArgument, match="^save_at: found 1,000,000,000 save points for each of 1,000,000 spans, "
                                                       "whose times take 8.0 PB, expected less than the memory of this machine"):
        lockstep.solve("lorenz", np.ones((1_000_000, 3)), spans, save_at=10**9)


def test_what_has_no_order_that_a_net_knows_is_refused():
    class Frame:
        columns = ["b", "a"]

    net = lockstep.mlp([np.ones((3, 2)), np.ones((1, 3))], activations=("tanh", "identity"))
    with pytest.raises(lockstep.WrongType, match="choose columns in the order of the net's inputs"):
        net(Frame())
    with pytest.raises(lockstep.WrongType, match="equations: found str, expected a dict with a text for each component"):
        lockstep.equations("x' = y")


def test_trajectories_that_end_early_are_told_once_with_their_numbers():
    root = lockstep.equations({"x": "k * log(x)"}, parameters={"k": 1})
    with pytest.warns(UserWarning) as caught:
        lockstep.solve(root, [[0.5], [0.1], [3.0]], (0, 1), precision="f64")
    assert [str(one.message) for one in caught] == [
        "2 of 3 trajectories ended early, with states of NaN from there: 2 not_finite (the right-hand side or the state "
        "became NaN or infinite)"]
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="parameter k = 1e[+]39 is infinite in float32, whose numbers go up to 3.4e38: take precision "
                                         "f64, or other units"):
        lockstep.solve(root, [3.0], (0, 1), parameters={"k": 1e39})


def test_a_net_of_another_order_or_of_time_is_told_apart():
    net = lockstep.mlp([np.zeros((3, 3))], [np.zeros(3)], ["linear"]).with_names(inputs=["z", "x", "y"])
    assert message(lambda: lockstep.solve(("lorenz", net), [1, 1, 20.0], (0, 1))).startswith(
        "model: found the inputs z, x, y of net, expected the order of the components, x, y, z, as which it takes them; call "
        "the net in equations, where each input and output has its place by name; or ")
    timed = lockstep.mlp([np.ones((1, 2))], [np.zeros(1)], ["linear"]).with_names(inputs=["x", "t"])
    assert message(lambda: lockstep.solve(timed, [0.0], (0, 1))) == (
        "parameters: found no value for t, expected a number for each parameter; where t is the time, set with_time=True; "
        "else give parameters")
    assert lockstep.solve(timed, [0.0], (0, 1), with_time=True).status.tolist() == [0]


def test_a_sweep_needs_a_number_of_trajectories(oscillator):
    sweep = {"k": {"linspace": [1, 2]}}
    assert message(lambda: lockstep.solve(oscillator, [1, 0], (0, 1), parameters=sweep)) == (
        "parameters.k.linspace: found a range to spread over trajectories, whose number nothing says, expected how many; give "
        "trajectories=11")
    for given in (dict(trajectories=3), dict(u0=np.ones((3, 2)))):
        solution = lockstep.solve(oscillator, **{"u0": [1, 0], "t_span": (0, 1), "parameters": sweep, **given})
        assert solution.parameters[:, 0].tolist() == [1, 1.5, 2]
    assert "; write box for uniform numbers" in message(
        lambda: lockstep.solve(oscillator, [1, 0], (0, 1), parameters={"k": {"uniform": [1, 2]}}))


def test_a_number_of_the_data_that_is_infinite_is_found_where_it_stands():
    u = U.copy()
    u[7, 1] = np.inf
    given = dict(equations=EQUATIONS, parameters={"k": {"start": 1}})
    assert message(lambda: lockstep.train(t=TIMES, u=u, **given)).startswith(
        "u, trajectory 0, point 7, component 1: found infinity, expected finite numbers; ")
    assert message(lambda: lockstep.train(t=TIMES, u=np.stack([U, u]), **given)).startswith("u, trajectory 1, point 7, component 1: ")
    assert message(lambda: lockstep.train(x=u, y=TIMES, hidden=[2])).startswith("x[7], column 1: found infinity")
    assert message(lambda: lockstep.train(x=TIMES, y=u[:, 1], hidden=[2])).startswith("y[7]: found infinity")


def test_what_equations_call_and_do_not_know_may_be_a_model():
    said = message(lambda: lockstep.equations({"s": "rain(t)"}))
    assert said.startswith('equations.s, column 1: found "rain", expected one of abs, ')
    assert said.endswith("; name a net that it calls in models, a table there or in tables")
    rain = lockstep.table([0, 1], {"Rain (mm/h)": [0, 1], "wind": [1, 2]})
    said = message(lambda: lockstep.equations({"s": "rain(t).Rain"}, models={"rain": rain}))
    assert said.endswith('expected one of Rain (mm/h), wind; write rain(...)[0] for "Rain (mm/h)"')
    assert message(lambda: lockstep.equations({"s": "rain(t).wint"}, models={"rain": rain})).endswith('did you mean "wind"?')


def test_what_jax_traces_is_pointed_to_a_callback(oscillator):
    class TracerArrayConversionError(TypeError):
        pass

    class Tracer:
        def __array__(self, *_, **__):
            raise TracerArrayConversionError("traced")

    assert message(lambda: lockstep.solve(oscillator, Tracer(), (0, 1)), lockstep.Error) == (
        "u0: found an array that JAX traces, which has no numbers yet, expected an array of numbers; call it by jax.pure_callback, "
        "as docs/python.md does")


def test_a_number_in_a_dict_is_named_with_its_key(oscillator):
    for bad, said in ((np.nan, "found nan, expected a finite number"), (np.inf, "found inf, expected a finite number"),
                      (None, "found None, expected a number, text, list or dict"),
                      (range(3), "found range, expected a number, text, list or dict"),
                      (1j, "found complex, expected a number, text, list or dict"),
                      (Decimal("1"), "found Decimal, expected a number, text, list or dict; convert it with float()")):
        for call, name in ((lambda: lockstep.solve(oscillator, [1, 0], (0, 1), parameters={"k": bad}), "parameters.k"),
                           (lambda: lockstep.solve(oscillator, {"x": 1, "v": bad}, (0, 1)), "u0.v"),
                           (lambda: lockstep.solve(oscillator, {"normal": {"mean": [1, 0], "std": bad}}, (0, 1)), "u0.normal.std")):
            assert message(call, lockstep.Error) == f"{name}: {said}"
    assert message(lambda: lockstep.train(t=TIMES, u=U, equations=EQUATIONS, parameters={"k": {"start": np.nan}})) == (
        "parameters.k.start: found nan, expected a finite number")


def test_what_is_no_list_is_said_to_become_one(oscillator):
    for given, kind in ((iter([1.0, 0.0]), "list_iterator"), (map(float, "10"), "map"), ({"x": 1.0}.values(), "dict_values")):
        assert message(lambda: lockstep.solve(oscillator, given, (0, 1)), lockstep.WrongType) == (
            f"u0: found {kind}, expected an array of numbers; make a list of it: list(u0)")
    assert message(lambda: lockstep.solve(oscillator, {1.0, 0.0}, (0, 1)), lockstep.WrongType) == (
        "u0: found set, expected an array of numbers; give a list, which has an order")
    assert message(lambda: lockstep.solve(oscillator, [{1.0, 0.0}], (0, 1)), lockstep.WrongType) == (
        "u0: found dtype object, expected real numbers")
    assert message(lambda: lockstep.solve(oscillator, ["1", "0"], (0, 1)), lockstep.WrongType).endswith(
        "; convert it: numpy.asarray(u0, float)")


def test_a_net_names_the_dtype_that_keeps_the_digits():
    class Labelled:
        def __init__(self, dtype):
            self.dtype, self.shape = np.dtype(dtype), (2,)

    net = lockstep.mlp([np.ones((1, 2))])
    for given, kept in ((Labelled("float64"), "float64"), (Labelled("float32"), "float32"), (Labelled("int64"), "float64"),
                        ([1.0, 2.0], "float64")):
        assert message(lambda: net(given), lockstep.WrongType).endswith(
            f"; convert it with numpy.asarray(x, dtype=numpy.{kept})")


def test_a_net_points_what_jax_traces_to_a_callback():
    class BatchTracer:
        dtype, shape = np.dtype("float32"), (2,)

    BatchTracer.__module__ = "jax._src.interpreters.batching"
    net = lockstep.mlp([np.ones((1, 2))])
    for call, name in ((net, "x"), (lambda x: net.jvp(x, x), "x"), (lambda x: net({"x": x}), 'x["x"]')):
        assert message(lambda: call(BatchTracer()), lockstep.WrongType) == (
            f"{name}: found an array that JAX traces, which has no numbers yet, expected an array of numbers; call it by "
            "jax.pure_callback, as docs/python.md does")
    assert weakref.ref(net)() is net  # which jax.jit(net) makes


def test_help_is_asked_of_what_there_is(oscillator):
    solution = lockstep.solve(oscillator, [1, 0], (0, 1))
    for call, name in ((solution.vjp, "vjp"), (solution.sensitivities, "sensitivities"), (solution.save, "save")):
        assert message(lambda: call(grad=1), lockstep.WrongType) == (
            f"grad: found an argument that {name}() does not take, expected one of its own; help(lockstep.Solution.{name}) "
            "lists them")


def test_a_solution_has_components_and_is_not_gone_through(oscillator):
    solution = lockstep.solve(oscillator, [[1, 0], [2, 0]], (0, 1))
    assert "x" in solution and "v" in solution and "y" not in solution and 0 not in solution
    assert message(lambda: list(solution), lockstep.WrongType) == (
        "solution: found an iteration over it, expected one over what it holds; component_names are the keys of "
        "solution[name], and solution.state has a row for each trajectory")


def test_a_training_says_which_form_an_argument_has(tmp_path):
    given = dict(t=TIMES, u=U)
    for call, said in (
            (lambda: lockstep.train(x=TIMES, y=TIMES, start=3), "start: found int, expected a lockstep.Model, or the path of its file"),
            (lambda: lockstep.train(**given, equations="x"), "equations: found str, expected a dict with a text for each component"),
            (lambda: lockstep.train(**given, equations=lockstep.mlp([np.ones((2, 2))])),
             "equations: found a Model, net, whose text is not known, expected a dict"),
            (lambda: lockstep.train(**given, equations=EQUATIONS, definitions=["a"]), "definitions: found list, expected a dict"),
            (lambda: lockstep.train(**given, equations=EQUATIONS, nets=["a"]), "nets: found list, expected a dict of dicts"),
            (lambda: lockstep.train(**given, equations=EQUATIONS, nets={"a": [8]}), "nets.a: found list, expected a dict"),
            (lambda: lockstep.train(**given, equations=EQUATIONS, parameters=np.array([])),
             'parameters: found ndarray, expected a dict by name, {"k": 1}, or {"k": {"start": 1}}'),
            (lambda: lockstep.train(**given, hidden=[2], activations=3), "activations: found int, expected a list with a name"),
            (lambda: lockstep.train(**given, hidden=[2], units=["m"]), "units: found list, expected a dict of texts"),
            (lambda: lockstep.load(None), "path: found None, expected the path of a model's file"),
            (lambda: lockstep.equations({None: "1"}), "equations: found None as a name, expected names as text"),
            (lambda: lockstep.equations(EQUATIONS, definitions=["k"]), "definitions: found list, expected a dict"),
            (lambda: lockstep.equations(EQUATIONS, definitions={3: "1"}), "definitions: found 3 as a name, expected names as text"),
            (lambda: lockstep.equations(EQUATIONS, parameters=3), "parameters: found int, expected a dict of numbers by name"),
            (lambda: lockstep.equations(EQUATIONS, parameters=[3]), "parameters: found 3 as a name, expected names as text"),
            (lambda: lockstep.equations(EQUATIONS, models={None: None}), "models: found None as a name, expected names as text"),
            (lambda: lockstep.equations({"x": "1"}, name=None), "name: found None, expected a name as text"),
            (lambda: lockstep.mlp([[[1.0]]], name=None), "name: found None, expected a name as text"),
            (lambda: lockstep.mlp(None), "weights: found None, expected a list with an array for each layer"),
            (lambda: lockstep.table([0, 1], [0, 1], input=3), "input: found int, expected a name as text")):
        assert message(call, lockstep.WrongType).startswith(said)
    assert [port["name"] for port in lockstep.equations({"x": "-rho * x"}, parameters="rho").inputs[1]["features"]] == ["rho"]


def test_a_parameter_that_nothing_reads_is_warned_of():
    spring = lockstep.equations(EQUATIONS, parameters={"k": 1, "mass": 2})
    with pytest.warns(UserWarning, match="^mass is read by nothing: no equation, definition, event or reset names it$"):
        lockstep.solve(spring, [1.0, 0.0], (0, 1), parameters={"mass": [1.0, 2.0]})


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_columns_without_names_that_are_not_as_many_as_equations_are_told_theirs(columns):
    t = np.linspace(0, 1, 20)
    with pytest.raises(lockstep.InvalidArgument) as told:
        lockstep.train(t=t, u=np.ones((20, columns)), equations={"a": "-k * a", "b": "k * a", "lit": "0"},
                       parameters={"k": {"start": 1.0}}, starts={"lit": 1})
    plural = "" if columns == 1 else "s"
    assert str(told.value) == (f"u: found {columns} column{plural} without names, expected 3, for a, b, lit in this order; a "
                               "component that was not measured is a column of NaN; or give columns by name, {'a': ..., 'b': ...}")
