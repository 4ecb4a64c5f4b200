"""A reader of result files as docs/files.md lets one write it, and the files that its tests read.

A test program of the page imports this; argv[2:5] are FILES.md EXAMPLE MODEL.safetensors.
"""
import pathlib
import shutil
import sys

from tool_test import LORENZ, ToolTest, h5py, np

PAGE, EXAMPLE, MODEL = (pathlib.Path(word).resolve() for word in sys.argv[2:5])

# Everything that has a row of its own for each trajectory, and an event.
OWN = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = 100
initial_state = { normal = { mean = [1, 0, 0], std = 0.1 } }
parameters = { rho = { linspace = { low = 20, high = 28 } } }
[time]
span = { start = 0, end = { linspace = { low = 1, high = 2 } } }
save = 5
[event]
component = "z"
value = 40
[output]
file = "own.h5"
"""
# Doses: of each trajectory's own size, and of some trajectories alone.
DOSED = LORENZ.replace("lorenz.h5", "dosed.h5") + """
[[impulses]]
component = "x"
change = { box = [0, 1] }
times = [0.5, 1]
[[impulses]]
component = "z"
factor = 0.5
times = 0.75
"""
UNEVEN = LORENZ.replace("lorenz.h5", "uneven.h5") + """
[[impulses]]
file = "doses.csv"
"""
# States that change at events: at a component's value, and where an expression crosses zero.
RESET = LORENZ.replace("lorenz.h5", "reset.h5") + """
[[resets]]
component = "z"
value = 35
direction = "rising"
to = { z = 20 }
[[resets]]
function = "x + 2 * t"
to = { x = "rho / 2", y = "-y" }
""".replace("[[resets]]", "events = true\n[[resets]]", 1)
DOSES = "trajectory,time,component,change\n7,0.5,y,1\n7,0.25,x,2\n99,1,z,3\n"
NET = """
[rhs]
model = "net.safetensors"
[ensemble]
trajectories = 40
initial_state = { normal = { mean = [1, 0, 0], std = 0.1 } }
[time]
span = [0, 1]
save = 11
[output]
file = "net.h5"
"""
ENDLESS = LORENZ.replace("trajectories = 100", "trajectories = 1000000").replace("span = [0, 2]", "span = [0, 50]")

STATUS = ["success", "terminated", "step_too_small", "not_finite", "too_many_steps", "outside_range", "cancelled"]


class Reader:
    """A reader as the page lets one write it."""

    def __init__(self, path):
        self.file = h5py.File(path, "r")
        attributes = self.file.attrs
        if attributes["lockstep_format"] != "ensemble 1":
            raise ValueError("another layout")
        for name in attributes.get("index_files", []):
            part = pathlib.Path(path).parent / name
            if not part.exists():
                raise FileNotFoundError(part)
            with h5py.File(part, "r") as behind:
                if behind.attrs["problem_digest"] != attributes["problem_digest"]:
                    raise ValueError("a part of another run")
        self.components = [name.decode() for name in self.file["component"][:]]
        self.state = self.file["state"]
        self.finished = self.file["status"][:] != STATUS.index("cancelled")

    def times(self, row):
        time = self.file["time"]
        return time[:] if time.ndim == 1 else time[row]

    def parameters(self, row):
        if "parameters" not in self.file:
            return {}
        values = self.file["parameters"]
        names = [name.decode() for name in self.file["parameter"][:]]
        return dict(zip(names, values[:] if values.ndim == 1 else values[row]))

    def impulses(self, row):
        """[(time, component, change, factor)]"""
        if "impulse_time" not in self.file:
            return []
        columns = [self.file["impulse_" + name] for name in ("time", "component", "change", "factor")]
        if "impulse_trajectory" in self.file:
            own = self.file["impulse_trajectory"][:] == self.file["trajectory"][row]
            return list(zip(*(column[:][own] for column in columns)))
        return list(zip(*(column[:] if column.ndim == 1 else column[row] for column in columns)))

    def events(self, row):
        """[(time, reset)]"""
        own = self.file["event_trajectory"][:] == self.file["trajectory"][row]
        return list(zip(self.file["event_time"][own], self.file["event_reset"][own]))


def items(file):
    """{path: object} below the root."""
    found = {}
    file.visititems(lambda name, item: found.update({name: item}))
    return found


class PageTest(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        shutil.copy(MODEL, self.path("net.safetensors"))
        for name, text in (("lorenz", LORENZ), ("own", OWN), ("net", NET), ("endless", ENDLESS), ("dosed", DOSED),
                           ("uneven", UNEVEN), ("reset", RESET)):
            self.path(name + ".toml").write_text(text)
        self.path("doses.csv").write_text(DOSES)

    def make_all(self):
        """Every kind of file: whole, own rows, of a net, with impulses, with resets, certified, shards, merged, index."""
        self.succeed("solve", "lorenz.toml", "--certificate", "--quiet")
        self.succeed("solve", "own.toml", "--precision", "f64", "--quiet")
        self.succeed("solve", "net.toml", "--quiet")
        for name in ("dosed", "uneven", "reset"):
            self.succeed("solve", name + ".toml", "--quiet")
        for index in (1, 2, 3):
            self.succeed("solve", "lorenz.toml", "--certificate", "--shard", f"{index}/3", "--quiet")
        shards = sorted(self.folder.glob("lorenz.shard-*.h5"))
        self.succeed("merge", *shards, "--output", "merged.h5", "--quiet")
        self.succeed("merge", *shards, "--output", "index.h5", "--index", "--quiet")
        return sorted(self.folder.glob("*.h5"))
