"""`lockstep train` by the method for stiff problems: the reaction of docs/training.md, and what is said of it there.

usage: train_stiff_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tool_test import ToolTest, cpu_targets

TRUE = {"k1": 0.04, "k2": 3e7, "k3": 1e4}


def page():
    text = (ROOT / "docs" / "training.md").read_text()
    return re.split(r"\n##+ ", text[text.index("### Rates of stiff reactions"):], maxsplit=1)[0]


class TrainStiffTest(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        measured, file = re.findall(r"```(?:toml)?\n(.*?)```", page(), flags=re.DOTALL)
        self.write("measured.csv", measured)
        self.write("train.toml", file)

    def test_the_report_is_that_of_the_page_and_its_intervals_hold_the_truth(self):
        out = self.succeed("train", "train.toml")
        rows = out[out.index("parameter "):out.index("errors by")].splitlines()
        self.assertEqual(len(rows), 4)
        for row in rows:
            self.assertIn("    " + row.rstrip() + "\n", page())
        for name, true in TRUE.items():
            low, high = map(float, re.search(rf"^{name} .* \+- \S+ +(\S+) to (\S+)", out, re.MULTILINE).groups())
            self.assertLess(low, true)
            self.assertGreater(high, true)

    def test_the_same_bits_come_out_on_any_instruction_set_and_threads(self):
        found = set()
        for i, more in enumerate([["--cpu-target", target] for target in cpu_targets()] + [["--threads", 2]]):
            out = self.succeed("train", "train.toml", "--output", f"rates{i}", *more)
            found.add(re.search(r"^k1 = \S+", out, re.MULTILINE).group())
        self.assertEqual(len(found), 1, found)

    def test_a_net_beside_stiff_equations_is_trained(self):
        # x decays at a rate of a thousand to sin(y) of a net's unknown partner: dy/dt = 1 - 2 x.
        problem = """[rhs.equations]
x = "1000 * (sin(y) - x)"
y = "1 - 2 * x"
[ensemble]
initial_state = [0.5, 0.2]
[time]
span = [0, 4]
save = 41
[method]
name = "rodas5p"
precision = "f64"
[output]
file = "truth.h5"
"""
        self.write("truth.toml", problem)
        self.succeed("solve", "truth.toml")
        self.write("net.toml", """[rhs.equations]
x = "1000 * (sin(y) - x)"
y = "net(x)"
[net]
hidden = [4]
[data]
file = "truth.h5"
[method]
name = "rodas5p"
precision = "f64"
[[phase]]
optimiser = "lbfgs"
iterations = 60
segment = 6
[output]
file = "net"
""")
        out = self.succeed("train", "net.toml")
        share = float(re.search(r"training +x +\S+ +(\S+) %", out).group(1))
        self.assertLess(share, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
