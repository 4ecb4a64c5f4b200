#!/usr/bin/env python3
"""What steps that end at the knots of measured inputs bring: a store under 1,000 hours of rain, 300 of them wet.

    PYTHONPATH=build/python python3 benchmarks/steps_at_knots.py        # also: pip install scipy

x' = rain(t) - 0.02 x, rain by lines, steps and cubics between the hours; errors are against vern9 at 1e-13, times a
trajectory's of 1,024 on one thread, the least of ten solves. benchmarks/README.md, "Steps at knots", has the table.
"""
import time
import warnings

import numpy as np

import lockstep

HOURS = np.arange(1001.0)
TRAJECTORIES, REPEATS = 1024, 10


def rain():
    random = np.random.default_rng(1)
    return np.where(random.random(1001) < 0.3, random.gamma(0.8, 0.5, 1001), 0)


def solve(interpolation, count=1, **options):
    model = lockstep.equations({"x": "rain(t) - 0.02 * x"},
                               models={"rain": lockstep.table(HOURS, rain(), interpolation=interpolation)})
    return lockstep.solve(model, np.linspace(1, 2, count)[:, None], (0, 1000), 1001, precision="f64", threads=1, **options)


def microseconds(interpolation, options):
    best = np.inf
    for _ in range(REPEATS):
        began = time.perf_counter()
        solve(interpolation, TRAJECTORIES, **options)
        best = min(best, time.perf_counter() - began)
    return best / TRAJECTORIES * 1e6


def by_scipy(exact):
    from scipy.integrate import solve_ivp
    from scipy.interpolate import interp1d
    values = interp1d(HOURS, rain())
    began = time.perf_counter()
    found = solve_ivp(lambda t, x: values(t) - 0.02 * x, (0, 1000), [1.0], rtol=1e-6, atol=1e-6, t_eval=HOURS)
    taken = time.perf_counter() - began
    error = np.abs(found.y[0] - exact).max()
    print(f"{'linear':10}SciPy's RK45 at 1e-6, one trajectory: {found.nfev / 6000:.1f} attempts an hour, error {error:.0e}, "
          f"{taken * 1e6:.0f} us")


def main():
    warnings.simplefilter("ignore")  # of steps that pass over knots, which is the subject
    loose, tight = {"rtol": 1e-6, "atol": 1e-6}, {"rtol": 1e-8, "atol": 1e-8}
    ways = {"1e-6": loose, "1e-8": tight, "1e-6 across knots": {**loose, "stop_at_knots": False}, "dt = 1": {"dt": 1.0}}
    for interpolation in ("linear", "previous", "pchip"):
        exact = solve(interpolation, rtol=1e-13, atol=1e-13, method="vern9").state[0, :, 0]
        for name, options in ways.items():
            found = solve(interpolation, **options)
            error = np.abs(found.state[0, :, 0] - exact).max()
            print(f"{interpolation:10}{name:18} {found.accepted[0] / 1000:.2f} + {found.rejected[0] / 1000:.2f} steps an hour, "
                  f"error {error:.0e}, {microseconds(interpolation, options):.0f} us")
        if interpolation == "linear":
            try:
                by_scipy(exact)
            except ImportError:
                print("SciPy is not installed: left out")


if __name__ == "__main__":
    main()
