"""Heat transport in a tokamak from Python: the equations of tokamak_transport.cpp, the net asked in place on NumPy arrays.

    python examples/tokamak_transport/tokamak_transport.py --draw tokamak.png     # needs matplotlib
"""
import argparse
import pathlib
import time

import numpy as np

import lockstep

HERE = pathlib.Path(__file__).resolve().parent
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("model", nargs="?", default=str(HERE.parents[1] / "testdata/qlknn_7_11_tanh_10_133x5_8.safetensors"))
parser.add_argument("--cells", type=int, default=64)
parser.add_argument("--end", type=float, default=0.5, help="seconds")
parser.add_argument("--dt", type=float, default=1e-3, help="seconds")
parser.add_argument("--draw", help="picture of the profiles")
parser.add_argument("--quick", action="store_true", help="32 cells, steps of 2 ms")
args = parser.parse_args()
if args.quick:
    args.cells, args.dt = 32, 2e-3

CHARGE, PROTON, ELECTRON = 1.602176634e-19, 1.67262192e-27, 9.1093837e-31
KEV = 1e3 * CHARGE
R, A, B = 3.0, 1.0, 3.0             # m, m, T
ION = 2 * PROTON                    # deuterium
POWER = {"ions": 6e6, "electrons": 4e6}  # W
EDGE, T_EDGE = 0.95, 0.5            # r/a, keV
LEAST, ADDED = 0.2, 20.0            # m2/s: by collisions; for stability, taken away again


def density(x):
    return 6e19 * (1 - 0.35 * x * x)


def safety_factor(x):
    return 1 + 2.2 * x * x


h = EDGE * A / args.cells
middle = (np.arange(args.cells) + 0.5) * h
outer = (np.arange(args.cells) + 1.0) * h   # each cell's outer face; the last is the edge
area = 4 * np.pi**2 * R * outer
volume = 2 * np.pi**2 * R * (outer**2 - (outer - h)**2)
n_cell, n_face, x = density(middle / A), density(outer / A), outer / A
shape = np.exp(-(middle / A / 0.3)**2) * volume
heating = {name: power * shape / shape.sum() for name, power in POWER.items()}

net = lockstep.load(args.model)
features = net.inputs[0]["features"]
lowest, highest = (np.array([feature[end] for feature in features]) for end in ("minimum", "maximum"))


def collision_time(n, t):
    """Of electrons, s; t in keV (Wesson, Tokamaks, section 14.5)."""
    return 1.09e16 * t**1.5 / (n * 17)


def on_faces(t):
    """Value (keV) and slope (keV/m) at each cell's outer face."""
    return np.append((t[:-1] + t[1:]) / 2, T_EDGE), np.append((t[1:] - t[:-1]) / h, (T_EDGE - t[-1]) / (h / 2))


def fluxes(state):
    """W/m2 through each cell's outer face: QLKNN's turbulence, in gyro-Bohm units, and collisions."""
    (ti, slope_i), (te, slope_e) = on_faces(state["ions"]), on_faces(state["electrons"])
    q, peaking = safety_factor(x), R / A * 6e19 * 0.7 * x / n_face
    bounce = q * R / (outer / R)**1.5 / np.sqrt(te * KEV / ELECTRON)
    asked = np.column_stack([-R * slope_i / ti, -R * slope_e / te, peaking, peaking, q, 4.4 * x * x / q, x, ti / te,
                             np.log10(bounce / collision_time(n_face, te)), np.ones_like(x)])
    answers = net(np.clip(asked, lowest, highest))
    itg, tem, etg = (np.maximum(answers[:, i], 0) for i in (0, 2, 5))
    t = ti * KEV
    unit = n_face * t / A * np.sqrt(ION) * t**1.5 / ((CHARGE * B)**2 * A)
    return {"ions": unit * (itg + tem * answers[:, 3]) - n_face * LEAST * KEV * slope_i,
            "electrons": unit * (itg * answers[:, 1] + tem + etg) - n_face * LEAST * KEV * slope_e}


conductance = area * n_face * ADDED * KEV / np.append(np.full(args.cells - 1, h), h / 2)
capacity = 1.5 * n_cell * KEV * volume / args.dt
matrix = np.diag(capacity + conductance + np.append(0, conductance[:-1]))
matrix -= np.diag(conductance[:-1], 1) + np.diag(conductance[:-1], -1)
inverse = np.linalg.inv(matrix)


def advance(t, q, sources):
    """The added diffusivity implicitly, what it would have carried explicitly away again."""
    outward = area * q - conductance * (t - np.append(t[1:], T_EDGE))
    right = capacity * t + sources + np.append(0, outward[:-1]) - outward
    right[-1] += conductance[-1] * T_EDGE
    return inverse @ right


start = T_EDGE + 0.5 * (1 - (middle / (EDGE * A))**2)
state = {"ions": start, "electrons": start}
shown = {}
steps = round(args.end / args.dt)
begin = time.perf_counter()
for i in range(steps):
    if i in (0, round(0.04 * steps), round(0.12 * steps), round(0.3 * steps)):
        shown[i * args.dt] = state
    q = fluxes(state)
    ti, te = state["ions"], state["electrons"]
    from_electrons = 3 * ELECTRON / ION * n_cell / collision_time(n_cell, te) * (te - ti) * KEV * volume
    state = {"ions": advance(ti, q["ions"], heating["ions"] + from_electrons),
             "electrons": advance(te, q["electrons"], heating["electrons"] - from_electrons)}
seconds = time.perf_counter() - begin
shown[args.end] = state
lost = area[-1] * (q["ions"][-1] + q["electrons"][-1])
print(f"{args.end:.2f} s: ions {state['ions'][0]:.2f} keV, electrons {state['electrons'][0]:.2f} keV on the axis")
assert abs(lost / sum(POWER.values()) - 1) < 1e-3 or args.end < 0.3
print(f"heating {sum(POWER.values()) / 1e6:.2f} MW, through the edge {lost / 1e6:.2f} MW")
print(f"{steps} steps of {args.cells} faces: {1e6 * seconds / steps:.0f} us a step")

if args.draw:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, name in zip(axes, POWER):
        for number, (when, profile) in enumerate(shown.items()):
            axis.plot(middle / A, profile[name], color=plt.cm.viridis(number / len(shown)), label=f"{when:g} s")
        axis.set(title=name, xlabel="r / a", ylim=(0, None))
    axes[0].set_ylabel("temperature (keV)")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(args.draw)
    print(f"drew {args.draw}")
