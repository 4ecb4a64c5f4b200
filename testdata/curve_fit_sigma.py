"""Prints the numbers that lockstep/cli/measurement_sigma_test.py compares with: SciPy's curve_fit, absolute_sigma=True, of
two rate constants to measurements of which each has a standard deviation and some are missing.

A -> B -> C from A = 1, B = 0 by its closed form. With --data prints the measurements: the closed form at k1 = 0.5,
k2 = 0.2, noise of the standard deviations that stand beside them, four digits.
"""
import sys

import numpy as np

TIMES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0]


def concentrations(t, k1, k2):
    """A and B [time, component]."""
    a = np.exp(-k1 * t)
    return np.stack([a, k1 / (k2 - k1) * (a - np.exp(-k2 * t))], axis=-1)


def fitted(csv):
    """Values, standard errors, correlation and reduced chi-square of k1, k2 from the text of a table t,A,dA,B,dB."""
    from scipy.optimize import curve_fit

    rows = [[float(x) if x else np.nan for x in line.split(",")] for line in csv.split()[1:]]
    t, a, da, b, db = np.array(rows)[1:].T  # the first is where the reaction starts, taken to be exact
    data, sigma = np.stack([a, b], axis=-1).ravel(), np.stack([da, db], axis=-1).ravel()
    there = ~np.isnan(data)
    found, covariance = curve_fit(lambda t, k1, k2: concentrations(t, k1, k2).ravel()[there], t, data[there], [0.3, 0.1],
                                  sigma[there], absolute_sigma=True, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    # curve_fit's derivatives are differences, good to some 1e-7: its covariance from those of the closed form.
    h = 1e-5
    by = np.stack([(concentrations(t, *(found + d)) - concentrations(t, *(found - d))).ravel()[there] / (2 * h) /
                   sigma[there] for d in h * np.eye(2)], axis=-1)
    exact = np.linalg.inv(by.T @ by)
    np.testing.assert_allclose(covariance, exact, rtol=1e-5)
    errors = np.sqrt(np.diag(exact))
    residual = ((concentrations(t, *found).ravel() - data) / sigma)[there]
    return found, errors, exact[0, 1] / (errors[0] * errors[1]), residual @ residual / (there.sum() - 2)


def table():
    random = np.random.default_rng(1889)
    lines = ["t,A,dA,B,dB"]
    for i, (t, exact) in enumerate(zip(TIMES, concentrations(np.array(TIMES), 0.5, 0.2))):
        sigma = np.round(0.005 + 0.03 * exact, 4)
        measured = np.round(exact + sigma * random.standard_normal(2) * (i > 0), 4) + 0.0
        cells = [f"{x:.4g},{s:.4g}" for x, s in zip(measured, sigma)]
        if i in (3, 8):
            cells[0] = ","
        if i in (5,):
            cells[1] = ","
        lines.append(",".join([f"{t:g}", *cells]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--data" in sys.argv:
        print(table(), end="")
    else:
        import scipy

        found, errors, correlation, chi_square = fitted(table())
        print("SciPy", scipy.__version__)
        print("values", ", ".join(f"{x:.10g}" for x in found), " errors", ", ".join(f"{x:.8g}" for x in errors),
              f" correlation {correlation:.8g}  reduced chi-square {chi_square:.8g}")
