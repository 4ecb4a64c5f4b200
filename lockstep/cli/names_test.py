"""Files whose columns have names are read by these, whatever their order.

usage: names_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, ToolTest, h5py, np, safetensors

CONTINUED = LORENZ.replace("{ normal = { mean = [1, 0, 0], std = 0.1 } }", '{ file = "first.h5", dataset = "end_state" }')


class Names(ToolTest):
    def solve(self, name, text, *flags):
        self.write(name + ".toml", text)
        self.succeed("solve", name + ".toml", "--output", name + ".h5", "--quiet", *flags)
        with h5py.File(self.path(name + ".h5")) as file:
            return {name: file[name][:] for name in ("end_state", "initial_state", "parameters")}

    def test_a_solve_goes_on_where_a_file_of_components_in_another_order_ended(self):
        first = self.solve("first", LORENZ + 'components = ["z", "x", "y"]\n')
        second = self.solve("second", CONTINUED)
        np.testing.assert_array_equal(second["initial_state"], first["end_state"][:, [1, 2, 0]])
        self.solve("first", LORENZ + 'components = ["z", "x"]\n', "--overwrite")
        self.write("third.toml", CONTINUED)
        self.fail_with('third.toml:7: ensemble.initial_state: found no column "y" in first.h5:/end_state, expected one of z, x; say '
                       "which to take: columns = [..], one for each component", "solve", "third.toml")

    def test_parameters_of_another_file_go_by_name(self):
        decay = """
[rhs]
parameters = { a = 1, b = 2 }
[rhs.equations]
x = "-a*x + b"
[ensemble]
trajectories = 3
initial_state = [1]
parameters = { a = { linspace = [1, 2] }, b = 5 }
[time]
span = [0, 1]
[output]
file = "decay.h5"
"""
        first = self.solve("first", decay)
        turned = decay.replace("a = 1, b = 2", "b = 2, a = 1").replace("trajectories = 3\n", "").replace(
            "{ a = { linspace = [1, 2] }, b = 5 }", '{ file = "first.h5", dataset = "parameters" }')
        second = self.solve("second", turned)
        np.testing.assert_array_equal(second["parameters"], first["parameters"][:, ::-1])
        np.testing.assert_array_equal(second["end_state"], first["end_state"])

    def test_a_coordinate_names_the_columns(self):
        states = np.array([[20.0, 1.0, 2.0], [21.0, 3.0, 4.0]])
        with h5py.File(self.path("first.h5"), "w") as file:  # as xarray writes a coordinate of another name
            file["end_state"] = states
            file["species"] = ["z", "x", "y"]
            file["species"].make_scale("species")
            file["end_state"].dims[1].attach_scale(file["species"])
        second = self.solve("second", CONTINUED.replace("trajectories = 100\n", ""))
        np.testing.assert_array_equal(second["initial_state"], states[:, [1, 2, 0]])

    def test_features_of_a_net_go_by_name(self):
        net = safetensors({"0.weight": [[1, 10, 100]], "0.bias": [0]},
                          {"inputs": "x, y, z", "activations": "linear"})
        self.write("net.safetensors", net)
        arguments = ("evaluate", "net.safetensors", "-i", "in.h5", "-o", "out.csv", "--overwrite")

        def evaluated(columns, names):
            with h5py.File(self.path("in.h5"), "w") as file:
                file["input"] = np.array(columns, float)
                file["feature"] = names
                file["feature"].make_scale("feature")
                file["input"].dims[1].attach_scale(file["feature"])
            self.succeed(*arguments)
            return [float(line) for line in self.path("out.csv").read_text().split()[1:]]

        self.assertEqual(evaluated([[3, 1, 2], [6, 4, 5]], ["z", "x", "y"]), [321, 654])
        self.assertEqual(evaluated([[3, 9, 1, 2]], ["z", "w", "x", "y"]), [321])
        self.assertEqual(evaluated([[3, 1, 2]], ["x0", "x1", "x2"]), [213])
        with self.assertRaises(AssertionError):
            evaluated([[3, 1, 2]], ["a", "b", "x"])
        self.fail_with('in.h5:/input: found columns a, b, x, expected one called "y", an input of net.safetensors; give its column '
                       "that name", *arguments)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_components_are_drawn_over_those_of_the_same_name(self):
        coordinates = LORENZ.replace("trajectories = 100", "trajectories = 4")
        self.solve("whole", coordinates)
        self.solve("turned", coordinates + 'components = ["z", "x", "y"]\n')
        out = self.succeed("plot", "turned.h5", "--against", "whole.h5")
        self.assertIn("no distance: no numbers that are finite in both and differ\n", out)
        self.assertNotIn("note", out)
        self.solve("less", coordinates + 'components = ["z", "y"]\n')
        for pair, note in ((("less", "whole"), "x in whole.h5 alone"), (("whole", "less"), "x in whole.h5 alone")):
            out = self.succeed("plot", pair[0] + ".h5", "--against", pair[1] + ".h5")
            self.assertIn(f"note: components of both files are compared; {note}\n", out)
            self.assertIn("no distance: no numbers that are finite in both and differ\n", out)
        self.fail_with('--components: found "x", expected a component that less.h5 has too', "plot", "whole.h5", "--against",
                       "less.h5", "--components", "x")
        with h5py.File(self.path("less.h5"), "r+") as file:
            file["component"][:] = ["S", "I"]
        self.fail_with("less.h5: found components S, I, expected some of x, y, z, as whole.h5 has; solve the same system", "plot",
                       "whole.h5", "--against", "less.h5")

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_save_points_of_a_port_may_be_rounded_otherwise(self):
        self.solve("a", LORENZ.replace("[0, 2]", "[0, 5]").replace("save = 21", "save = 26"))
        shutil.copy(self.path("a.h5"), self.path("b.h5"))
        with h5py.File(self.path("b.h5"), "r+") as file:
            self.assertNotEqual(list(file["time"][:]), list(np.arange(26) * 0.2))
            file["time"][:] = np.arange(26) * 0.2
            del file.attrs["problem_digest"]
        self.succeed("plot", "a.h5", "--against", "b.h5")
        self.assertIn("same bits: all 7,800 numbers", self.succeed("validate", "a.h5", "b.h5"))

    def test_a_net_that_names_components_in_another_order_is_refused(self):
        def net(inputs, outputs=""):
            metadata = {"inputs": inputs, "activations": "linear", **({"outputs": outputs} if outputs else {})}
            n = len(inputs.split(","))
            self.write("net.safetensors", safetensors({"0.weight": np.zeros((3, n)), "0.bias": np.zeros(3)}, metadata))

        both = LORENZ.replace('system = "lorenz"', 'system = "lorenz"\nmodel = "net.safetensors"').replace("= 100", "= 2")
        alone = both.replace('system = "lorenz"\n', "")
        self.write("both.toml", both)
        self.write("alone.toml", alone)
        remedy = ", as which it takes them; call the net in equations, where each input and output has its place by name; or where"
        net("z, x, y")
        self.fail_with("both.toml:4: rhs.model: found the inputs z, x, y of net.safetensors, expected the order of the components, "
                       "x, y, z" + remedy, "solve", "both.toml")
        self.succeed("solve", "alone.toml", "--quiet")
        for outputs in ("y, x, z", "dy, dx, dz", "dy_dt, dx_dt, dz_dt"):
            net("x, y, z", outputs)
            for file in ("both.toml", "alone.toml"):
                self.fail_with(f"{file}:{4 - (file == 'alone.toml')}: rhs.model: found the outputs {outputs} of net.safetensors, "
                               "expected the order of the components, x, y, z" + remedy, "solve", file, "--overwrite")
        for inputs, outputs in (("x, y, z", "dx, dy, dz"), ("a, b, c", "c, a, b"), ("z, x, w", ""), ("x, y, z", "y, z, a")):
            net(inputs, outputs)
            self.succeed("solve", "both.toml", "--quiet", "--overwrite")

    def test_an_input_called_t_may_be_the_time(self):
        self.write("net.safetensors", safetensors({"0.weight": np.ones((1, 2)), "0.bias": [0]},
                                                  {"inputs": "x, t", "activations": "linear"}))
        self.write("net.toml", '[rhs]\nmodel = "net.safetensors"\n[ensemble]\ninitial_state = [1]\n[time]\nspan = [0, 1]\n'
                               '[output]\nfile = "net.h5"\n')
        self.fail_with("net.toml: ensemble.parameters: found no value for t, expected a number for each parameter; where t is the "
                       "time, set with_time = true; else add parameters to [ensemble]", "solve", "net.toml")

    def test_files_of_matlab_are_known_by_their_attribute_where_dimensions_are_in_reverse(self):
        with h5py.File(self.path("first.h5"), "w") as file:
            file["end_state"] = np.ones((3, 5))  # 5 by 3 in MATLAB
            file["end_state"].attrs["MATLAB_class"] = np.bytes_("double")
            file["input"] = np.ones((2, 5))
            file["input"].attrs["MATLAB_class"] = np.bytes_("double")
        self.write("second.toml", CONTINUED)
        advice = "; MATLAB writes dimensions in reverse: transpose it there, x = x.', and save it"
        self.fail_with("second.toml:7: ensemble.initial_state: found 5 numbers, expected 3 numbers, one for each component (x, y, z)" +
                       advice, "solve", "second.toml")
        self.write("net.safetensors", safetensors({"0.weight": [[1, 10]], "0.bias": [0]}, {"activations": "linear"}))
        self.fail_with(advice, "evaluate", "net.safetensors", "-i", "first.h5", "-o", "out.csv")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
