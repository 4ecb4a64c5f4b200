"""`lockstep train` asked to stop in the middle of a solve, of its transpose, or of what it says of the result.

usage: train_stop_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest, TOOL, h5py, np

# Of 6,400 trajectories of 100,000 steps an iteration takes minutes, and so does the judgement of what was trained.
MANY = """
[rhs.equations]
x = "-k * x"
[rhs.parameters]
k = { start = 0.8 }
[data]
file = "many.csv"
time = "t"
trajectory = "run"
states = ["x"]
[method]
precision = "f64"
dt = 1e-5
[[phase]]
optimiser = "lbfgs"
iterations = 3
[output]
file = "decay"
"""
SPIRAL = """
[net]
hidden = [8]
[data]
file = "spiral.csv"
time = "t"
states = ["u", "v"]
[method]
dt = 2.5e-5
[[phase]]
rate = 0.01
iterations = 2
[[phase]]
optimiser = "lbfgs"
iterations = 2
[output]
file = "spiral"
"""


class TrainStopTest(ToolTest):
    silent = False
    timeout = 300

    def setUp(self):
        super().setUp()
        rows = [f"{i},{t},{(1 + i) * np.exp(-t)}\n" for i in range(6400) for t in (0, 1)]
        self.write("many.csv", "run,t,x\n" + "".join(rows))
        t = np.linspace(0, 2, 21)
        self.write("spiral.csv", "t,u,v\n" + "".join(
            f"{s},{np.exp(-s) * np.cos(3 * s)},{np.exp(-s) * np.sin(3 * s)}\n" for s in t))

    def stopped(self, until, *arguments, after=0.5, by=signal.SIGTERM):
        """Its exit code, output and messages; sent the signal some time after a line that begins with `until`."""
        process = subprocess.Popen([str(TOOL), "train", *arguments], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out = ""
        while not out.splitlines()[-1:] or not out.splitlines()[-1].startswith(until):
            line = process.stdout.readline()
            self.assertTrue(line, "ended before")
            out += line
        time.sleep(after)
        process.send_signal(by)
        rest, err = process.communicate(timeout=60)
        return process.returncode, out + rest, err

    def names(self):
        return {path.name for path in self.folder.iterdir()}

    def test_the_first_iteration_does_not_have_to_end(self):
        self.write("many.toml", MANY)
        for by, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            found, out, err = self.stopped("k, 1 parameter", "many.toml", "--overwrite", by=by)
            self.assertEqual(found, code, err)
            self.assertIn("stopped after 0 iterations; go on with --resume", err)
            with h5py.File(self.folder / "decay_checkpoint.h5") as checkpoint:
                self.assertEqual(checkpoint.attrs["iteration"], 0)
            self.assertFalse([name for name in self.names() if name.endswith(".part")])

    def test_what_was_trained_is_written_though_nobody_waits_for_its_errors(self):
        # Ten steps a solve in training, 100,000 in what judges it.
        self.write("coarse.toml", MANY.replace("iterations = 3", "iterations = 20\ndt = 0.1"))
        code, out, err = self.stopped("phase 1 of 1", "coarse.toml")
        self.assertEqual(code, 143, err)
        self.assertIn("trained, but stopped before how good that is was known: --resume finds out", err)
        self.assertRegex(out, r"result: sum of squared errors a trajectory, averaged \S+\n"
                              r"k = (0\.9999|1\.0000)\d* \(from 0\.8\)")
        self.assertNotIn("interval", out)
        self.assertLessEqual({"decay_checkpoint.h5", "decay_loss.csv", "decay_rhs.h5"}, self.names())
        self.assertFalse([name for name in self.names() if name.endswith(".part")])
        with h5py.File(self.folder / "decay_rhs.h5") as model:
            self.assertNotIn("training_parameters", model.attrs)

    def test_stopped_anywhere_it_goes_on_with_the_same_bits(self):
        self.write("spiral.toml", SPIRAL)
        self.succeed("train", "spiral.toml", "--output", "whole", "-q")
        # An iteration takes some tenths of a second.
        for wait in (0.05, 0.3, 0.7, 1.1):
            code, _, _ = self.stopped("2-8-2 tanh", "spiral.toml", "--resume", after=wait)
            self.assertIn(code, (0, 143))
        self.succeed("train", "spiral.toml", "--resume", "-q")
        self.assertEqual((self.folder / "spiral_loss.csv").read_bytes(), (self.folder / "whole_loss.csv").read_bytes())
        with h5py.File(self.folder / "spiral_checkpoint.h5") as found, \
                h5py.File(self.folder / "whole_checkpoint.h5") as expected:
            for key in ("parameters", "best_parameters"):
                np.testing.assert_array_equal(found[key], expected[key])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
