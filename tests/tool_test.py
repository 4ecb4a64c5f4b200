"""What the tests of the tool from outside share: a folder of their own, the tool run in it, answers judged.

A test program imports this first: exit code 77 without h5py (skipped, not passed). argv[1] is the tool.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}; install python3-h5py", file=sys.stderr)
    sys.exit(77)

TOOL = pathlib.Path(sys.argv[1]).resolve()

LORENZ = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = 100
seed = 3
initial_state = { normal = { mean = [1, 0, 0], std = 0.1 } }
[time]
span = [0, 2]
save = 21
[output]
file = "lorenz.h5"
"""
# Long enough to be interrupted on any machine.
ENDLESS = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = 1000000
[time]
span = [0, 200]
[method]
max_steps = 1000000000
precision = "f64"
[output]
file = "endless.h5"
"""
# With NetTest's net.
NET = """
[rhs]
model = "net.safetensors"
components = ["x", "y", "z"]
[ensemble]
trajectories = 100
initial_state = { normal = { mean = [1, 0, 0], std = 0.1 } }
[time]
span = [0, 1]
save = 11
[output]
file = "net.h5"
"""


def safetensors(tensors, metadata=None):
    """The bytes of a file with {name: array} as float32."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, values in tensors.items():
        raw = np.asarray(values, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(np.shape(values)), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def cpu_targets():
    """The instruction sets this build runs here, as the tool names them when asked for another machine's."""
    with tempfile.TemporaryDirectory(prefix="lockstep-test-") as folder:
        problem = pathlib.Path(folder) / "lorenz.toml"
        problem.write_text(LORENZ)
        found = subprocess.run([TOOL, "solve", problem, "--cpu-target",
                                "neon" if os.uname().machine == "x86_64" else "avx2"],
                               cwd=folder, capture_output=True, text=True, timeout=120).stderr
    targets = [target for target in ("scalar", "avx2", "avx512", "neon") if target in found.split("(")[-1]]
    assert len(targets) >= 2, found
    return targets


class ToolTest(unittest.TestCase):
    silent = True  # a success says nothing on standard error
    one_line = True  # an error is one line and nothing else on standard error
    timeout = 120  # s, of one call

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lockstep-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def path(self, name):
        return self.folder / name

    def write(self, name, content):
        self.path(name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def run_tool(self, *arguments, **options):
        options = {"cwd": self.folder, "timeout": self.timeout} | options
        return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, **options)

    def succeed(self, *arguments, **options):
        done = self.run_tool(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if self.silent:
            self.assertEqual(done.stderr, "")
        return done.stdout

    def fail_with(self, message, *arguments, **options):
        """An error is one line with exit code 2; what was said before it, where that is allowed, does not count."""
        done = self.run_tool(*arguments, **options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        if self.one_line:
            self.assertRegex(done.stderr, r"\Alockstep: error: [^\n]*\n\Z")
        else:
            self.assertRegex(done.stderr.splitlines()[-1], r"\Alockstep: error: ")
        self.assertIn(message, done.stderr)
        return done


class NetTest(ToolTest):
    """With a net, whose file is argv[2], and a problem each of a built-in system and of the net."""

    def setUp(self):
        super().setUp()
        shutil.copy(pathlib.Path(sys.argv[2]).resolve(), self.folder / "net.safetensors")
        self.write("lorenz.toml", LORENZ)
        self.write("net.toml", NET)

    def fail_solving(self, message, problem):
        self.write("bad.toml", problem)
        self.fail_with(message, "solve", "bad.toml")
        self.assertFalse(list(self.folder.glob("*.h5")), "a failed solve leaves no file")
        self.assertFalse(list(self.folder.glob("*part*")) + list(self.folder.glob(".*part*")), "a failed solve leaves no temporary file")
