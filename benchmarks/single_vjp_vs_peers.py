#!/usr/bin/env python3
"""Vector-Jacobian products of one sample and of one trajectory from Python, against JAX and diffrax, in one run.

Of nets: `model.vjp(x, w)` of one sample and of four, beside `jax.vjp` of the same net, compiled. Of solves: the gradient
by initial state, parameters and weights of a sum over 101 saved states, t 0..1, of the Lorenz equations, of a 3-100-3 tanh
net, and of both together: `solution.vjp(w)`, beside `jax.vjp` of the same 100 steps of Tsit5 written as a scan, and of
diffrax at 1e-6, each compiled. JAX and diffrax solve and go back in one call, as does our vjp. Of an optimiser's loop:
`solve(net.with_weights(w), ...).vjp(bar)` of one and of eight trajectories of wide nets, 20 steps, beside the same with
a `Solver` whose weights stay, and JAX's compiled gradient, whose weights are arguments. Libraries take turns; least of
all calls, in us. Nothing is bound to a CPU: a call of JAX takes half the time where its threads have one each.

    PYTHONPATH=build/python build/peers/bin/python benchmarks/single_vjp_vs_peers.py    # jax diffrax
"""
import pairing

pairing.one_thread_each()

import numpy as np

import lockstep

NETS = {"3-100-3 tanh": ([3, 100, 3], "tanh"), "32-128-128-31 relu": ([32, 128, 128, 31], "relu"),
        "4-64-64-64-2 tanh": ([4, 64, 64, 64, 2], "tanh")}
START, PARAMETERS, TIMES = [1.0, 1.0, 20.0], [10.0, 28.0, 8.0 / 3.0], np.linspace(0, 1, 101)
EQUATIONS = {"x": "sigma * (y - x)", "y": "x * (rho - z) - y", "z": "x*y - beta*z"}
A = [[0.161], [-0.008480655492356989, 0.335480655492357],
     [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
     [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
     [5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383],
     [0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774]]


def numbers(sizes):
    random = np.random.default_rng(1)
    limit = [np.sqrt(6 / (a + b)) for a, b in zip(sizes, sizes[1:])]
    weights = [random.uniform(-l, l, (b, a)).astype(np.float32) for l, a, b in zip(limit, sizes, sizes[1:])]
    return weights, [random.uniform(-0.1, 0.1, b).astype(np.float32) for b in sizes[1:]]


def lockstep_net(sizes, activation):
    weights, biases = numbers(sizes)
    kinds = [activation] * (len(weights) - 1) + ["linear"]
    return lockstep.mlp([w.astype(float) for w in weights], [b.astype(float) for b in biases], kinds)


def jax_net(activation):
    import jax

    def call(u, layers):
        for i, (w, b) in enumerate(layers):
            u = u @ w.T + b
            if i + 1 < len(layers):
                u = jax.numpy.tanh(u) if activation == "tanh" else jax.nn.relu(u)
        return u
    return call


def jax_layers(sizes, dtype):
    import jax.numpy as jnp
    return [(jnp.asarray(w, dtype), jnp.asarray(b, dtype)) for w, b in zip(*numbers(sizes))]


def net_calls(name, dtype, samples):
    sizes, activation = NETS[name]
    random = np.random.default_rng(2)
    x, w = (random.standard_normal((samples, width)).astype(dtype) for width in (sizes[0], sizes[-1]))
    model = lockstep_net(sizes, activation)
    calls = {"lockstep": lambda: model.vjp(x, w)}
    if pairing.importable("jax"):
        import jax
        net, layers = jax_net(activation), jax_layers(sizes, dtype)
        compiled = jax.jit(lambda x, w: jax.vjp(lambda x: net(x, layers), x)[1](w)[0])
        there = jax.numpy.asarray(x), jax.numpy.asarray(w)
        calls["jax"] = lambda: jax.block_until_ready(compiled(*there))
    return calls


def jax_right_hand_side(name, dtype):
    """(f(u, parameters), parameters)"""
    import jax.numpy as jnp
    net, layers = jax_net("tanh"), jax_layers([3, 100, 3], dtype)
    constants = jnp.asarray(PARAMETERS, dtype)

    def lorenz(u, p):
        x, y, z = u  # half the time of u[0], u[1], u[2]
        return jnp.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])
    if name == "net":
        return net, layers
    if name == "lorenz + net":
        return lambda u, p: lorenz(u, p[0]) + net(u, p[1]), (constants, layers)
    return lorenz, constants


def solve_calls(name, dtype, steps):
    right_hand_side = {"lorenz": "lorenz", "net": None, "lorenz + net": None}.get(name)
    if name == "equations":
        right_hand_side = lockstep.equations(EQUATIONS, parameters=dict(zip(("sigma", "rho", "beta"), PARAMETERS)))
    elif name != "lorenz":
        net = lockstep_net([3, 100, 3], "tanh")
        right_hand_side = net if name == "net" else ("lorenz", net)
    options = {"control": "fixed", "dt": 0.01} if steps == "100 steps" else {"rtol": 1e-6, "atol": 1e-6}
    if name != "net":
        options["parameters"] = PARAMETERS
    solution = lockstep.solve(right_hand_side, [START], (0, 1), TIMES, precision="f32" if dtype == "f4" else "f64",
                              threads=1, **options)
    bar = np.ones((1, 101, 3))
    calls = {"lockstep": lambda: solution.vjp(bar)}
    if steps == "100 steps" and pairing.importable("jax"):
        import jax
        import jax.numpy as jnp
        f, parameters = jax_right_hand_side(name, dtype)

        def solve(u0, p):
            def step(carry, _):
                y, k = carry
                stages = [k]
                for row in A:
                    y1 = y + 0.01 * sum(a * k for a, k in zip(row, stages))
                    stages.append(f(y1, p))
                return (y1, stages[-1]), y1
            _, states = jax.lax.scan(step, (u0, f(u0, p)), None, length=100)
            return jnp.concatenate([u0[None], states])
        compiled = jax.jit(lambda u0, p, bar: jax.vjp(solve, u0, p)[1](bar))
        there = jnp.asarray(START, dtype), jnp.ones((101, 3), dtype)
        calls["jax, scan"] = lambda: jax.block_until_ready(compiled(there[0], parameters, there[1]))
    if steps != "100 steps" and pairing.importable("diffrax"):
        import diffrax
        import jax
        import jax.numpy as jnp
        f, parameters = jax_right_hand_side(name, dtype)

        def solve_adaptive(u0, p):
            return diffrax.diffeqsolve(diffrax.ODETerm(lambda t, u, p: f(u, p)), diffrax.Tsit5(), 0.0, 1.0, None, u0,
                                       args=p, stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-6),
                                       saveat=diffrax.SaveAt(ts=jnp.asarray(TIMES, dtype)), max_steps=256).ys
        back = jax.jit(lambda u0, p, bar: jax.vjp(solve_adaptive, u0, p)[1](bar))
        given = jnp.asarray(START, dtype), jnp.ones((101, 3), dtype)
        calls["diffrax"] = lambda: jax.block_until_ready(back(given[0], parameters, given[1]))
    return calls


def steps_in_jax(f, dt, method):
    """step(carry, parameters) of rk4 or tsit5, and how its carry begins."""
    def rk4(u, p):
        a = f(u, p)
        b = f(u + dt / 2 * a, p)
        c = f(u + dt / 2 * b, p)
        return u + dt / 6 * (a + 2 * b + 2 * c + f(u + dt * c, p))

    def tsit5(carry, p):
        u, k = carry
        stages = [k]
        for row in A:
            u1 = u + dt * sum(a * k for a, k in zip(row, stages))
            stages.append(f(u1, p))
        return u1, stages[-1]
    return (rk4, lambda u, p: u) if method == "rk4" else (tsit5, lambda u, p: (u, f(u, p)))


def loop_calls(width, dtype, trajectories, method):
    """An iteration of an optimiser's: other weights, then the gradient of a sum over the end states by all of them."""
    sizes, steps = [4, width, width, 4], 20
    net = lockstep_net(sizes, "tanh")
    u0 = np.random.default_rng(3).standard_normal((trajectories, 4)).astype(dtype)
    weights, bar = net.weights, np.ones((trajectories, 1, 4))
    options = dict(method=method, control="fixed", dt=1 / steps, save_at=[1.0], threads=1,
                   precision="f32" if dtype == "f4" else "f64")
    kept = lockstep.Solver(net, u0, (0, 1), **options)
    calls = {"lockstep": lambda: lockstep.solve(net.with_weights(weights), u0, (0, 1), **options).vjp(bar),
             "lockstep, kept": lambda: kept(u0).vjp(bar)}
    if pairing.importable("jax"):
        import jax
        f = jax_net("tanh")
        step, begin = steps_in_jax(f, np.dtype(dtype).type(1 / steps), method)

        def loss(u, layers):
            end, _ = jax.lax.scan(lambda carry, _: (step(carry, layers), None), begin(u, layers), None, length=steps)
            return (end if method == "rk4" else end[0]).sum()
        gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))
        given = jax.numpy.asarray(u0), jax_layers(sizes, dtype)
        calls["jax"] = lambda: jax.block_until_ready(gradient(*given))
    return calls


def workloads():
    for name in NETS:
        for dtype in ("f4", "f8"):
            for samples in (1, 4):
                yield f"{name}, {samples} of {dtype}", lambda n=name, d=dtype, s=samples: net_calls(n, d, s)
    for name in ("lorenz", "equations", "net", "lorenz + net"):
        for dtype in ("f4", "f8"):
            for steps in ("100 steps", "adaptive"):
                yield f"solve {name}, {steps}, {dtype}", lambda n=name, d=dtype, s=steps: solve_calls(n, d, s)
    for width in (128, 256, 512):
        for trajectories in (1, 8):
            for dtype in ("f4", "f8"):
                for method in ("rk4", "tsit5"):
                    yield (f"loop 4-{width}-{width}-4, {trajectories}, {method}, {dtype}",
                           lambda w=width, n=trajectories, d=dtype, m=method: loop_calls(w, d, n, m))


pairing.time_workloads(workloads(), pairing.call_options(__doc__.split("\n")[0]).parse_args())
