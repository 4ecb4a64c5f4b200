#!/usr/bin/env python3
"""Derives the coefficients of the Runge-Kutta-Chebyshev methods of order 2 exactly, and checks that the headers beside
this script hold them, each rounded once to double; `--write` writes them there. Needs nothing but Python.

Sommeijer, Shampine & Verwer 1998, RKC: An explicit solver for parabolic PDEs, J. Comput. Appl. Math. 88, 315-326,
section 2: with s stages, damping eps = 2/13, w0 = 1 + eps / s^2, w1 = T_s'(w0) / T_s''(w0),
b_j = T_j''(w0) / T_j'(w0)^2, b_0 = b_1 = b_2,

  Y_1 = y0 + b_1 w1 h F_0,
  Y_j = (1 - mu_j - nu_j) y0 + mu_j Y_{j-1} + nu_j Y_{j-2} + mu~_j h F_{j-1} + gamma~_j h F_0,
  mu_j = 2 b_j w0 / b_{j-1}, nu_j = -b_j / b_{j-2}, mu~_j = 2 b_j w1 / b_{j-1}, gamma~_j = -(1 - b_{j-1} T_{j-1}(w0)) mu~_j.

The error estimate is 0.8 (y0 - y1) + 0.4 h (F_0 + F_s), F_s = f(y1)."""

import pathlib
import re
import sys
from fractions import Fraction as F

STAGES = (8, 20)


def coefficients(s):
    """a [s + 1][j < i] and the error's weights [s + 1]; row s is y1."""
    w0 = 1 + F(2, 13) / s**2
    t, dt, ddt = [F(1), w0], [F(0), F(1)], [F(0), F(0)]  # T_j(w0) and its derivatives
    for j in range(2, s + 1):
        t.append(2 * w0 * t[j - 1] - t[j - 2])
        dt.append(2 * t[j - 1] + 2 * w0 * dt[j - 1] - dt[j - 2])
        ddt.append(4 * dt[j - 1] + 2 * w0 * ddt[j - 1] - ddt[j - 2])
    w1 = dt[s] / ddt[s]
    b = [F(0), F(0)] + [ddt[j] / dt[j] ** 2 for j in range(2, s + 1)]
    b[0] = b[1] = b[2]
    rows = [[F(0)] * s for _ in range(s + 1)]
    rows[1][0] = b[1] * w1
    for j in range(2, s + 1):
        mu, nu, step = 2 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2], 2 * b[j] * w1 / b[j - 1]
        rows[j] = [mu * x + nu * y for x, y in zip(rows[j - 1], rows[j - 2])]
        rows[j][j - 1] += step
        rows[j][0] -= (1 - b[j - 1] * t[j - 1]) * step
    error = [F(-4, 5) * x for x in rows[s]] + [F(2, 5)]
    error[0] += F(2, 5)
    return [row[:i] for i, row in enumerate(rows)], error


def wrapped(numbers, indent, first):
    """Numbers in braces, broken at 120 columns; `first` is what stands before them."""
    lines, line = [], first + "{"
    for i, x in enumerate(numbers):
        item = repr(float(x)) + ("," if i + 1 < len(numbers) else "}")
        if len(line) + len(item) + 1 > 119:
            lines.append(line)
            line = " " * indent + item
        else:
            line += ("" if line.endswith("{") else " ") + item
    return lines + [line + ("}" if not numbers else "")]


def table(s):
    a, error = coefficients(s)
    nodes = [sum(row, F(0)) for row in a]
    assert nodes[s] == 1 and sum(a[s][j] * nodes[j] for j in range(s)) == F(1, 2)
    text = [f"    return with_hermite<{s + 1}>({{"] + wrapped(nodes, 14, "        .c = ")
    text[-1] += ","
    for i, row in enumerate(a):
        text += wrapped(row, 15, "        .a = {" if i == 0 else "              ")
        text[-1] += "," if i < s else "},"
    text += wrapped(error, 18, "        .error = ")
    text[-1] += ","
    return "\n".join(text + ["    });"])


def main():
    wrong = 0
    for s in STAGES:
        path = pathlib.Path(__file__).parent / f"rkc{s}.h"
        text = path.read_text()
        begin, end = text.index("    return with_hermite<"), text.index("    });") + len("    });")
        held, derived = (re.sub(r"\s+", "", x) for x in (text[begin:end], table(s)))
        if held == derived:
            print(f"rkc{s}: the header holds the derived coefficients")
        elif "--write" in sys.argv:
            path.write_text(text[:begin] + table(s) + text[end:])
        else:
            wrong += 1
            print(f"rkc{s}: the header differs from what is derived")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
