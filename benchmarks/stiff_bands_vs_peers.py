#!/usr/bin/env python3
"""Stiff systems of many equations that depend on few each, against SciPy, in one run: rodas5p and LSODA, Radau.

The Brusselator with diffusion (Hairer & Wanner II, IV.10) in n/2 cells to t = 10, and diffusion in n cells with a net
2-16-1 in each, of the cell's state and place, to t = 1; float64, the end state alone. SciPy is told the band (LSODA) or
the pattern (Radau), and its right-hand sides are NumPy's, all cells at once; it solves one trajectory after another. A
program's time at an error is that of its fastest tolerance within it; errors are of the largest state, against SciPy's
Radau at 1e-10.

    PYTHONPATH=build/python python3 benchmarks/stiff_bands_vs_peers.py --sizes 1,32             # scipy
"""
import pairing

args = pairing.start(__doc__.split("\n")[0], [1, 32])

import numpy as np
import scipy
import scipy.sparse
from scipy.integrate import solve_ivp

import lockstep

TOLERANCES = [1e-3, 1e-4, 1e-5, 1e-6]
ERROR_BOUNDS = [1e-3, 1e-5]


class Brusselator:
    end, width = 10.0, 2

    def __init__(self, n):
        self.cells = cells = n // 2
        self.rate = 0.02 * (cells + 1) ** 2
        self.start = np.empty(n)
        self.start[0::2] = 1 + np.sin(2 * np.pi * np.arange(1, cells + 1) / (cells + 1))
        self.start[1::2] = 3

    def __call__(self, t, y):
        u, v = y[0::2], y[1::2]
        wide_u, wide_v = np.concatenate([[1], u, [1]]), np.concatenate([[3], v, [3]])
        dy = np.empty_like(y)
        dy[0::2] = 1 + u * u * v - 4 * u + self.rate * (wide_u[2:] - 2 * u + wide_u[:-2])
        dy[1::2] = 3 * u - u * u * v + self.rate * (wide_v[2:] - 2 * v + wide_v[:-2])
        return dy

    def rhs(self):
        equations = {}
        for i in range(1, self.cells + 1):
            beside = {s: [f"{s}{j}" if 1 <= j <= self.cells else edge for j in (i - 1, i + 1)]
                      for s, edge in (("u", "1"), ("v", "3"))}
            u, v = f"u{i}", f"v{i}"
            equations[u] = f"1 + {u}^2*{v} - 4*{u} + {self.rate!r}*({beside['u'][0]} - 2*{u} + {beside['u'][1]})"
            equations[v] = f"3*{u} - {u}^2*{v} + {self.rate!r}*({beside['v'][0]} - 2*{v} + {beside['v'][1]})"
        return lockstep.equations(equations)


class NetInEachCell:
    end, width = 1.0, 1

    def __init__(self, n):
        self.n, self.rate = n, 0.02 * (n + 1) ** 2
        random = np.random.default_rng(0)
        self.weights = [random.normal(size=(16, 2)), random.normal(size=(1, 16)) / 4]
        self.place = np.arange(n) / n
        self.start = np.ones(n)

    def __call__(self, t, u):
        wide = np.concatenate([[0], u, [0]])
        hidden = np.tanh(self.weights[0] @ np.stack([u, self.place]))
        return self.rate * (wide[2:] - 2 * u + wide[:-2]) + (self.weights[1] @ hidden)[0]

    def rhs(self):
        net = lockstep.mlp(self.weights, [np.zeros(16), np.zeros(1)], ["tanh", "identity"])
        beside = lambda j: f"u{j}" if 0 <= j < self.n else "0"
        return lockstep.equations({f"u{i}": f"{self.rate!r}*({beside(i - 1)} - 2*u{i} + {beside(i + 1)})"
                                            f" + c(u{i}, {float(self.place[i])!r})" for i in range(self.n)}, models={"c": net})


def spread(start, trajectories):
    """Starts of an ensemble, the first one as given."""
    return start * (1 + np.linspace(0, 0.1, trajectories)[:, None])


def error_of(function):
    exact = solve_ivp(function, (0, function.end), function.start, method="Radau", rtol=1e-10, atol=1e-12,
                      jac_sparsity=pattern(function)).y[:, -1]
    return lambda ends: float(np.abs(ends[0] - exact).max() / np.abs(exact).max())


def pattern(function):
    n, width = len(function.start), function.width
    return scipy.sparse.diags([np.ones(n)] * (2 * width + 1), range(-width, width + 1), shape=(n, n))


def ours(rows, name, function, trajectories, error):
    rhs, starts = function.rhs(), spread(function.start, trajectories)
    for tolerance in TOLERANCES:
        rows.peer(name, "lockstep", lockstep.__version__, trajectories,
                  lambda: lockstep.solve(rhs, starts, (0, function.end), method="rodas5p", precision="f64",
                                         rtol=tolerance, atol=tolerance / 100, threads=args.threads).end_state,
                  error, tolerance=tolerance)


def scipy_methods(rows, name, function, trajectories, error):
    told = {"LSODA": dict(lband=function.width, uband=function.width), "Radau": dict(jac_sparsity=pattern(function))}
    starts = spread(function.start, trajectories)
    for method, options in told.items():
        for tolerance in TOLERANCES:
            rows.peer(name, f"scipy-{method}", scipy.__version__, trajectories,
                      lambda: np.array([solve_ivp(function, (0, function.end), start, method=method, rtol=tolerance,
                                                  atol=tolerance / 100, **options).y[:, -1] for start in starts]),
                      error, tolerance=tolerance)


def main():
    rows = pairing.Rows(args)
    bounds = {}
    for kind, make in (("brusselator", Brusselator), ("net_a_cell", NetInEachCell)):
        for n in (100, 400, 1000):
            name = f"{kind}_{n}"
            if not pairing.wanted(args.workloads, name):
                continue
            function = make(n)
            error = error_of(function)
            bounds[name] = ERROR_BOUNDS
            for trajectories in args.sizes:
                ours(rows, name, function, trajectories, error)
                if trajectories == min(args.sizes):
                    scipy_methods(rows, name, function, trajectories, error)
    rows.table(bounds)


if __name__ == "__main__":
    main()
