#!/usr/bin/env python3
"""Losses that a training leaves, ours against other libraries' over seeds, from the same initial weights.

lorenz_adaptive, lorenz_fixed: net 3-100-3 tanh, sum of squared errors over the Lorenz trajectory (1, 0, 0), t 0..1 at
101 times, Tsit5 at 1e-6 or 100 fixed steps (torchdiffeq: dopri5, and rk4), 1,000 iterations of Adam at 0.01; the loss
is that before the last step. peaks: net 2-20-5-1 relu, 200 x 200 points, mean squared error, 2,000 epochs of Adam at
0.08; the loss is that of the last epoch, `best` the least on the way. peaks_falling: the same with a rate that grows to
0.08 over 200 epochs, then falls by a cosine to 0, in all libraries. All float32. Weights are Glorot's uniform ones
of numpy's default_rng(seed), biases zero. Libraries that are missing are left out, rows that the file has are not made
again, so that several interpreters can fill one file:

    python3 benchmarks/losses_vs_peers.py --json benchmarks/results/losses.json
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import pairing

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--seeds", type=int, default=5)
parser.add_argument("--peers", default="", help="substrings of peer names, comma separated (default all)")
parser.add_argument("--jobs", default="lorenz_adaptive,lorenz_fixed,peaks,peaks_falling")
parser.add_argument("--json", default="", help="rows known already; new ones are added")
parser.add_argument("--tool", default=os.path.join(pairing.ROOT, "build", "bin", "lockstep"))
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np

WIDTHS = {"lorenz_adaptive": (3, 100, 3), "lorenz_fixed": (3, 100, 3), "peaks": (2, 20, 5, 1),
          "peaks_falling": (2, 20, 5, 1)}
STEPS = {"lorenz_adaptive": 1000, "lorenz_fixed": 1000, "peaks": 2000, "peaks_falling": 2000}
RATE = {"lorenz_adaptive": 0.01, "lorenz_fixed": 0.01, "peaks": 0.08, "peaks_falling": 0.08}
WARM_UP = 200
TIMES = np.arange(101) / 100.0


def rate_of(job, step, where=np.where, cos=np.cos):
    """The learning rate, as lockstep's warm_up and cosine define it; `where` and `cos` of the library that asks."""
    if job != "peaks_falling":
        return RATE[job]
    falling = 0.5 * (1 + cos(np.pi * (step - WARM_UP) / (STEPS[job] - WARM_UP)))
    return RATE[job] * where(step < WARM_UP, (step + 1) / WARM_UP, falling)


def initial(job, seed):
    """[(weights [out][in], bias)]"""
    rng = np.random.default_rng(seed)
    pairs = zip(WIDTHS[job][:-1], WIDTHS[job][1:])
    return [(rng.uniform(-1, 1, (b, a)).astype(np.float32) * np.float32(np.sqrt(6 / (a + b))), np.zeros(b, np.float32))
            for a, b in pairs]


def lorenz():
    """[time][component] by the classical Runge-Kutta method at a step of 1e-4: within half a unit of float32."""
    field = lambda u: np.array([10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1], u[0] * u[1] - 8 / 3 * u[2]])
    u, h, rows = np.array([1.0, 0, 0]), 1e-4, []
    for i in range(10001):
        if i % 100 == 0:
            rows.append(u)
        a = field(u)
        b = field(u + h / 2 * a)
        c = field(u + h / 2 * b)
        u = u + h / 6 * (a + 2 * b + 2 * c + field(u + h * c))
    return np.array(rows).astype(np.float32)


def peaks():
    axis = np.linspace(-3, 3, 200)
    x, y = (a.ravel() for a in np.meshgrid(axis, axis))
    z = (3 * (1 - x)**2 * np.exp(-x**2 - (y + 1)**2) - 10 * (x / 5 - x**3 - y**5) * np.exp(-x**2 - y**2) -
         np.exp(-(x + 1)**2 - y**2) / 3)
    return np.stack([x, y], 1).astype(np.float32), z[:, None].astype(np.float32)


def ours(job, seed):
    import h5py
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        tensors = {}
        for i, (w, b) in enumerate(initial(job, seed)):
            tensors[f"{2 * i}.weight"], tensors[f"{2 * i}.bias"] = w, b
        surface = job.startswith("peaks")
        kind = "relu" if surface else "tanh"
        write_safetensors(at("start.safetensors"), tensors, ",".join([kind] * (len(tensors) // 2 - 1) + ["linear"]))
        with h5py.File(at("data.h5"), "w") as file:
            if surface:
                file["x"], file["z"] = peaks()
                data, more = 'inputs = "x"\ntargets = "z"', ""
                if job == "peaks_falling":
                    more = f'schedule = "cosine"\nwarm_up = {WARM_UP}\n'
            else:
                file["time"], file["state"] = TIMES, lorenz()[None]
                data = 'time = "time"\nstates = "state"'
                more = "[method]\n" + ("dt = 0.01\n" if job == "lorenz_fixed" else "rtol = 1e-6\natol = 1e-6\n")
        with open(at("train.toml"), "w") as file:
            file.write(f'[net]\nstart = "start.safetensors"\n[data]\nfile = "data.h5"\n{data}\n[training]\n'
                       f'rate = {RATE[job]}\niterations = {STEPS[job]}\n{more}[run]\nthreads = 1\n'
                       f'[output]\nfile = "net"\n')
        done = subprocess.run([args.tool, "train", "train.toml", "-q"], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        table = np.genfromtxt(at("net_loss.csv"), delimiter=",", names=True)
        return table["loss"]


def write_safetensors(path, tensors, activations):
    header, body = {"__metadata__": {"activations": activations}}, b""
    for name, value in tensors.items():
        data = np.ascontiguousarray(value, "<f4").tobytes()
        header[name] = dict(dtype="F32", shape=list(value.shape), data_offsets=[len(body), len(body) + len(data)])
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + body)


def jax_losses(loss, job, seed):
    """Losses before each step of optax's Adam."""
    import jax
    import jax.numpy as jnp
    import optax
    parameters = [(jnp.asarray(w), jnp.asarray(b)) for w, b in initial(job, seed)]
    optimiser = optax.adam(lambda step: rate_of(job, step, jnp.where, jnp.cos))

    @jax.jit
    def train(parameters, state):
        def step(carry, _):
            value, gradient = jax.value_and_grad(loss)(carry[0])
            updates, state = optimiser.update(gradient, carry[1])
            return (optax.apply_updates(carry[0], updates), state), value
        return jax.lax.scan(step, (parameters, state), None, length=STEPS[job])[1]
    return np.asarray(train(parameters, optimiser.init(parameters)))


def diffrax_lorenz(job, seed):
    import diffrax
    import jax.numpy as jnp
    times, data = jnp.asarray(TIMES, jnp.float32), jnp.asarray(lorenz())

    def field(t, y, p):
        (w0, b0), (w1, b1) = p
        return w1 @ jnp.tanh(w0 @ y + b0) + b1
    controller = (diffrax.StepTo(times) if job == "lorenz_fixed" else diffrax.PIDController(rtol=1e-6, atol=1e-6))

    def loss(p):
        solution = diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 1.0, None, data[0], args=p,
                                       stepsize_controller=controller, saveat=diffrax.SaveAt(ts=times),
                                       adjoint=diffrax.RecursiveCheckpointAdjoint(), max_steps=4096)
        return jnp.sum((solution.ys - data)**2)
    return jax_losses(loss, job, seed)


def jax_peaks(job, seed):
    import jax
    import jax.numpy as jnp
    x, z = (jnp.asarray(a) for a in peaks())

    def loss(p):
        h = x
        for i, (w, b) in enumerate(p):
            h = h @ w.T + b
            h = jax.nn.relu(h) if i < 2 else h
        return jnp.mean((h - z)**2)
    return jax_losses(loss, job, seed)


def torch_losses(job, seed, activation, make_loss):
    import torch
    torch.set_num_threads(1)
    modules = []
    for w, b in initial(job, seed):
        linear = torch.nn.Linear(w.shape[1], w.shape[0])
        linear.weight.data, linear.bias.data = torch.from_numpy(w), torch.from_numpy(b)
        modules += [linear, activation()]
    net = torch.nn.Sequential(*modules[:-1])
    optimiser = torch.optim.Adam(net.parameters(), lr=RATE[job])
    loss, losses = make_loss(net), []
    for step in range(STEPS[job]):
        optimiser.param_groups[0]["lr"] = float(rate_of(job, step))
        optimiser.zero_grad()
        value = loss()
        value.backward()
        optimiser.step()
        losses.append(value.item())
    return np.array(losses)


def torchdiffeq_lorenz(job, seed):
    import torch
    import torchdiffeq
    data, times = torch.from_numpy(lorenz()), torch.from_numpy(TIMES.astype(np.float32))
    how = (dict(method="rk4", options=dict(step_size=0.01)) if job == "lorenz_fixed"
           else dict(method="dopri5", rtol=1e-6, atol=1e-6))
    return torch_losses(job, seed, torch.nn.Tanh, lambda net: lambda: torch.sum(
        (torchdiffeq.odeint(lambda t, y: net(y), data[0], times, **how) - data)**2))


def torch_peaks(job, seed):
    import torch
    x, z = (torch.from_numpy(a) for a in peaks())
    return torch_losses(job, seed, torch.nn.ReLU, lambda net: lambda: torch.nn.functional.mse_loss(net(x), z))


PEERS = {"lockstep": (ours, ("h5py",), "lorenz_adaptive,lorenz_fixed,peaks,peaks_falling"),
         "diffrax": (diffrax_lorenz, ("jax", "diffrax", "optax"), "lorenz_adaptive,lorenz_fixed"),
         "jax": (jax_peaks, ("jax", "optax"), "peaks,peaks_falling"),
         "torchdiffeq": (torchdiffeq_lorenz, ("torch", "torchdiffeq"), "lorenz_adaptive,lorenz_fixed"),
         "torch": (torch_peaks, ("torch",), "peaks,peaks_falling")}
VERSION_OF = {"lockstep": None, "diffrax": "diffrax", "jax": "jax", "torchdiffeq": "torchdiffeq", "torch": "torch"}
rows = []
if args.json and os.path.exists(args.json):
    with open(args.json) as file:
        rows = json.load(file)
for job in args.jobs.split(","):
    for peer, (losses_of, needs, jobs) in PEERS.items():
        if job not in jobs.split(",") or not pairing.wanted(args.peers, peer) or not pairing.importable(*needs):
            continue
        for seed in range(args.seeds):
            if any((r["job"], r["peer"], r["seed"]) == (job, peer, seed) for r in rows):
                continue
            begin = time.perf_counter()
            losses = losses_of(job, seed)
            row = dict(job=job, peer=peer, seed=seed, steps=STEPS[job], loss=float(losses[-1]),
                       best=float(np.min(losses)), seconds=pairing.rounded(time.perf_counter() - begin))
            if VERSION_OF[peer]:
                row["version"] = sys.modules[VERSION_OF[peer]].__version__
            rows.append(row)
            print(json.dumps(row), flush=True)
            if args.json:
                with open(args.json, "w") as file:
                    file.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")

print(f"\n{'job':16} {'peer':12} {'least':>10} {'median':>10} {'most':>10}   each seed")
for job in STEPS:
    for peer in PEERS:
        losses = [r["loss"] for r in sorted(rows, key=lambda r: r["seed"]) if (r["job"], r["peer"]) == (job, peer)]
        if losses:
            print(f"{job:16} {peer:12} {min(losses):10.5g} {statistics.median(losses):10.5g} {max(losses):10.5g}   "
                  + " ".join(f"{x:.5g}" for x in losses))
