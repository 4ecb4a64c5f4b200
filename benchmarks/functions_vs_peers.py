#!/usr/bin/env python3
"""Equations written as text that call sin, exp or tanh, against JAX, in one run.

An oscillator of two components, x'' = -f(x) - 0.1 x', by RK4 over 1,000 steps: an ensemble of 4,096, one core, of which
JAX takes tiles of 64 and all at once and counts with the better, and one trajectory. Each is a compiled scan in JAX. The
results are compared before the times. Libraries take turns; least of all calls.

    PYTHONPATH=build/python build/peers/bin/python benchmarks/functions_vs_peers.py    # jax
"""
import pairing

pairing.one_thread_each()

import numpy as np

import lockstep

STEPS, STEP = 1000, 1e-3
FORCES = {"sin": "sin(x)", "exp": "x * exp(-x * x)", "tanh": "tanh(x)"}


def jax_solves(name, dtype, starts):
    """Calls by what they are, of starts [trajectory][component]; each returns the end states' x."""
    import jax
    import jax.numpy as jnp
    force = {"sin": jnp.sin, "exp": lambda x: x * jnp.exp(-x * x), "tanh": jnp.tanh}[name]
    h, drag = dtype(STEP), dtype(0.1)

    def slope(x, v):
        return v, -force(x) - drag * v

    def step(u, _):
        x, v = u
        a1, b1 = slope(x, v)
        a2, b2 = slope(x + h / 2 * a1, v + h / 2 * b1)
        a3, b3 = slope(x + h / 2 * a2, v + h / 2 * b2)
        a4, b4 = slope(x + h * a3, v + h * b3)
        return (x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4), v + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)), None

    def tile(u):
        return jax.lax.scan(step, (u[0], u[1]), None, length=STEPS)[0][0]
    solve = jax.jit(lambda all_starts: jax.lax.map(tile, all_starts))
    calls = {}
    for size in sorted({min(64, len(starts)), len(starts)}):
        tiles = jnp.asarray(starts.astype(dtype).reshape(-1, size, 2).transpose(0, 2, 1))
        calls[f"jax, tiles of {size}"] = lambda tiles=tiles: np.asarray(solve(tiles)).ravel()
    return calls


def calls_of(name, precision, trajectories):
    dtype, bound = (np.float32, 1e-5) if precision == "f32" else (np.float64, 1e-13)
    equations = lockstep.equations({"x": "v", "v": f"-{FORCES[name]} - 0.1 * v"})
    starts = np.random.default_rng(0).standard_normal((trajectories, 2))
    solver = lockstep.Solver(equations, starts, (0, STEPS * STEP), [STEPS * STEP], method="rk4", dt=STEP,
                             control="fixed", precision=precision, threads=1)
    calls = {"lockstep": lambda: solver(starts).state[:, -1, 0]}
    if pairing.importable("jax"):
        calls.update(jax_solves(name, dtype, starts))
    ours = calls["lockstep"]()
    for peer, call in calls.items():
        if not np.abs(call() - ours).max() < bound:
            raise SystemExit(f"{name}, {precision}: {peer} ends elsewhere")
    return calls


def workloads():
    for name in FORCES:
        for trajectories in (4096, 1):
            for precision in ("f32", "f64"):
                yield f"{name}, {trajectories} of {precision}", lambda n=name, p=precision, t=trajectories: calls_of(n, p, t)


pairing.time_workloads(workloads(), pairing.call_options(__doc__.split("\n")[0]).parse_args())
