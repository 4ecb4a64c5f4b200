"""Prints the numbers that lockstep/ode/parameter_uncertainty_test.cpp compares with: SciPy's curve_fit on hare and lynx.

Lotka-Volterra on 21 winters, states and their derivatives (variational equations) by DOP853 at 1e-12: once with the
initial state among the unknowns, once from the first winter's numbers.
"""
import numpy as np
import scipy
from scipy.integrate import solve_ivp
from scipy.optimize import curve_fit

HARE = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2,
        24.7]
LYNX = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
TIMES = np.arange(21.0)
DATA = np.array([HARE, LYNX]).T  # [time, component]


def solved(p, u0):
    """States [time, component] and their derivatives [time, component, (p, u0)]."""
    def f(t, y):
        (x, z), s = y[:2], y[2:].reshape(2, 6)
        a, b, c, d = p
        jacobian = np.array([[a - b * z, -b * x], [d * z, d * x - c]])
        by_p = np.array([[x, -x * z, 0, 0, 0, 0], [0, 0, -z, x * z, 0, 0]])
        return np.concatenate([[x * (a - b * z), z * (d * x - c)], (jacobian @ s + by_p).ravel()])

    s0 = np.hstack([np.zeros((2, 4)), np.eye(2)])
    y = solve_ivp(f, (0, 20), np.concatenate([u0, s0.ravel()]), "DOP853", TIMES, rtol=1e-12, atol=1e-12).y.T
    return y[:, :2], y[:, 2:].reshape(-1, 2, 6)


def show(name, model, derivative, data, start, **options):
    found, covariance = curve_fit(model, None, data, p0=start, jac=derivative, xtol=1e-14, ftol=1e-14, gtol=1e-14,
                                  **options)
    errors = np.sqrt(np.diag(covariance))
    print(name, "values ", ", ".join(f"{x:.12g}" for x in found))
    print(name, "errors ", ", ".join(f"{x:.9g}" for x in errors))
    print(name, "correlations", ", ".join(f"{x:.9g}" for x in (covariance / np.outer(errors, errors))[:4, :4].ravel()))


START = [0.5, 0.025, 0.9, 0.03]
print("SciPy", scipy.__version__)
show("free", lambda _, *q: solved(q[:4], q[4:])[0].ravel(),
     lambda _, *q: solved(q[:4], q[4:])[1].reshape(-1, 6), DATA.ravel(), START + [35, 4], method="lm")
show("fixed", lambda _, *q: solved(q, DATA[0])[0][1:].ravel(),
     lambda _, *q: solved(q, DATA[0])[1][1:, :, :4].reshape(-1, 4), DATA[1:].ravel(), START, method="lm")
sigma = np.tile([3.0, 2.0], 21)
show("sigma", lambda _, *q: solved(q[:4], q[4:])[0].ravel(),
     lambda _, *q: solved(q[:4], q[4:])[1].reshape(-1, 6), DATA.ravel(), START + [35, 4], method="lm", sigma=sigma)
