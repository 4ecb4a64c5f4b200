"""What `lockstep train` says of how good a net is, from outside, and what people do with it next.

usage: train_report_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest, h5py, np

LINE = """
[net]
hidden = []
[data]
file = "table.csv"
inputs = ["a", "b"]
targets = ["y", "z"]
[training]
optimiser = "lbfgs"
iterations = 40
[method]
precision = "f64"
[output]
file = "line"
"""


class TableTest(ToolTest):
    """Tables as people have them: columns of text, of dates, and more than a training uses."""

    def setUp(self):
        super().setUp()
        a, b = np.random.default_rng(2).uniform(-1, 1, (2, 50))
        self.write("table.csv", ",note,b,a,y,z\n" + "".join(
            f'{i},"row {i}, good",{q:.4f},{p:.4f},{2 * round(p, 4) - round(q, 4) + 1:.4f},{round(q, 4):.4f}\n'
            for i, (p, q) in enumerate(zip(a, b))))
        self.write("line.toml", LINE)

    def test_columns_of_text_are_passed_over_and_named_where_they_are_used(self):
        self.succeed("train", "line.toml", "-q")
        self.write("note.toml", LINE.replace('["a", "b"]', '["a", "note"]'))
        self.fail_with('table.csv:2, column note: found "row 0, good", expected a finite number; name a column of numbers',
                       "train", "note.toml", "--output", "other")

    def test_trajectories_may_be_told_apart_by_names(self):
        t = np.linspace(0, 1, 6)
        self.write("runs.csv", "run,t,x\n" + "".join(f"{run},{s},{np.exp(-s)}\n" for run in ("A1", "B7") for s in t))
        self.write("runs.toml", '[net]\nhidden = []\n[data]\nfile = "runs.csv"\ntrajectory = "run"\ntime = "t"\n'
                   'states = ["x"]\n[training]\niterations = 2\n[output]\nfile = "runs"\n')
        self.assertIn("2 trajectories of 6 points", self.succeed("train", "runs.toml"))

    def test_a_net_is_evaluated_on_named_columns(self):
        self.succeed("train", "line.toml", "-q")
        self.write("x.csv", "b;who;a\n0.5;me;0.25\n-0.5;you;0\n0;them;7\n")
        out = self.succeed("evaluate", "line.h5", "--input", "x.csv", "--output", "y.csv", "--precision", "f64")
        self.assertIn("1 of them outside the training range", out)
        lines = (self.folder / "y.csv").read_text().splitlines()
        self.assertEqual(lines[0], "y,z,outside_range")
        made = np.array([[float(field) for field in line.split(",")] for line in lines[1:]])
        np.testing.assert_allclose(made, [[1, 0.5, 0], [1.5, -0.5, 0], [15, 0, 1]], atol=1e-6)
        self.succeed("evaluate", "line.h5", "--input", "x.csv", "--output", "y.h5", "--precision", "f64")
        with h5py.File(self.folder / "y.h5") as file:
            np.testing.assert_array_equal(file["output"][()], made[:, :2])  # text of shortest digits reads back
            self.assertEqual(list(file["outside_range"][()]), [0, 0, 1])

    def test_what_a_table_lacks_for_an_evaluation_is_named(self):
        self.succeed("train", "line.toml", "-q")
        self.write("x.csv", "A,b\n1,2\n")
        self.fail_with('x.csv: found no column "a", an input of line.h5, expected a column called as each input',
                       "evaluate", "line.h5", "--input", "x.csv", "--output", "y.csv")
        self.write("x.csv", "a,b\n1,2\n9,9\n")
        self.fail_with("x.csv:2: found an input outside the range", "evaluate", "line.h5", "--input", "x.csv",
                       "--output", "y.csv", "--guard", "stop")
        self.assertFalse((self.folder / "y.csv").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
