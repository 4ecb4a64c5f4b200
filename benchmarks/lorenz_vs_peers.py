#!/usr/bin/env python3
"""The classic Lorenz ensemble against heyoka, diffrax and JAX written by hand, in one run.

sigma 10, beta 8/3, rho evenly spaced on 0..21, all trajectories from (1, 0, 0), t 0..1, only the end state kept.
Workload lorenz_f64_adaptive: float64, adaptive, compared at equal error; lorenz_f32_fixed: 1,000 steps of 1e-3.
Errors are the largest difference from a Taylor series in extended precision, over at most 64 trajectories.

    python3 benchmarks/lorenz_vs_peers.py --threads 1 --sizes 65536,1048576
"""
import pairing

args = pairing.start(__doc__.split("\n")[0], [65536, 1048576])

import numpy as np

SIGMA, BETA, STEPS = 10.0, 8.0 / 3.0, 1000
ERROR_BOUNDS = [2.2e-5, 3e-8, 1e-12]


def taylor_end_states(rho, order=24, steps=200):
    """End states [member][3] at t = 1 by Taylor series in long double (64-bit mantissa).

    The coefficients follow from the products of the series; with a step of 1/200 and |y| radius of convergence
    above 0.1 the truncation is below (0.005 / 0.1)^24, so that rounding, some 1e-18 times the growth, remains.
    """
    wide = np.longdouble
    rho = rho.astype(wide)
    sigma, beta, h = wide(10), wide(8) / wide(3), wide(1) / wide(steps)
    x, y, z = np.ones_like(rho), np.zeros_like(rho), np.zeros_like(rho)
    for _ in range(steps):
        cx, cy, cz = [x], [y], [z]
        for k in range(order):
            xz = sum(cx[i] * cz[k - i] for i in range(k + 1))
            xy = sum(cx[i] * cy[k - i] for i in range(k + 1))
            cx.append(sigma * (cy[k] - cx[k]) / (k + 1))
            cy.append((rho * cx[k] - xz - cy[k]) / (k + 1))
            cz.append((xy - beta * cz[k]) / (k + 1))
        x, y, z = (sum(c * h**k for k, c in enumerate(series)) for series in (cx, cy, cz))
    return np.stack([x, y, z], -1)


def error_against_reference(n, rho):
    """A function from end states [n][3] to the largest error, for the rho values as the peer was given them."""
    members = np.unique(np.linspace(0, n - 1, min(n, 64)).astype(int))
    reference = taylor_end_states(rho[members])
    return lambda end: float(np.max(np.abs(end[members] - reference)))


def lorenz(x, y, z, rho):
    return SIGMA * (y - x), x * (rho - z) - y, x * y - BETA * z


def heyoka_adaptive(rows, n, rho, error):
    """Taylor's method, `lanes` trajectories in one SIMD group; Python's call for each group is in the time."""
    import heyoka as hy
    x, y, z = hy.make_vars("x", "y", "z")
    system = list(zip((x, y, z), lorenz(x, y, z, hy.par[0])))
    lanes = 4 * hy.recommended_simd_size(np.float64)
    groups = -(-n // lanes)
    padded = np.concatenate([rho, np.full(groups * lanes - n, rho[-1])]).reshape(groups, lanes)
    out = np.empty((groups, lanes, 3))
    for tolerance in (1e-4, 1e-6, 1e-8, 1e-10, 1e-13):
        integrator = hy.taylor_adaptive_batch(system, np.zeros((3, lanes)), pars=np.zeros((1, lanes)), tol=tolerance)

        def advance(own, first, stride):
            for group in range(first, groups, stride):
                own.set_time(0.0)
                own.state[0], own.state[1], own.state[2] = 1, 0, 0
                own.pars[0] = padded[group]
                own.propagate_until(1.0)
                out[group] = own.state.T

        def solve():
            if args.threads == 1:
                advance(integrator, 0, 1)
            else:
                import copy
                from concurrent.futures import ThreadPoolExecutor
                with ThreadPoolExecutor(args.threads) as pool:
                    list(pool.map(lambda k: advance(copy.deepcopy(integrator), k, args.threads), range(args.threads)))
            return out.reshape(-1, 3)[:n]
        rows.peer("lorenz_f64_adaptive", f"heyoka-taylor-lanes{lanes}", hy.__version__, n, solve, error,
                  tolerance=tolerance)


def diffrax_solver(solve_one):
    """Jit of a diffrax solve of one trajectory (or of arrays), its end states stacked [..., 3]."""
    import diffrax
    import jax
    import jax.numpy as jnp

    def run(rho, y0, controller, dt0):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, u, r: lorenz(*u, r)), diffrax.Tsit5(), 0.0, 1.0, dt0, y0, args=rho,
            stepsize_controller=controller, saveat=diffrax.SaveAt(t1=True), max_steps=None,
            adjoint=diffrax.ForwardMode(), throw=False)
        return jnp.stack([component[0] for component in solution.ys], -1)
    return jax.jit(lambda rho: solve_one(run, rho))


def diffrax_adaptive(rows, n, rho, error):
    import diffrax
    import jax
    import jax.numpy as jnp
    given = jnp.asarray(rho)
    for tolerance in (1e-6, 1e-8):
        controller = diffrax.PIDController(rtol=tolerance, atol=tolerance)
        solve = diffrax_solver(lambda run, r: jax.vmap(
            lambda one: run(one, (jnp.ones(()), jnp.zeros(()), jnp.zeros(())), controller, None))(r))
        rows.peer("lorenz_f64_adaptive", "diffrax-tsit5-vmap", diffrax.__version__, n,
                  lambda: np.asarray(solve(given)), error, tolerance=tolerance)


def diffrax_fixed(rows, n, rho, error):
    import diffrax
    import jax.numpy as jnp
    given = jnp.asarray(rho)

    def whole(run, r):
        one = jnp.ones_like(r)
        return run(r, (one, 0 * one, 0 * one), diffrax.ConstantStepSize(), 1.0 / STEPS)
    solve = diffrax_solver(whole)
    rows.peer("lorenz_f32_fixed", "diffrax-tsit5-batched", diffrax.__version__, n, lambda: np.asarray(solve(given)),
              error)


def jax_fixed(rows, n, rho, error):
    """RK4 written out in one loop over all trajectories, or over tiles that stay in cache."""
    import jax
    import jax.numpy as jnp
    given = jnp.asarray(rho)
    h = 1.0 / STEPS

    def shifted(u, a, k):
        return tuple(ui + a * ki for ui, ki in zip(u, k))

    def run(rho):
        def step(_, u):
            k1 = lorenz(*u, rho)
            k2 = lorenz(*shifted(u, h / 2, k1), rho)
            k3 = lorenz(*shifted(u, h / 2, k2), rho)
            k4 = lorenz(*shifted(u, h, k3), rho)
            return tuple(ui + (h / 6) * (a + 2 * (b + c) + d) for ui, a, b, c, d in zip(u, k1, k2, k3, k4))
        one = jnp.ones_like(rho)
        return jnp.stack(jax.lax.fori_loop(0, STEPS, step, (one, 0 * one, 0 * one)), -1)

    variants = {"jax-by-hand-rk4": jax.jit(run)}
    for tile in (512, 2048):
        if n > tile and n % tile == 0:
            variants[f"jax-by-hand-rk4-tile{tile}"] = jax.jit(
                lambda rho, tile=tile: jax.lax.map(run, rho.reshape(-1, tile)).reshape(n, 3))
    for name, solve in variants.items():
        rows.peer("lorenz_f32_fixed", name, jax.__version__, n, lambda: np.asarray(solve(given)), error)


def main():
    rows = pairing.Rows(args)
    rows.fma_peak()
    have_jax, have_heyoka = pairing.importable("jax", "diffrax"), pairing.importable("heyoka")
    if have_jax:
        import jax
        jax.config.update("jax_enable_x64", True)
    peers = {"lorenz_f64_adaptive": (np.float64, [heyoka_adaptive] * have_heyoka + [diffrax_adaptive] * have_jax),
             "lorenz_f32_fixed": (np.float32, [jax_fixed, diffrax_fixed] if have_jax else [])}
    for workload, (dtype, programs) in peers.items():
        if not pairing.wanted(args.workloads, workload):
            continue
        if have_jax:
            jax.config.update("jax_enable_x64", dtype == np.float64)
        for n in args.sizes:
            rho = np.linspace(0.0, 21.0, n).astype(dtype)
            error = error_against_reference(n, rho)
            rows.ours(workload, n)
            for program in programs:
                program(rows, n, rho, error)
                rows.ours(workload, n)
    rows.table({"lorenz_f64_adaptive": ERROR_BOUNDS})


if __name__ == "__main__":
    main()
