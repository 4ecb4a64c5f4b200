#!/usr/bin/env python3
"""Training steps of regression nets against JAX with optax and PyTorch, in one run.

float32, the whole batch resident. Workload peaks: 2-20-5-1 relu, one full-batch epoch. Workload ocean: 32-128-128-31
relu, one step on one batch. A step is mean squared error, gradient and Adam. JAX takes its best of a scan over twenty
steps and of single calls. A library that is missing is left out.

    python3 benchmarks/regression_vs_peers.py --threads 1
"""
import pairing

args = pairing.start(__doc__.split("\n")[0], [0], program="regression_bench")

import time

import numpy as np

NETS = {"peaks": [2, 20, 5, 1], "ocean": [32, 128, 128, 31]}
SIZES = {"peaks": [1000, 40000], "ocean": [8, 16, 32, 256, 1024, 4096]}
SCAN = 20


def initial(widths, seed=0):
    """Glorot-uniform weights [out][in], zero biases."""
    rng = np.random.default_rng(seed)
    return [(rng.uniform(-1, 1, (b, a)).astype(np.float32) * np.float32(np.sqrt(6 / (a + b))), np.zeros(b, np.float32))
            for a, b in zip(widths[:-1], widths[1:])]


def data(widths, n):
    """Standard normal inputs and what another net of the shape makes of them."""
    x = np.random.default_rng(1).standard_normal((n, widths[0])).astype(np.float32)
    h = x
    for i, (w, b) in enumerate(initial(widths, seed=2)):
        h = h @ w.T + b
        h = np.maximum(h, 0) if i < 2 else h
    return x, np.ascontiguousarray(h)


def jax_steps(widths, n, steps):
    """A call that takes `steps` steps, waits, and returns the loss."""
    import jax
    import jax.numpy as jnp
    import optax
    x, y = (jax.device_put(a) for a in data(widths, n))
    optimiser = optax.adam(1e-5)

    def loss(parameters):
        h = x
        for i, (w, b) in enumerate(parameters):
            h = h @ w + b
            h = jax.nn.relu(h) if i < 2 else h
        return jnp.mean((h - y) ** 2)

    def step(carry, _):
        value, gradient = jax.value_and_grad(loss)(carry[0])
        updates, state = optimiser.update(gradient, carry[1])
        return (optax.apply_updates(carry[0], updates), state), value
    many = jax.jit(lambda carry: jax.lax.scan(step, carry, None, length=steps) if steps > 1 else step(carry, None),
                   donate_argnums=0)
    parameters = [(jnp.asarray(w.T), jnp.asarray(b)) for w, b in initial(widths)]
    state = [(parameters, optimiser.init(parameters))]

    def call():
        state[0], value = many(state[0])
        return float(np.asarray(value).ravel()[-1])
    return call, jax.__version__


def torch_steps(widths, n):
    import torch
    torch.set_num_threads(args.threads)
    layers = []
    for i, (w, b) in enumerate(initial(widths)):
        linear = torch.nn.Linear(w.shape[1], w.shape[0])
        linear.weight.data, linear.bias.data = torch.from_numpy(w), torch.from_numpy(b)
        layers += [linear] + ([torch.nn.ReLU()] if i < 2 else [])
    net = torch.nn.Sequential(*layers)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-5, fused=True)
    x, y = (torch.from_numpy(a) for a in data(widths, n))

    def call():
        optimiser.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimiser.step()
        return loss.item()
    return call, torch.__version__


def main():
    rows = pairing.Rows(args)
    peers = []
    if pairing.importable("jax", "optax"):
        peers += [("jax-optax-scan", lambda w, n: (*jax_steps(w, n, SCAN), SCAN)),
                  ("jax-optax", lambda w, n: (*jax_steps(w, n, 1), 1))]
    if pairing.importable("torch"):
        peers.append(("torch-eager", lambda w, n: (*torch_steps(w, n), 1)))
    for workload, widths in NETS.items():
        if not pairing.wanted(args.workloads, workload):
            continue
        for n in SIZES[workload] if args.sizes == [0] else args.sizes:
            rows.ours(workload, n)
            for name, make in peers:
                if not pairing.wanted(args.peers, name):
                    continue
                call, version, steps = make(widths, n)
                t = time.perf_counter()
                call()
                first = time.perf_counter() - t
                best, median, repeats = pairing.time_call(call, args.budget)
                rows.add(dict(workload=workload, peer=name, version=version, size=n, threads=args.threads,
                              unit="ms/step", best=pairing.rounded(best / steps * 1e3),
                              median=pairing.rounded(median / steps * 1e3), repeats=repeats,
                              first_call_s=pairing.rounded(first)))
            rows.ours(workload, n)
    print(f"\n{'workload':10} {'batch':>8} {'peer':16} {'ms a step':>10} {'peer/ours':>10}")
    for workload, n in dict.fromkeys((r["workload"], r["size"]) for r in rows.rows):
        best = {}
        for r in rows.rows:
            if (r["workload"], r["size"]) == (workload, n):
                best[r["peer"]] = min(r["best"], best.get(r["peer"], r["best"]))
        for peer, value in sorted(best.items(), key=lambda item: item[1]):
            ratio = f"{value / best['lockstep']:.2f}" if "lockstep" in best else "-"
            print(f"{workload:10} {n:>8} {peer:16} {value:10.4g} {ratio:>10}")


if __name__ == "__main__":
    main()
