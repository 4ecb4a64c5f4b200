"""JAX and diffrax on a GPU: nets, and adaptive and fixed solves both by diffrax and written by hand."""
import gc
import sys
import time

import numpy as np

from gpu_peers_data import (BETA, NETS, SIGMA, TSIT5_E, Clock, accept, advance, first_step, lorenz_figures,
                            lorenz_reference, make_net, mlp_figures, neural_figures, neural_reference, neural_states,
                            neural_weights, numpy_mlp, short, tsit5_dense, tsit5_step, wall_samples, weighted)


class JaxPeers:
    PRECISION = {"tf32": "tensorfloat32", "bf16": "default"}

    def __init__(self, args):
        import jax
        self.args, self.jax = args, jax
        device = jax.devices()[0]
        if args.platform == "gpu" and device.platform != "gpu":
            raise RuntimeError(f"jax sees no GPU, only {device.platform}")
        self.device_name = device.device_kind if device.platform == "gpu" else "cpu"
        self.versions = dict(jax=jax.__version__)
        for name in ("diffrax", "equinox"):
            try:
                self.versions[name] = __import__(name).__version__
            except Exception as e:
                self.versions[name] = None
                print(f"{name}: {e}", file=sys.stderr)
        self.clock = Clock(args, wall_samples(jax.block_until_ready))
        jax.block_until_ready(jax.numpy.ones(1))

    def prepare(self, row):
        precision = row["case"]["precision"]
        self.jax.config.update("jax_enable_x64", precision == "float64")
        self.jax.config.update("jax_default_matmul_precision",
                               self.PRECISION.get(precision, "highest"))

    def clean(self):
        gc.collect()  # arrays and programs of the last row; XLA keeps the memory for the next

    def mlp(self, row):
        jax, jnp = self.jax, self.jax.numpy
        n = row["size"]
        widths, act = NETS[row["case"]["net"]]
        layers = make_net(widths)
        dtype = jnp.bfloat16 if row["case"]["precision"] == "bf16" else jnp.float32
        params = [(jnp.asarray(w, dtype), jnp.asarray(b, dtype)) for w, b in layers]
        x = jax.random.normal(jax.random.key(n), (n, widths[0]), jnp.float32).astype(dtype)

        @jax.jit
        def forward(params, x):
            for i, (w, b) in enumerate(params):
                x = x @ w + b
                if i + 1 < len(params):
                    x = jax.nn.relu(x) if act == "relu" else jnp.tanh(x)
            return x
        fn = lambda: forward(params, x)
        timing = self.clock(fn)
        latency = []
        for _ in range(20 if n <= 4096 else 0):
            t0 = time.perf_counter()
            jax.block_until_ready(fn())
            latency.append(time.perf_counter() - t0)
        ref = numpy_mlp(layers, act, np.asarray(x[:64], np.float32))
        more = dict(max_abs_err=short(np.max(np.abs(np.asarray(fn()[:64], np.float32) - ref))))
        if latency:
            more["latency_us"] = short(1e6 * min(latency))
        return mlp_figures(timing, widths, n, more)

    def lorenz(self, row):
        jax, jnp = self.jax, self.jax.numpy
        n, tol, peer = row["size"], row["case"]["tol"], row["peer"]
        dtype = jnp.float64 if tol else jnp.float32
        rho = jnp.asarray(np.linspace(0.0, 21.0, n), dtype)

        def field(y, rho):
            x, v, z = y
            return (SIGMA * (v - x), x * (rho - z) - v, x * v - BETA * z)

        def start(like):
            one = jnp.ones_like(like)
            return (one, 0 * one, 0 * one)

        def fixed(rho):
            h = 1e-3
            f = lambda y: field(y, rho)

            def step(y, _):
                k1 = f(y)
                k2 = f(advance(y, h / 2, [1], [k1]))
                k3 = f(advance(y, h / 2, [1], [k2]))
                k4 = f(advance(y, h, [1], [k3]))
                return advance(y, h / 6, [1, 2, 2, 1], [k1, k2, k3, k4]), None
            y, _ = jax.lax.scan(step, start(rho), None, length=1000,
                                unroll=10 if "unroll10" in peer else 1)
            return y, jnp.int32(1000)

        def adaptive(rho):  # each member has its own step size
            f = lambda y: field(y, rho)
            last = lambda y: jnp.stack(y, -1)
            y = start(rho)
            k1 = f(y)

            def attempt(c):
                t, h, y, k1, count = c
                live = t < 1
                h = jnp.where(live, jnp.minimum(h, 1 - t), 0)
                y1, ks = tsit5_step(f, y, k1, h)
                squares = 0
                for i in range(3):
                    error = h * weighted(TSIT5_E, [k[i] for k in ks])
                    squares += (error / (tol + tol * jnp.maximum(jnp.abs(y[i]), jnp.abs(y1[i])))) ** 2
                norm = jnp.sqrt(squares / 3)
                ok = (norm <= 1) & live
                factor = jnp.clip(0.9 * jnp.maximum(norm, 1e-10) ** -0.2, 0.2, 10.0)
                pick = lambda a, b: tuple(jnp.where(ok, u, v) for u, v in zip(a, b))
                t = jnp.where(ok, jnp.where(h >= 1 - t, 1, t + h), t)
                return t, h * factor, pick(y1, y), pick(ks[6], k1), count + live
            split = lambda v: tuple(v[..., i] for i in range(3))
            h = first_step(lambda v: last(f(split(v))), last(y), last(k1), tol, jnp)
            c = (jnp.zeros_like(rho), h, y, k1, jnp.zeros(rho.shape, jnp.int32))
            c = jax.lax.while_loop(lambda c: jnp.any(c[0] < 1), attempt, c)
            return c[2], c[4]

        def by_diffrax(rho):
            import diffrax
            control = (diffrax.PIDController(rtol=tol, atol=tol) if tol
                       else diffrax.ConstantStepSize())
            sol = diffrax.diffeqsolve(
                diffrax.ODETerm(lambda t, y, rho: field(y, rho)), diffrax.Tsit5(), 0.0, 1.0,
                None if tol else 1e-3, start(rho), args=rho, stepsize_controller=control,
                saveat=diffrax.SaveAt(t1=True), max_steps=None, adjoint=diffrax.ForwardMode(),
                throw=False)
            return tuple(c[0] for c in sol.ys), sol.stats["num_steps"]
        if peer.startswith("diffrax"):
            solve = jax.jit(jax.vmap(by_diffrax) if "vmap" in peer else by_diffrax)
        else:
            solve = jax.jit(adaptive if tol else fixed)
        timing = self.clock(lambda: solve(rho))
        y, steps = solve(rho)
        at, ref = lorenz_reference(n)
        error = max(np.max(np.abs(np.asarray(c[at]) - ref[:, i])) for i, c in enumerate(y))
        return lorenz_figures(timing, n, tol, error, np.asarray(steps))

    def neural(self, row):
        jax, jnp = self.jax, self.jax.numpy
        n, tol, peer = row["size"], row["case"]["tol"], row["peer"]
        layers, source = neural_weights()
        params = jax.tree.map(jnp.asarray, layers)
        y0 = neural_states(n)
        start, ts = jnp.asarray(y0), jnp.linspace(0.0, 1.0, 101)

        def net(y, p):
            (w0, b0), (w1, b1) = p
            return jnp.tanh(y @ w0 + b0) @ w1 + b1

        def fixed(y0, p):
            f = lambda y: net(y, p)

            def step(carry, _):
                y, ks = tsit5_step(f, *carry, 0.01)
                return (y, ks[6]), y
            _, ys = jax.lax.scan(step, (y0, f(y0)), None, length=100)
            return jnp.concatenate([y0[None], ys]), jnp.int32(100)

        def adaptive(y0, p):  # own step sizes; saved times interpolated as they are passed
            f = lambda y: net(y, p)
            lane = jnp.arange(len(y0))

            def attempt(c):
                t, h, y, k1, nxt, out, count = c
                live = t < 1
                h = jnp.where(live, jnp.minimum(h, 1 - t), 0)
                y1, ks = tsit5_step(f, y, k1, h[:, None])
                ok, factor = accept(y, y1, ks, h, tol, jnp)
                ok = ok & live
                after = jnp.where(h >= 1 - t, 1, t + h)

                def due(nxt):
                    return ok & (nxt < 101) & (ts[jnp.minimum(nxt, 100)] <= after)

                def save(c):
                    nxt, out = c
                    now = due(nxt)
                    s = (ts[jnp.minimum(nxt, 100)] - t) / jnp.where(ok, h, 1)
                    value = y + h[:, None] * weighted([b[:, None] for b in tsit5_dense(s)], ks)
                    out = out.at[jnp.where(now, nxt, 101), lane].set(value, mode="drop")
                    return nxt + now, out
                nxt, out = jax.lax.while_loop(lambda c: jnp.any(due(c[0])), save, (nxt, out))
                keep = ok[:, None]
                return (jnp.where(ok, after, t), h * factor, jnp.where(keep, y1, y),
                        jnp.where(keep, ks[6], k1), nxt, out, count + live)
            k1 = f(y0)
            out = jnp.zeros((101,) + y0.shape, y0.dtype).at[0].set(y0)
            c = (jnp.zeros(len(y0), y0.dtype), first_step(f, y0, k1, tol, jnp), y0, k1,
                 jnp.ones(len(y0), jnp.int32), out, jnp.zeros(len(y0), jnp.int32))
            c = jax.lax.while_loop(lambda c: jnp.any(c[0] < 1), attempt, c)
            return c[5], c[6]

        def by_diffrax(y0, p):
            import diffrax
            control = diffrax.PIDController(rtol=tol, atol=tol) if tol else diffrax.StepTo(ts)
            sol = diffrax.diffeqsolve(
                diffrax.ODETerm(lambda t, y, p: net(y, p)), diffrax.Tsit5(), 0.0, 1.0, None, y0,
                args=p, stepsize_controller=control, saveat=diffrax.SaveAt(ts=ts),
                adjoint=diffrax.ForwardMode(), max_steps=None, throw=False)
            return sol.ys, sol.stats["num_steps"]
        if peer == "diffrax-tsit5-vmap":
            solve = jax.jit(jax.vmap(by_diffrax, (0, None)))
        else:
            solve = jax.jit(by_diffrax if peer.startswith("diffrax") else adaptive if tol else fixed)
        timing = self.clock(lambda: solve(start, params))
        ys, steps = solve(start, params)
        at, ref = neural_reference(layers, y0)
        got = np.asarray(ys[at]).swapaxes(0, 1) if "vmap" in peer else np.asarray(ys[:, at])
        return neural_figures(timing, n, tol, np.max(np.abs(got - ref)), np.asarray(steps), source)
