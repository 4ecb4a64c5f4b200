#!/usr/bin/env python3
"""Stiff ensembles against diffrax and SciPy, in one run: rodas5p, Kvaerno's methods and Radau, BDF, LSODA.

Robertson's reaction to t = 1e4, its first rate constant from 0.02 to 0.06, and van der Pol's equation with mu from 500 to
1500 to t = 1000; float64, the end state alone. All are called from Python; SciPy solves one trajectory after another, the
others a batch. A program's time at an error is that of its fastest tolerance within it; errors are the largest of a
component relative to its largest value, against SciPy's Radau at 1e-11, over at most 16 trajectories.

    PYTHONPATH=build/python python3 benchmarks/stiff_vs_peers.py --sizes 64,4096        # scipy jax diffrax
"""
import pairing

args = pairing.start(__doc__.split("\n")[0], [64, 4096])

import numpy as np
from scipy.integrate import solve_ivp

import lockstep

TOLERANCES = [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8]
ERROR_BOUNDS = [1e-3, 1e-5]


def robertson(u, p):
    slow, back, fast = p * u[0], 1e4 * u[1] * u[2], 3e7 * u[1] * u[1]
    return [back - slow, slow - back - fast, fast]


def van_der_pol(u, p):
    return [u[1], p * ((1 - u[0] * u[0]) * u[1]) - u[0]]


# name: right-hand side, our equations, start, end, parameters, atol / rtol
WORKLOADS = {
    "robertson": (robertson, {"x": "1e4*y*z - p*x", "y": "p*x - 1e4*y*z - 3e7*y*y", "z": "3e7*y*y"}, [1.0, 0.0, 0.0],
                  1e4, (0.02, 0.06), 1e-5),
    "van_der_pol": (van_der_pol, {"x": "v", "v": "p*((1 - x*x)*v) - x"}, [2.0, 0.0], 1000.0, (500.0, 1500.0), 1.0),
}


def error_of(workload, parameters):
    function, _, start, end, _, ratio = WORKLOADS[workload]
    n = len(parameters)
    members = np.unique(np.linspace(0, n - 1, min(n, 16)).astype(int))
    exact = np.array([solve_ivp(lambda t, u, p=parameters[m]: function(u, p), (0, end), start, method="Radau",
                                rtol=1e-11, atol=1e-11 * ratio).y[:, -1] for m in members])
    scale = np.abs(exact).max(0)
    return lambda ends: float((np.abs(ends[members] - exact) / scale).max())


def ours(rows, workload, parameters, error):
    _, equations, start, end, _, ratio = WORKLOADS[workload]
    rhs = lockstep.equations(equations, parameters={"p": 1.0})
    u0, p = np.tile(start, (len(parameters), 1)), parameters[:, None]
    for tolerance in TOLERANCES:
        rows.peer(workload, "lockstep", lockstep.__version__, len(parameters),
                  lambda: lockstep.solve(rhs, u0, (0, end), parameters=p, method="rodas5p", precision="f64",
                                         rtol=tolerance, atol=tolerance * ratio, threads=args.threads).end_state,
                  error, tolerance=tolerance)


def scipy(rows, workload, parameters, error):
    import scipy as module
    function, _, start, end, _, ratio = WORKLOADS[workload]
    for method in ("Radau", "BDF", "LSODA"):
        for tolerance in TOLERANCES:
            rows.peer(workload, f"scipy-{method}", module.__version__, len(parameters),
                      lambda: np.array([solve_ivp(lambda t, u, p=p: function(u, p), (0, end), start, method=method,
                                                  rtol=tolerance, atol=tolerance * ratio).y[:, -1] for p in parameters]),
                      error, tolerance=tolerance)


def diffrax(rows, workload, parameters, error):
    import diffrax
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    function, _, start, end, _, ratio = WORKLOADS[workload]
    given = jnp.asarray(parameters)
    for solver in (diffrax.Kvaerno5(), diffrax.Kvaerno3()):
        for tolerance in TOLERANCES:
            def one(p, tolerance=tolerance, solver=solver):
                return diffrax.diffeqsolve(
                    diffrax.ODETerm(lambda t, u, p: jnp.stack(function(u, p))), solver, 0.0, end, 1e-6,
                    jnp.asarray(start), args=p, saveat=diffrax.SaveAt(t1=True), max_steps=None,
                    stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance * ratio),
                    adjoint=diffrax.ForwardMode(), throw=False).ys[0]
            solve = jax.jit(jax.vmap(one))
            rows.peer(workload, f"diffrax-{type(solver).__name__}", diffrax.__version__, len(parameters),
                      lambda: np.asarray(solve(given)), error, tolerance=tolerance)


def main():
    rows = pairing.Rows(args)
    for workload, (_, _, _, _, (low, high), _) in WORKLOADS.items():
        if not pairing.wanted(args.workloads, workload):
            continue
        for n in args.sizes:
            parameters = np.linspace(low, high, n)
            error = error_of(workload, parameters)
            ours(rows, workload, parameters, error)
            if n <= 64:
                scipy(rows, workload, parameters, error)
            if pairing.importable("jax", "diffrax"):
                diffrax(rows, workload, parameters, error)
            ours(rows, workload, parameters, error)
    rows.table({workload: ERROR_BOUNDS for workload in WORKLOADS})


if __name__ == "__main__":
    main()
