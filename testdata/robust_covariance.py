"""Records what huber_test.cpp compares with: an M-estimate of Huber and its standard errors, by statsmodels.

usage: python3 robust_covariance.py, with statsmodels 0.15.0.
u = a t + b t^2 is linear in a and b. The scale that RLM ends with is the sigma of the test.
"""
import numpy as np
import statsmodels.api as sm

T = np.arange(1, 21) / 4
U = np.array([0.61, 0.98, 1.65, 2.12, 2.53, 3.01, 9.4, 3.6, 4.02, 4.21, 4.44, 4.85, 5.03, 5.02, -1.2, 5.37, 5.49, 5.38, 5.62,
              7.1])

model = sm.RLM(U, np.stack([T, T**2], 1), M=sm.robust.norms.HuberT(1.345))
found = model.fit(cov="H1", tol=1e-14, maxiter=1000)
with np.printoptions(precision=15):
    print("scale", repr(found.scale))
    print("a, b", found.params)
    print("standard errors", found.bse)
