#!/usr/bin/env python3
"""Evaluations and errors of methods where stability limits the step, and of one that solves equations: heat in a rod of
64 cells that also grows, van der Pol's equation and Robertson's reaction.

    PYTHONPATH=build/python python3 benchmarks/fast_decay.py

u_i' = k (u_(i-1) - 2 u_i + u_(i+1)) + u_i (1 - u_i), k = 65^2, from 32 initial states to t = 0.5, float64. Prints a line
for each method and tolerance: evaluations (mean), steps accepted and rejected, the largest error at 11 save points
against vern9 at 1e-11, and seconds of all 32 on one thread; of the other two evaluations alone."""

import time

import lockstep
import numpy as np

CELLS = 64


def right_hand_side():
    equations = {}
    for i in range(CELLS):
        left = f"u{i - 1}" if i else "0"
        right = f"u{i + 1}" if i + 1 < CELLS else "0"
        equations[f"u{i}"] = f"{(CELLS + 1) ** 2} * ({left} - 2 * u{i} + {right}) + u{i} * (1 - u{i})"
    return lockstep.equations(equations)


def main():
    x = np.arange(1, CELLS + 1) / (CELLS + 1)
    u0 = np.stack([(1 + 0.1 * j) * np.sin(np.pi * x) + 0.3 * np.sin(7 * np.pi * x) for j in range(32)])
    rhs = right_hand_side()

    def solve(method, rtol, atol):
        return lockstep.solve(rhs, u0, (0, 0.5), save_at=11, method=method, rtol=rtol, atol=atol, precision="f64",
                              max_steps=10**7, threads=1)

    exact = np.asarray(solve("vern9", 1e-11, 1e-13).state)
    for method in ("tsit5", "bs3", "dopri5", "vern7", "rkc8", "rkc20", "rodas5p"):
        for tolerance in (1e-3, 1e-4, 1e-6):
            start = time.perf_counter()
            solution = solve(method, tolerance, tolerance / 100)
            seconds = time.perf_counter() - start
            error = np.abs(np.asarray(solution.state) - exact).max()
            evaluations, accepted, rejected = (np.asarray(getattr(solution, name)).mean()
                                               for name in ("evaluations", "accepted", "rejected"))
            print(f"{method:7} {tolerance:.0e}  {evaluations:8.0f} evaluations, {accepted:5.0f} + {rejected:3.0f} steps, "
                  f"error {error:.0e}, {seconds:.3f} s")

    stiff = {"van der Pol, eps = 1e-6": ({"x": "y", "y": "((1 - x^2) * y - x) / 1e-6"}, [2, -0.66], 2, 1e-6),
             "Robertson": ({"a": "-0.04 * a + 1e4 * b * c", "b": "0.04 * a - 1e4 * b * c - 3e7 * b^2", "c": "3e7 * b^2"},
                           [1, 0, 0], 40, 1e-8)}
    for name, (equations, start, end, atol) in stiff.items():
        for method in ("tsit5", "rkc8", "rkc20", "rodas5p"):
            solution = lockstep.solve(lockstep.equations(equations), start, (0, end), method=method, rtol=1e-4, atol=atol,
                                      precision="f64", max_steps=10**8)
            print(f"{name}, {method:6} {solution.evaluations[0]:9} evaluations, {solution.accepted[0]} + "
                  f"{solution.rejected[0]} steps")


if __name__ == "__main__":
    main()
