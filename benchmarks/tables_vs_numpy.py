#!/usr/bin/env python3
"""Look-ups in tables against NumPy's interp and SciPy's cubics, for numbers in order and in none, on one thread; and an
ensemble under a tabulated forcing, by itself.

    PYTHONPATH=build/python python3 benchmarks/tables_vs_numpy.py        # also: pip install scipy

Times are the least of those that take turns (pairing.py). benchmarks/README.md, "Tables", has the figures.
"""
import warnings

import pairing

pairing.one_thread_each()
import numpy as np  # noqa: E402

import lockstep  # noqa: E402

HAS_SCIPY = pairing.importable("scipy")
if HAS_SCIPY:
    from scipy.interpolate import PchipInterpolator


def look_ups(knots, count, interpolation, ordered):
    def make():
        random = np.random.default_rng(0)
        at = np.sort(random.uniform(0, 1, knots))
        values = np.sin(10 * at)
        numbers = random.uniform(at[0], at[-1], count)
        if ordered:
            numbers.sort()
        table = lockstep.table(at, values, interpolation=interpolation)
        column, out = numbers[:, None].copy(), np.empty((count, 1))
        calls = {"lockstep": lambda: table(column, out=out)}
        if interpolation == "linear":
            calls["numpy"] = lambda: np.interp(numbers, at, values)
        elif HAS_SCIPY:
            cubics = PchipInterpolator(at, values)
            calls["scipy"] = lambda: cubics(numbers)
        return calls

    return f"{interpolation} {knots} {count} {'ordered' if ordered else 'random'}", make


# A store under a forcing by the hour: 256 of them, 1,000 hours.
def forced(precision, name, **options):
    def make():
        hours = np.arange(1001.0)
        model = lockstep.equations({"x": "rain(t) - 0.02 * x"},
                                   models={"rain": lockstep.table(hours, np.sin(hours) ** 2, interpolation="pchip")})
        start = np.linspace(1, 2, 256)[:, None]
        return {"lockstep": lambda: lockstep.solve(model, start, (0, 1000), [1000.0], precision=precision, threads=1,
                                                   **options)}

    return f"forced {name} {precision}", make


def main():
    warnings.simplefilter("ignore")  # of fixed steps that pass over knots
    args = pairing.call_options(__doc__.splitlines()[0]).parse_args()
    workloads = [look_ups(knots, count, interpolation, ordered) for knots in (10, 1000, 100_000)
                 for count in (10_000, 1_000_000) for interpolation in ("linear", "pchip") for ordered in (False, True)]
    for precision in ("f32", "f64"):
        workloads.append(forced(precision, "rk4", method="rk4", control="fixed", dt=0.5))
        workloads.append(forced(precision, "tsit5", method="tsit5", rtol=1e-6, atol=1e-6))
    pairing.time_workloads(workloads, args)


if __name__ == "__main__":
    main()
