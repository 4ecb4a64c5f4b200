#!/usr/bin/env python3
"""Whole Jacobians of nets from Python, of one sample and of a thousand, against JAX, in one run.

`model.jacobian(x)`, beside as many `model.jvp` or `model.vjp` as that takes, beside the derivative as a net,
`model.derivative("jacobian")`, and beside `jax.jacfwd` and `jax.jacrev` of the same net under `vmap`, compiled.
Libraries take turns; least of all calls, in us. One thread each.

    PYTHONPATH=build/python build/peers/bin/python benchmarks/jacobian_vs_peers.py    # jax
"""
import pairing

pairing.one_thread_each()

import numpy as np

import lockstep

NETS = {"3-100-3 tanh": ([3, 100, 3], "tanh"), "10-133x5-8 tanh": ([10] + [133] * 5 + [8], "tanh"),
        "32-128-128-31 relu": ([32, 128, 128, 31], "relu")}


def layers(sizes):
    random = np.random.default_rng(1)
    return [(random.uniform(-1, 1, (b, a)) * np.sqrt(3 / a), random.uniform(-0.1, 0.1, b))
            for a, b in zip(sizes, sizes[1:])]


def jacobian_calls(name, dtype, samples):
    sizes, activation = NETS[name]
    weights, biases = zip(*layers(sizes))
    model = lockstep.mlp(weights, biases, [activation] * (len(weights) - 1) + ["linear"])
    x = np.random.default_rng(2).standard_normal((samples, sizes[0])).astype(dtype)
    forward = sizes[0] <= sizes[-1]
    units = [np.tile(unit, (samples, 1)) for unit in np.eye(sizes[0] if forward else sizes[-1], dtype=dtype)]
    multiply = model.jvp if forward else model.vjp
    whole = model.derivative("jacobian")
    calls = {"lockstep": lambda: model.jacobian(x), "by products": lambda: [multiply(x, unit) for unit in units],
             "as a net": lambda: whole(x)}
    if pairing.importable("jax"):
        import jax
        there = [(jax.numpy.asarray(w, dtype), jax.numpy.asarray(b, dtype)) for w, b in zip(weights, biases)]

        def net(u):
            for i, (w, b) in enumerate(there):
                u = w @ u + b
                if i + 1 < len(there):
                    u = jax.numpy.tanh(u) if activation == "tanh" else jax.nn.relu(u)
            return u
        at = jax.numpy.asarray(x)
        for peer in ("jacfwd", "jacrev"):
            compiled = jax.jit(jax.vmap(getattr(jax, peer)(net)))
            np.testing.assert_allclose(compiled(at), model.jacobian(x), rtol=1e-3, atol=1e-3)
            calls[f"jax, {peer}"] = lambda compiled=compiled: jax.block_until_ready(compiled(at))
    return calls


def workloads():
    for name in NETS:
        for dtype in ("f4", "f8"):
            for samples in (1, 1000):
                yield f"{name}, {samples} of {dtype}", lambda n=name, d=dtype, s=samples: jacobian_calls(n, d, s)


pairing.time_workloads(workloads(), pairing.call_options(__doc__.split("\n")[0]).parse_args())
