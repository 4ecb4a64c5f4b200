"""One problem, solved with every instruction set, 1, 2 and 5 threads, whole, split in two and in reverse order: the bytes
of `state` in the result files must be the same.  usage: same_bits.py LOCKSTEP MODEL FOLDER
Exit code 77 without h5py: skipped, not passed."""
import itertools
import os
import subprocess
import sys

from tool_test import TOOL, cpu_targets, h5py, np

model, folder = sys.argv[2:]
os.makedirs(folder, exist_ok=True)

PROBLEM = """
[rhs]
model = "{model}"
activations = "tanh,identity"
[ensemble]
initial_state = {{ file = "{starts}", dataset = "u0" }}
[time]
span = [0, 1]
save = 21
[method]
name = "{method}"
precision = "{precision}"
rtol = 1e-6
atol = 1e-6
"""


def path(name):
    return os.path.join(folder, name)


def solve(name, starts, method, precision, target, threads):
    with h5py.File(path(name + "_starts.h5"), "w") as f:
        f["u0"] = starts
    with open(path(name + ".toml"), "w") as f:
        f.write(PROBLEM.format(model=model, starts=name + "_starts.h5", method=method, precision=precision))
    subprocess.run([TOOL, "solve", path(name + ".toml"), "--output", path(name + ".h5"), "--overwrite",
                    "--cpu-target", target, "--threads", str(threads)], check=True, stdout=subprocess.DEVNULL)
    with h5py.File(path(name + ".h5")) as f:
        assert not f["status"][:].any(), "every trajectory should succeed"
        return f["state"][:]


starts = np.random.default_rng(1).normal(0, 0.1, (101, 3)) + [1, 0, 0]
targets = cpu_targets()
compared = 0
for method, precision in (("tsit5", "f32"), ("dop853", "f64")):
    reference = solve("reference", starts, method, precision, "scalar", 1).tobytes()
    assert len(set(reference)) > 100, "the states should not all be alike"
    for target, threads in itertools.product(targets, (1, 2, 5)):
        how = (method, precision, target, threads)
        whole = solve("whole", starts, *how)
        halves = [solve("half", part, *how) for part in (starts[:45], starts[45:])]
        backwards = solve("reversed", starts[::-1], *how)[::-1]
        for name, state in ("whole", whole), ("split", np.concatenate(halves)), ("reversed", backwards):
            assert np.ascontiguousarray(state).tobytes() == reference, f"{name} batch differs with {how}"
            compared += 1
print(f"{compared} solves on {', '.join(targets)}: the same bytes")
