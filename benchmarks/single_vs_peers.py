#!/usr/bin/env python3
"""One trajectory at a time from Python: the loop of an optimiser, against heyoka, SciPy and diffrax, in one run.

The Lorenz equations (sigma 10, rho 28, beta 8/3) from (1, 1, 20), float64, adaptive. Every call has initial values and a
parameter of its own and returns NumPy arrays, as in a loop; what can be made before the loop is (heyoka's integrator,
JAX's compiled function, our equations). A library's time at an error bound is that of its fastest setting within it;
libraries take turns, the best of all turns counts. Errors: the largest difference from a Taylor series in extended
precision, at the end or at the save points.

    PYTHONPATH=build/python taskset -c 1 build/peers/bin/python benchmarks/single_vs_peers.py    # heyoka scipy jax diffrax
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

import pairing

SIGMA, BETA, RHO, START = 10.0, 8.0 / 3.0, 28.0, [1.0, 1.0, 20.0]
# name: (end, number of save points, error bounds)
WORKLOADS = {"t = 0.1, the end": (0.1, 1, [1e-6]), "t = 1, the end": (1.0, 1, [1e-5, 1e-9]),
             "t = 5, 501 save points": (5.0, 501, [1e-4, 1e-8])}
TOLERANCES = [10.0**-k for k in range(4, 14)]


def reference(end, points, order=24, steps_a_unit=400):
    """States [save point][3] by Taylor series in long double; steps end on the save points."""
    wide = np.longdouble
    steps = int(np.ceil(end * steps_a_unit / max(points - 1, 1))) * max(points - 1, 1)
    h, u, states = wide(end) / wide(steps), [wide(v) for v in START], []
    for i in range(steps):
        if points > 1 and i % (steps // (points - 1)) == 0:
            states.append([float(v) for v in u])
        cx, cy, cz = ([v] for v in u)
        for k in range(order):
            xz = sum(cx[j] * cz[k - j] for j in range(k + 1))
            xy = sum(cx[j] * cy[k - j] for j in range(k + 1))
            cx.append(wide(10) * (cy[k] - cx[k]) / (k + 1))
            cy.append((wide(28) * cx[k] - xz - cy[k]) / (k + 1))
            cz.append((xy - wide(8) / wide(3) * cz[k]) / (k + 1))
        u = [sum(c * h**k for k, c in enumerate(series)) for series in (cx, cy, cz)]
    return np.array(states + [[float(v) for v in u]])


def save_times(end, points):
    return np.linspace(0, end, points) if points > 1 else np.array([end])


# Each yields (library, setting, call), where call(u0, rho) gives states [save point][3].
def lockstep_calls(end, points):
    import lockstep
    system = lockstep.equations({"x": "sigma * (y - x)", "y": "x * (rho - z) - y", "z": "x*y - beta*z"},
                                parameters={"sigma": SIGMA, "rho": RHO, "beta": BETA})
    times, span = save_times(end, points), (0.0, end)
    for what, problem in (("built in", "lorenz"), ("equations", system)):
        for method in ("tsit5", "vern7", "vern9"):
            for tolerance in TOLERANCES:
                options = {"method": method, "rtol": tolerance, "atol": tolerance, "precision": "f64"}
                setting = f"{method} {tolerance:.0e}"

                def call(u0, rho, problem=problem, options=options):
                    return lockstep.solve(problem, u0, span, times, parameters=[SIGMA, rho, BETA], **options).state[0]
                yield f"lockstep.solve, {what}", setting, call
                solver = lockstep.Solver(problem, START, span, times, **options)
                yield (f"lockstep.Solver, {what}", setting,
                       lambda u0, rho, solver=solver: solver(u0, parameters=[SIGMA, rho, BETA]).state[0])


def heyoka_calls(end, points):
    import heyoka as hy
    x, y, z = hy.make_vars("x", "y", "z")
    system = [(x, SIGMA * (y - x)), (y, x * (hy.par[0] - z) - y), (z, x * y - BETA * z)]
    times = save_times(end, points)
    for tolerance in TOLERANCES[::2] + [1e-15]:
        integrator = hy.taylor_adaptive(system, START, pars=[RHO], tol=tolerance, compact_mode=False)

        def call(u0, rho, integrator=integrator):
            integrator.time = 0.0
            integrator.state[:] = u0
            integrator.pars[0] = rho
            if points > 1:
                return integrator.propagate_grid(times)[-1]
            integrator.propagate_until(end)
            return integrator.state[None].copy()
        yield "heyoka, integrator kept", f"{tolerance:.0e}", call


def scipy_calls(end, points):
    from scipy.integrate import odeint, solve_ivp
    times = save_times(end, points)

    def lorenz(t, u, rho):
        x, y, z = u
        return SIGMA * (y - x), x * (rho - z) - y, x * y - BETA * z
    for tolerance in TOLERANCES[::2]:
        for method in ("DOP853", "RK45"):
            def call(u0, rho, method=method, tolerance=tolerance):
                return solve_ivp(lorenz, (0.0, end), u0, method, times, args=(rho,), rtol=max(tolerance, 2.3e-14),
                                 atol=tolerance).y.T
            yield f"SciPy solve_ivp {method}", f"{tolerance:.0e}", call

        def call(u0, rho, tolerance=tolerance):
            at = times if points > 1 else np.array([0.0, end])
            return odeint(lorenz, u0, at, args=(rho,), rtol=tolerance, atol=tolerance, tfirst=True)[-points:]
        yield "SciPy odeint (LSODA)", f"{tolerance:.0e}", call


def diffrax_calls(end, points):
    import diffrax
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    save_at = diffrax.SaveAt(ts=save_times(end, points)) if points > 1 else diffrax.SaveAt(t1=True)

    def lorenz(t, u, rho):
        return jnp.stack([SIGMA * (u[1] - u[0]), u[0] * (rho - u[2]) - u[1], u[0] * u[1] - BETA * u[2]])
    for solver in (diffrax.Tsit5(), diffrax.Dopri8()):
        for tolerance in TOLERANCES[::2]:
            @jax.jit
            def solve(u0, rho, solver=solver, tolerance=tolerance):
                return diffrax.diffeqsolve(
                    diffrax.ODETerm(lorenz), solver, 0.0, end, None, u0, args=rho, saveat=save_at, max_steps=None,
                    adjoint=diffrax.ForwardMode(), throw=False,
                    stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance)).ys
            yield (f"diffrax {type(solver).__name__}, jit", f"{tolerance:.0e}",
                   lambda u0, rho, solve=solve: np.asarray(solve(np.asarray(u0), rho)))


def microseconds(call, seconds):
    """The best of runs of several calls, each with numbers of its own."""
    best, begin, calls, i = float("inf"), time.perf_counter(), 1, 0
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        for _ in range(calls):
            i += 1
            call([1.0, 1.0, 20.0 + 1e-9 * (i % 100)], RHO)
        taken = time.perf_counter() - start
        if taken < 1e-3:
            calls *= 2
        best = min(best, taken / calls)
    return best * 1e6


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--turns", type=int, default=5, help="of each library (default 5)")
    p.add_argument("--seconds", type=float, default=0.3, help="of each turn (default 0.3)")
    p.add_argument("--json", default="", help="write the rows to this file")
    args = p.parse_args()
    libraries = [calls for calls, needs in ((lockstep_calls, "lockstep"), (heyoka_calls, "heyoka"),
                                            (scipy_calls, "scipy"), (diffrax_calls, "diffrax"))
                 if pairing.importable(needs)]
    rows = []
    for workload, (end, points, bounds) in WORKLOADS.items():
        expected = reference(end, points)
        tried = []
        for make in libraries:
            for library, setting, call in make(end, points):
                error = float(np.max(np.abs(call(START, RHO) - expected)))
                if error <= max(bounds):
                    tried.append((library, setting, call, error, microseconds(call, 0.02)))
        for bound in bounds:
            best = {}
            for one in tried:
                if one[3] <= bound and (one[0] not in best or one[4] < best[one[0]][4]):
                    best[one[0]] = one
            times = dict.fromkeys(best, float("inf"))
            for _ in range(args.turns):
                for library, one in best.items():
                    times[library] = min(times[library], microseconds(one[2], args.seconds))
            for library, one in best.items():
                rows.append(dict(workload=workload, bound=bound, library=library, setting=one[1], error=one[3],
                                 us=pairing.rounded(times[library])))
                print(json.dumps(rows[-1]), flush=True)
    print(f"\n{'workload':24} {'error':>6} {'library':28} {'setting':>14} {'us a call':>10} {'over ours':>10}")
    for workload, (_, _, bounds) in WORKLOADS.items():
        for bound in bounds:
            here = [r for r in rows if (r["workload"], r["bound"]) == (workload, bound)]
            ours = min((r["us"] for r in here if r["library"] == "lockstep.Solver, equations"), default=float("nan"))
            for r in sorted(here, key=lambda r: r["us"]):
                print(f"{workload:24} {bound:6.0e} {r['library']:28} {r['setting']:>14} {r['us']:10.4g} "
                      f"{r['us'] / ours:10.2f}")
    if args.json:
        with open(args.json, "w") as f:
            f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")


main()
