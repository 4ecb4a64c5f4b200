"""Gradients through whole solves by diffrax in float64, recorded in solve_gradients.txt for gradient_test.

    python solve_gradients.py solve_gradients.txt

Rewrites the file in place. Its lines `..._steps` hold the ends of the accepted steps of an adaptive Tsit5 solve
(rtol = atol = 1e-6, u0 = (1, 0, 0), t 0..1), which diffrax is made to take by StepTo: then both differentiate the same
numbers. The loss is sum (u - 1)^2 over 101 evenly spaced times, most of them inside steps. `net_values` holds weights
[output][input] and bias of each layer of a 3-5-3 tanh net. diffrax 0.7.2, jax 0.12.0.1.
"""
import sys

import diffrax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def read(path):
    rows = [line.split() for line in open(path)]
    return {row[0]: jnp.array([float(x) for x in row[1:]]) for row in rows}


def lorenz(t, u, p):
    x, y, z = u
    return jnp.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])


def net(t, u, w):
    hidden = jnp.tanh(w[:15].reshape(5, 3) @ u + w[15:20])
    return w[20:35].reshape(3, 5) @ hidden + w[35:]


def gradients(field, ends, p, adaptive):
    times = jnp.concatenate([jnp.zeros(1), ends])
    saves = jnp.arange(101) / 100.0

    def loss(u0, p):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 1.0, None, u0, args=p,
            stepsize_controller=diffrax.StepTo(times if adaptive else saves), saveat=diffrax.SaveAt(ts=saves),
            adjoint=diffrax.RecursiveCheckpointAdjoint(), max_steps=4096)
        return jnp.sum((solution.ys - 1.0) ** 2)

    value, (by_u0, by_p) = jax.value_and_grad(loss, (0, 1))(jnp.array([1.0, 0.0, 0.0]), p)
    return [value], by_u0, by_p


path = sys.argv[1]
values = read(path)
parameters = {"lorenz": jnp.array([10, 28, 8.0 / 3]), "net": values["net_values"]}
out = {name: values[name] for name in ("lorenz_steps", "net_steps", "net_values")}
for name, field in (("lorenz", lorenz), ("net", net)):
    for mode in ("adaptive", "fixed"):
        results = gradients(field, values[name + "_steps"], parameters[name], mode == "adaptive")
        for what, numbers in zip(("loss", "initial_state", "parameters"), results):
            out[f"{name}_{mode}_{what}"] = numbers
with open(path, "w") as file:
    for name, numbers in out.items():
        file.write(" ".join([name] + [f"{float(x):.17g}" for x in numbers]) + "\n")
