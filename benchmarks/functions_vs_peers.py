#!/usr/bin/env python3
"""Equations written as text that call sin, exp or tanh, against JAX, in one run.

An oscillator of two components, x'' = -f(x) - 0.1 x', by RK4 over 1,000 steps: an ensemble of 4,096, one core, of which
JAX takes tiles of 64 and all at once and counts with the better, and one trajectory. Each is a compiled scan in JAX. The
results are compared before the times. Libraries take turns; least of all calls.

    PYTHONPATH=build/python build/peers/bin/python benchmarks/functions_vs_peers.py    # jax
"""
import argparse
import json
import os
import time

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"

import numpy as np

import lockstep
import pairing

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--budget", type=float, default=0.5, help="seconds of calls a row and turn (default 0.5)")
parser.add_argument("--turns", type=int, default=3)
parser.add_argument("--json", default="", help="write the rows to this file")
args = parser.parse_args()

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
    dtype = np.float32 if precision == "f32" else np.float64
    equations = lockstep.equations({"x": "v", "v": f"-{FORCES[name]} - 0.1 * v"})
    starts = np.random.default_rng(0).standard_normal((trajectories, 2))
    solver = lockstep.Solver(equations, starts, (0, STEPS * STEP), [STEPS * STEP], method="rk4", dt=STEP,
                             control="fixed", precision=precision, threads=1)
    calls = {"lockstep": lambda: solver(starts).state[:, -1, 0]}
    if pairing.importable("jax"):
        calls.update(jax_solves(name, dtype, starts))
    return calls


def least(call):
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < args.budget:
        t = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - t)
    return best * 1e6


if pairing.importable("jax"):
    import jax
    jax.config.update("jax_enable_x64", True)
rows = []
for name in FORCES:
    for trajectories in (4096, 1):
        for precision, bound in (("f32", 1e-5), ("f64", 1e-13)):
            calls = calls_of(name, precision, trajectories)
            ends = {peer: np.asarray(call()) for peer, call in calls.items()}
            for peer, end in ends.items():
                if not np.abs(end - ends["lockstep"]).max() < bound:
                    raise SystemExit(f"{name}, {precision}: {peer} ends elsewhere")
            best = dict.fromkeys(calls, float("inf"))
            for _ in range(args.turns):
                for peer, call in calls.items():
                    best[peer] = min(best[peer], least(call))
            workload = f"{name}, {trajectories} of {precision}"
            for peer, us in best.items():
                rows.append(dict(workload=workload, peer=peer, unit="us/call", best=pairing.rounded(us)))
                print(f"{workload:24} {peer:20} {us:10.4g} us {us / best['lockstep']:7.2f}", flush=True)
if args.json:
    with open(args.json, "w") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")
