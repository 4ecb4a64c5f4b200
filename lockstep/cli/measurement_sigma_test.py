"""`lockstep train` on measurements that each have a standard deviation: SciPy's curve_fit, and what it says.

usage: measurement_sigma_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed. Where SciPy is installed its figures are made anew.
"""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "testdata")]
from tool_test import ToolTest, h5py, np
import curve_fit_sigma

# Printed by testdata/curve_fit_sigma.py with SciPy 1.17.1: of its table, which is this one.
KINETICS = """t,A,dA,B,dB
0,1,0.035,0,0.005
0.5,0.7872,0.0284,0.2114,0.0113
1,0.625,0.0232,0.3393,0.0156
1.5,,,0.4237,0.0184
2,0.3893,0.016,0.4908,0.0201
3,0.2353,0.0117,,
4,0.1166,0.0091,0.5175,0.0207
5,0.0759,0.0075,0.4866,0.0193
6,,,0.4422,0.0176
8,0.0211,0.0055,0.2958,0.0142
10,0.0102,0.0052,0.2011,0.0114
12,0.0021,0.0051,0.1289,0.0094
"""
VALUES = {"k1": 0.497022161, "k2": 0.2061205419}
ERRORS = {"k1": 0.0073265293, "k2": 0.0039259168}
CORRELATION, CHI_SQUARE = -0.085974276, 1.013416

FILE = """[rhs.equations]
A = "-k1 * A"
B = "k1 * A - k2 * B"
[rhs.parameters]
k1 = { start = 0.3, positive = true }
k2 = { start = 0.1, positive = true }
[data]
file = "kinetics.csv"
time = "t"
states = ["A", "B"]
sigma = { A = "dA", B = "dB" }
[method]
precision = "f64"
rtol = 1e-9
atol = 1e-9
[training]
phases = "recommended"
[output]
file = "fit"
"""


class MeasurementSigmaTest(ToolTest):
    silent = False

    def found(self, name="fit"):
        """{parameter: {column: number}} of the table that the model keeps, and the notes below it."""
        with h5py.File(self.path(f"{name}_rhs.h5")) as file:
            model = dict(file.attrs)
            file.visititems(lambda _, one: model.update(one.attrs))
        lines = model["training_parameters"].split()
        head = lines[0].split(",")
        table = {row.split(",")[0]: dict(zip(head[1:], map(float, row.split(",")[1:]))) for row in lines[1:]}
        return table, model["training_parameters_notes"]

    def test_rate_constants_and_their_errors_are_those_of_curve_fit(self):
        self.write("kinetics.csv", KINETICS)
        self.write("train.toml", FILE)
        out = self.succeed("train", "train.toml")
        self.assertIn("3 of 24 numbers missing", out)
        table, notes = self.found()
        for name in VALUES:
            # Solves at 1e-9; L-BFGS ends where steps no longer change the loss, some 1e-8 of a parameter away.
            self.assertAlmostEqual(table[name]["value"], VALUES[name], delta=1e-7)
            self.assertAlmostEqual(table[name]["standard_error"], ERRORS[name], delta=1e-6 * ERRORS[name] * 10)
            # The law is that of a positive parameter, intervals those of its logarithm at 1.96 errors.
            high = VALUES[name] * np.exp(1.959964 * ERRORS[name] / VALUES[name])
            self.assertAlmostEqual(table[name]["upper"], high, delta=1e-6)
        self.assertAlmostEqual(table["k2"]["correlation_k1"], CORRELATION, delta=1e-5)
        self.assertIn(f"19 numbers and their sigma, reduced chi-square {CHI_SQUARE:.3g}, 2 unknowns", notes)
        self.assertIn("first points taken to be exact", notes)
        self.assertNotIn("sigma says", notes)
        self.assertIn("of spread  in sigma", out)

    def test_bounds_and_units_of_parameters(self):
        self.write("kinetics.csv", KINETICS)
        bounds = FILE.replace("k1 = { start = 0.3, positive = true }", 'k1 = { start = 0.3, min = 0, max = 2, unit = "1/h" }')
        self.write("train.toml", bounds.replace("0.1, positive = true", '0.1, min = 0, unit = "1/h"'))
        out = self.succeed("train", "train.toml")
        self.assertRegex(out, r"(?m)^k1 = 0\.49702\d* 1/h \(from 0\.3\)$")
        self.assertRegex(out, r"(?m)^k2 +0\.2061 \+- 0\.0039 1/h")
        table, _ = self.found()
        for name in VALUES:
            self.assertAlmostEqual(table[name]["value"], VALUES[name], delta=1e-7)
            self.assertAlmostEqual(table[name]["standard_error"], ERRORS[name], delta=1e-5 * ERRORS[name])
            # Of bounds the interval is that of the parameter itself, cut at them.
            self.assertAlmostEqual(table[name]["upper"], VALUES[name] + 1.959964 * ERRORS[name], delta=1e-6)
        self.assertIn("1/h", self.succeed("info", "fit_rhs.h5"))
        self.write("train.toml", bounds.replace("max = 2", "max = 0.45"))
        out = self.succeed("train", "train.toml", "--overwrite")
        self.assertIn("k1 is at its bound, and the data would have it above", out)
        self.assertRegex(out, r"(?m)^k1 +0\.4[45]\d* 1/h +at its bound")
        self.assertRegex(out, r"(?m)^k2 +0\.\d+ \+- 0\.\d+")

    def test_scipy_still_finds_the_figures_above(self):
        try:
            values, errors, correlation, chi_square = curve_fit_sigma.fitted(KINETICS)
        except ImportError:
            self.skipTest("no SciPy")
        np.testing.assert_allclose(values, list(VALUES.values()), rtol=1e-8)
        np.testing.assert_allclose(errors, list(ERRORS.values()), rtol=1e-6)
        self.assertAlmostEqual(correlation, CORRELATION, delta=1e-6)
        self.assertAlmostEqual(chi_square, CHI_SQUARE, delta=1e-6)

    def test_errors_that_are_too_small_are_told_and_may_be_taken_for_ratios(self):
        rows = [row.split(",") for row in KINETICS.split()]
        for row in rows[1:]:
            row[2], row[4] = (x and repr(float(x) / 4) for x in (row[2], row[4]))
        self.write("kinetics.csv", "\n".join(",".join(row) for row in rows) + "\n")
        self.write("train.toml", FILE)
        out = self.succeed("train", "train.toml")
        self.assertIn("the fit misses the data by 4.03 times what sigma says", out)
        self.assertAlmostEqual(self.found()[0]["k1"]["standard_error"], ERRORS["k1"] / 4, delta=1e-7)
        self.write("train.toml", FILE.replace("[method]", "absolute_sigma = false\n[method]"))
        out = self.succeed("train", "train.toml", "--overwrite")
        self.assertNotIn("sigma says", out)
        # As the ratios alone count, the factor of 4 is gone.
        self.assertAlmostEqual(self.found()[0]["k1"]["standard_error"], ERRORS["k1"] * np.sqrt(CHI_SQUARE), delta=1e-7)

    def test_hdf5_and_lists_of_columns_have_the_same_bits(self):
        self.write("kinetics.csv", KINETICS)
        self.write("train.toml", FILE.replace('{ A = "dA", B = "dB" }', '["dA", "dB"]'))
        self.succeed("train", "train.toml")
        expected = self.found()
        cells = np.array([[float(x) if x else np.nan for x in row.split(",")] for row in KINETICS.split()[1:]])
        with h5py.File(self.path("kinetics.h5"), "w") as file:
            file["t"] = cells[:, 0]
            file["u"], file["du"] = cells[:, [1, 3]], cells[:, [2, 4]]
            for i, name in enumerate(["A", "dA", "B", "dB"]):
                file[name] = cells[:, i + 1]
        for states, sigma in [('["A", "B"]', '{ A = "dA", B = "dB" }'), ('["A", "B"]', '["dA", "dB"]'), ('"u"', '"du"'),
                              ('["A", "B"]', '"du"')]:
            text = FILE.replace("kinetics.csv", "kinetics.h5").replace('["A", "B"]', states)
            self.write("train.toml", text.replace('{ A = "dA", B = "dB" }', sigma))
            self.succeed("train", "train.toml", "--overwrite")
            self.assertEqual(self.found(), expected, sigma)

    def test_bad_sigma_names_row_and_column(self):
        for cell, said in [("0", "sigma 0"), ("-0.02", "sigma -0.02"), ("", "no sigma"), ("nan", "no sigma")]:
            self.write("kinetics.csv", KINETICS.replace("0.3893,0.016", f"0.3893,{cell}"))
            self.write("train.toml", FILE)
            self.fail_with(f"kinetics.csv:6, of A: found {said}, expected a standard deviation greater than 0", "train",
                           "train.toml")
        self.write("kinetics.csv", KINETICS)
        self.write("train.toml", FILE.replace("dA", "d_A"))
        self.fail_with(r'sigma.A: found "d_A", expected one of', "train", "train.toml")
        self.write("train.toml", FILE.replace('{ A = "dA", B = "dB" }', '["dA"]'))
        self.fail_with(r"sigma: found 1 name, expected 2, one for each of", "train", "train.toml")
        self.write("train.toml", FILE.replace('sigma = { A = "dA", B = "dB" }', "absolute_sigma = true"))
        self.fail_with(r"absolute_sigma without sigma", "train", "train.toml")


class RegressionSigmaTest(ToolTest):
    silent = False
    FILE = """[net]
hidden = []
[data]
file = "line.csv"
inputs = ["x"]
targets = ["y", "z"]
missing = "skip"
sigma = { y = "dy", z = 0.5 }
[method]
precision = "f64"
[training]
optimiser = "lbfgs"
iterations = 100
[output]
file = "net"
"""

    def test_a_line_is_that_of_weighed_least_squares(self):
        random = np.random.default_rng(3)
        x = np.linspace(0, 1, 40)
        dy = random.uniform(0.01, 0.3, 40)
        y, z = 2 * x - 1 + dy * random.standard_normal(40), 3 - x
        rows = [[f"{a:.6f}" for a in row] for row in zip(x, y, dy, z)]
        rows[4][1] = rows[4][2] = rows[7][3] = "NA"
        rows[9][1] = rows[9][3] = ""
        self.write("line.csv", "x,y,dy,z\n" + "\n".join(",".join(row) for row in rows) + "\n")
        self.write("train.toml", self.FILE)
        out = self.succeed("train", "train.toml")
        self.assertIn("39 rows, 2 of 78 targets missing, 1 without any left out", out)
        self.assertIn("mean squared error over sigma", out)
        cells = np.array([[float(a) if a not in ("", "NA") else np.nan for a in row] for row in rows])
        there = ~np.isnan(cells[:, 1])
        design = np.stack([cells[there, 0], np.ones(there.sum())], axis=1) / cells[there, 2:3]
        slope, offset = np.linalg.lstsq(design, cells[there, 1] / cells[there, 2], rcond=None)[0]
        with h5py.File(self.path("net.h5")) as file:
            numbers = []
            file.visititems(lambda _, one: numbers.extend(np.ravel(one[()])) if isinstance(one, h5py.Dataset) and
                            one.dtype.kind == "f" else None)
        # Among the weights and biases, which come as doubles; L-BFGS ends within 1e-6 of a quadratic's least.
        for number in (slope, offset, -1.0, 3.0):
            self.assertLess(min(abs(np.array(numbers) - number)), 1e-5)

    def test_without_permission_a_missing_target_is_an_error_that_tells_of_it(self):
        self.write("line.csv", "x,y,dy,z\n0,1,0.1,2\n1,,0.1,2\n")
        self.write("train.toml", self.FILE.replace('missing = "skip"\n', ""))
        self.fail_with("line.csv:3, column y: found an empty field, expected a finite number", "train", "train.toml")
        self.fail_with('missing = "skip" in [data]', "train", "train.toml")
        self.write("line.csv", "x,y,dy,z\n0,1,0.1,2\nNA,1,0.1,2\n")
        self.write("train.toml", self.FILE)
        self.fail_with("line.csv:3, column x: found none, expected a finite number: inputs are needed, targets alone may miss", "train", "train.toml")
        self.write("line.csv", "x,y,dy,z\n0,,,2\n1,,,2\n")
        self.fail_with(r"no number of y to train on", "train", "train.toml")
        self.write("line.csv", "x,y,dy,z\n0,,,\n1,,,\n")
        self.fail_with(r"no target in any row", "train", "train.toml")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
