#!/usr/bin/env python3
"""An ensemble whose right-hand side is a trained 3-100-3 tanh net, against JAX by hand and diffrax, in one run.

float32, Tsit5, t 0..1, states kept at 101 even times; initial states (1, 0, 0) plus normal noise of 0.1.
Workload neural_f32_fixed: steps of 0.01; neural_f32_adaptive: rtol = atol = 1e-6.
Errors are the largest difference, over 16 trajectories and all kept times, from the same net in float64.

    python3 benchmarks/neural_vs_peers.py --threads 1 --sizes 10000,100000
"""
import pairing

args = pairing.start(__doc__.split("\n")[0], [10000, 100000])

import json
import os

import numpy as np

TIMES = np.linspace(0.0, 1.0, 101)
TILE = 1000
MODEL = os.path.join(pairing.ROOT, "examples", "lorenz", "lorenz_tanh_3_100_3.safetensors")


def load_safetensors(path):
    """Tensors by name: an 8-byte length, a JSON header with offsets, then the numbers (little-endian float32)."""
    with open(path, "rb") as f:
        data = f.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    return {name: np.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


NET = load_safetensors(MODEL)
W0, B0, W1, B1 = (NET[name] for name in ("0.weight", "0.bias", "2.weight", "2.bias"))


def initial_states(n):
    noise = np.random.default_rng(1).standard_normal((n, 3)) * 0.1
    return (np.array([1.0, 0.0, 0.0]) + noise).astype(np.float32)


def error_against_reference(n):
    """A function from kept states [n][101][3] to the largest error.

    The reference is RK4 in float64 with 40 steps between kept times: at h = 2.5e-4 its error is some 1e-8 here,
    far below float32's.
    """
    members = np.unique(np.linspace(0, n - 1, min(n, 16)).astype(int))
    w0, b0, w1, b1 = (a.astype(np.float64) for a in (W0.T, B0, W1.T, B1))
    u, h = initial_states(n)[members].astype(np.float64), 0.01 / 40

    def f(u):
        return np.tanh(u @ w0 + b0) @ w1 + b1
    kept = [u]
    for _ in range(100):
        for _ in range(40):
            k1 = f(u)
            k2 = f(u + h / 2 * k1)
            k3 = f(u + h / 2 * k2)
            k4 = f(u + h * k3)
            u = u + h / 6 * (k1 + 2 * (k2 + k3) + k4)
        kept.append(u)
    reference = np.stack(kept, 1)
    return lambda states: float(np.max(np.abs(states[members] - reference)))


def net(t, u, _):
    import jax.numpy as jnp
    return jnp.tanh(u @ W0.T + B0) @ W1.T + B1


def in_tiles(solve, n):
    """`solve` maps [TILE][3] to [time][TILE][3]; the result maps [n][3] to [n][time][3], a tile after the other."""
    import jax
    tiled = jax.jit(lambda u: jax.lax.map(solve, u.reshape(-1, TILE, 3)))
    return lambda u: np.asarray(tiled(u)).swapaxes(1, 2).reshape(n, len(TIMES), 3)


def diffrax_programs(rows, workload, n, error):
    """diffrax with a step of its own for each trajectory (all wait for the slowest), or one for each tile."""
    import diffrax
    import jax
    import jax.numpy as jnp
    times = jnp.asarray(TIMES, jnp.float32)
    u0 = jnp.asarray(initial_states(n))
    controller = diffrax.StepTo(times) if workload.endswith("fixed") else diffrax.PIDController(rtol=1e-6, atol=1e-6)

    def solve(u):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(net), diffrax.Tsit5(), 0.0, 1.0, None, u, stepsize_controller=controller,
            saveat=diffrax.SaveAt(ts=times), adjoint=diffrax.ForwardMode(), max_steps=None, throw=False).ys
    each = jax.jit(jax.vmap(solve))
    rows.peer(workload, "diffrax-tsit5-vmap", diffrax.__version__, n, lambda: np.asarray(each(u0)), error)
    if n % TILE == 0:
        tiled = in_tiles(solve, n)
        rows.peer(workload, f"diffrax-tsit5-common-step-tile{TILE}", diffrax.__version__, n, lambda: tiled(u0), error)


def jax_by_hand(rows, workload, n, error):
    """The steps of Tsit5 written out in one scan: what XLA can do at best."""
    if not workload.endswith("fixed") or n % TILE != 0:
        return
    import diffrax  # for the tableau alone
    import jax
    import jax.numpy as jnp
    stages = [np.asarray(row, np.float32) for row in diffrax.Tsit5.tableau.a_lower]
    u0 = jnp.asarray(initial_states(n))

    def solve(u0):
        def step(carry, _):
            u, first = carry
            ks = [first]
            for row in stages:
                at = u + 0.01 * sum(a * k for a, k in zip(row, ks))
                ks.append(net(0, at, None))
            return (at, ks[-1]), at
        _, kept = jax.lax.scan(step, (u0, net(0, u0, None)), None, length=100)
        return jnp.concatenate([u0[None], kept])
    tiled = in_tiles(solve, n)
    rows.peer(workload, f"jax-by-hand-tsit5-tile{TILE}", jax.__version__, n, lambda: tiled(u0), error)


def main():
    rows = pairing.Rows(args)
    rows.fma_peak()
    programs = [jax_by_hand, diffrax_programs] if pairing.importable("jax", "diffrax") else []
    for workload in ("neural_f32_fixed", "neural_f32_adaptive"):
        if not pairing.wanted(args.workloads, workload):
            continue
        for n in args.sizes:
            error = error_against_reference(n)
            rows.ours(workload, n)
            for program in programs:
                program(rows, workload, n, error)
                rows.ours(workload, n)
    rows.table()


if __name__ == "__main__":
    main()
