"""`lockstep train` with known parameters of each trajectory: the page's example, out of CSV and HDF5, and what is refused.

usage: known_parameters_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tool_test import ToolTest, h5py, np

TEMPERATURES, TIMES = np.array([300.0, 320, 340, 360]), np.linspace(0, 4, 9)


def example():
    """The page's data and training file."""
    page = (ROOT / "docs" / "training.md").read_text()
    part = page[page.index("# Known numbers of each experiment\n"):]
    return re.search(r"```\n(.*?)```\n```toml\n(.*?)```", part, re.DOTALL).groups()


def decays():
    """Of k0 = 0.1, E = 4: [trajectory, time], exact."""
    rates = 0.1 * np.exp(-4 * (1000 / TEMPERATURES - 3.1))
    return np.exp(-rates[:, None] * TIMES)


class KnownParametersTest(ToolTest):
    silent = False

    def csv(self, temperatures=TEMPERATURES):
        rows = [f"{run},{temperature!r},{t!r},{a!r}" for run, temperature in enumerate(map(float, temperatures))
                for t, a in zip(map(float, TIMES), map(float, decays()[run]))]
        self.write("runs.csv", "\n".join(["run,T,t,A"] + rows) + "\n")

    def found(self, out):
        return {name: float(value) for name, value in re.findall(r"^(k0|E) = (\S+) \(from ", out, re.MULTILINE)}

    def test_the_page_is_trained(self):
        data, text = example()
        self.write("runs.csv", data)
        self.write("train.toml", text)
        self.assertEqual(set(self.found(self.succeed("train", "train.toml"))), {"k0", "E"})

    def test_parameters_are_found_out_of_csv_and_hdf5(self):
        text = example()[1]
        self.csv()
        self.write("train.toml", text + "overwrite = true\n")
        out = self.succeed("train", "train.toml")
        found = self.found(out)
        self.assertAlmostEqual(found["k0"], 0.1, delta=1e-5)
        self.assertAlmostEqual(found["E"], 4, delta=1e-3)
        self.assertIn("from 32 numbers", out)
        with h5py.File(self.path("runs.h5"), "w") as file:
            file["t"], file["A"], file["warmth"] = TIMES, decays()[..., None], TEMPERATURES
        self.write("other.toml", text.replace("runs.csv", "runs.h5").replace('trajectory = "run"\n', "").replace(
            'parameters = ["T"]', 'parameters = { T = "warmth" }') + "overwrite = true\n")
        self.assertEqual(self.found(self.succeed("train", "other.toml")), found)

    def test_the_model_wants_the_parameter_that_has_no_value(self):
        self.csv()
        for default, words in (("", "no value for T"), ("T = 320\n", "")):
            self.write("train.toml", example()[1].replace("[data]", default + "[data]") + "overwrite = true\n")
            self.succeed("train", "train.toml")
            self.write("problem.toml", '[rhs]\nmodel = "arrhenius_rhs.h5"\n[ensemble]\ninitial_state = [1]\n[time]\n'
                       'span = [0, 4]\nsave = 9\n[method]\nprecision = "f64"\n[output]\nfile = "solved.h5"\n')
            if words:
                self.fail_with(words, "solve", "problem.toml", "-q", "--overwrite")
                continue
            self.succeed("solve", "problem.toml", "-q", "--overwrite")
            with h5py.File(self.path("solved.h5")) as file:
                np.testing.assert_allclose(file["state"][0, :, 0], decays()[1], atol=1e-4)

    def test_what_cannot_be_is_refused(self):
        self.csv()
        text = example()[1]
        for old, new, words in (
                ('["T"]', '["k0"]', "data.parameters: found k0, which the training is to find"),
                ('["T"]', "{ T = 300 }", "expected the name of a column"),
                ('["T"]', "{ T = \"t\" }", "column t: found 0.5, expected 0 as in the trajectory's first row"),
                ('["T"]', "{ T = \"warmth\" }", '"warmth"')):
            self.write("train.toml", text.replace(old, new))
            self.fail_with(words, "train", "train.toml")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
