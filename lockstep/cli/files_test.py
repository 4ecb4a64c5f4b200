"""The tool from outside, with files that are there: validate, evaluate, info and explain.

usage: files_test.py LOCKSTEP MODEL.safetensors [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, NET, NetTest, h5py, np, safetensors


class Validate(NetTest):
    def setUp(self):
        super().setUp()
        self.succeed("solve", "lorenz.toml", "--output", "a.h5", "--quiet")
        shutil.copy(self.path("a.h5"), self.path("b.h5"))

    def change(self, **datasets):
        with h5py.File(self.path("b.h5"), "r+") as file:
            for name, edit in datasets.items():
                values = file[name][...]
                edit(values)
                file[name][...] = values

    def verdict(self, code, *patterns):
        done = self.run_tool("validate", "--bits", "a.h5", "b.h5")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for pattern in patterns:
            self.assertRegex(done.stdout + done.stderr, pattern)
        return done.stdout

    def test_without_a_certificate_the_spread_is_computed_anew(self):
        def edit(state):
            state[17, 4, 1] += 1
        self.change(state=edit)
        done = self.run_tool("validate", "a.h5", "b.h5")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"trajectory 17 goes where rounding(.|\n)*computed anew from the problem in a.h5")

    def test_without_a_spread_there_is_no_verdict_but_how_far_apart(self):
        def edit(state):
            state[17, 4, 1] += 1
        self.change(state=edit)
        done = self.run_tool("validate", "--stored-only", "a.h5", "b.h5")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"different: 1 of 6,300 numbers(.|\n)*first in the file +trajectory 17, time 4")
        self.assertRegex(done.stdout, r"no verdict: nothing tells how much")
        for name in ("a.h5", "b.h5"):
            with h5py.File(self.path(name), "r+") as file:
                del file["problem"]
        done = self.run_tool("validate", "a.h5", "b.h5")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"a.h5: found no description of its problem(.|\n)*b.h5: found no description")

    def test_equal_files_have_the_same_bits(self):
        self.verdict(0, r"\Asame bits: all 6,300 numbers of state agree \(100 trajectories x 21 times x 3 components, float32\)")
        self.assertEqual(self.run_tool("validate", "--bits", "-q", "a.h5", "b.h5").stdout, "")

    def test_one_bit_is_found_and_placed(self):
        def edit(state):
            state[17, 4, 1] = np.nextafter(state[17, 4, 1], np.float32(np.inf))
        self.change(state=edit)
        self.verdict(1, r"\Adifferent: 1 of 6,300 numbers of state, in 1 trajectory ",
                     r"largest absolute +\S+ at trajectory 17, time 4 \(t = 0\.4\), component y: \S+ and \S+\n",
                     r"largest relative +\S+e-0[78] at", r"first in the file +trajectory 17", r"earliest in time")

    def test_the_earliest_difference_is_told_from_the_first(self):
        def edit(state):
            state[3, 20, 0] += 1
            state[50, 2, 2] += 0.5
        self.change(state=edit)
        self.verdict(1, r"first in the file +trajectory 3, time 20", r"earliest in time +trajectory 50, time 2",
                     r"largest absolute +1 at trajectory 3, ")

    def test_nan_equals_nan_but_not_a_number(self):
        def edit(state):
            state[5, 5, 0] = np.nan
        self.change(state=edit)
        shutil.copy(self.path("b.h5"), self.path("a.h5"))

        def other_payload(state):
            state.view(np.uint32)[5, 5, 0] = 0xFFC12345
        self.change(state=other_payload)
        self.verdict(0, "same bits", r"NaN or infinite +1 trajectory of a, 1 trajectory of b")

        def finite(state):
            state[5, 5, 0] = 1
        self.change(state=finite)
        self.verdict(1, r"not finite +1 numbers in a alone, 0 in b alone")

    def test_nan_in_one_file_is_counted_and_no_agreement(self):
        def edit(state):
            state[5, 5:, :] = np.nan
            state[6, 20, 1] = np.inf
        self.change(state=edit)
        for files, counts in ((("a.h5", "b.h5"), "0 in a.h5, 2 in b.h5"), (("b.h5", "a.h5"), "2 in b.h5, 0 in a.h5")):
            done = self.run_tool("validate", *files)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(f"2 trajectories with NaN or infinite numbers ({counts}); "
                          "2 trajectories finite at a time in one solution only", done.stdout)

    def test_a_file_of_another_version_is_told_by_its_version(self):
        with h5py.File(self.path("b.h5"), "r+") as file:
            file.attrs["version"] = "0.0.7"
        self.verdict(0, "same bits", r"  version +\S+ and 0\.0\.7\n")
        with h5py.File(self.path("b.h5"), "r+") as file:
            file.attrs["lockstep_format"] = "ensemble 9"
        self.verdict(2, r'b.h5: found format "ensemble 9" of version 0\.0\.7, expected "ensemble 1"')

    def test_statuses_and_counts_count(self):
        def status(values):
            values[9] = 3
        self.change(status=status)
        self.verdict(1, "state agrees in all 6,300 numbers", r"statuses +1 trajectory, first trajectory 9: success and not_finite")

    def test_ends_that_differ_behind_the_same_states_get_no_verdict(self):
        """What an event gives, the time and the state at which it struck, lies in no saved state."""
        fall = ('[rhs.equations]\nx = "v"\nv = "-9.81"\n[ensemble]\ntrajectories = 9\ninitial_state = { box = { low = [1, 0], '
                'high = [5, 8] } }\n[time]\nspan = [0, 3]\nsave = 16\n[event]\ncomponent = "x"\nvalue = 0\n'
                'direction = "falling"\n[output]\nfile = "a.h5"\n')
        self.write("fall.toml", fall)
        self.succeed("solve", "fall.toml", "--overwrite")
        for name, at, value, line in (("end_time", 3, 0.5, r"  end times +1 trajectory, first trajectory 3: "),
                                      ("end_state", (3, 0), 7.0, r"  end states +1 trajectory, first trajectory 3, component x: "),
                                      ("status", 3, 2, r"  statuses +1 trajectory, first trajectory 3: ")):
            shutil.copy(self.path("a.h5"), self.path("b.h5"))
            self.assertEqual(self.run_tool("validate", "a.h5", "b.h5").returncode, 0)
            with h5py.File(self.path("b.h5"), "r+") as file:
                file[name][at] = value
            done = self.run_tool("validate", "a.h5", "b.h5")
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn("No verdict: the same bits in all saved states, but 1 trajectory ended in another way, at another time "
                          "or in another state", done.stdout)
            self.assertEqual("NaN or infinite" in done.stdout, name == "status", done.stdout)
            if name != "status":
                self.assertIn("An event ended 1 trajectory elsewhere, by ", done.stdout)
            done = self.run_tool("validate", "--bits", "a.h5", "b.h5")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout, line)
        # As a file of another program may be, which says nothing of ends: the states stand alone.
        with h5py.File(self.path("b.h5"), "r+") as file:
            file["status"][3] = 1
            del file["end_state"], file["end_time"], file.attrs["version"]
        self.assertEqual(self.run_tool("validate", "a.h5", "b.h5").returncode, 0)

    def test_differing_options_are_named(self):
        self.succeed("solve", "lorenz.toml", "--output", "b.h5", "--overwrite", "--rtol", "1e-7", "--quiet")
        self.verdict(1, r"what differs in how they were made:\n", r"  rtol +1e-06 and 1e-07\n")
        self.assertNotIn("engine_reason", self.run_tool("validate", "--bits", "a.h5", "b.h5").stdout)
        self.assertNotIn("engine_reason", self.run_tool("validate", "a.h5", "b.h5").stdout, "it follows from the rest")

    def test_other_save_points_leave_it_without_a_verdict(self):
        self.write("few.toml", LORENZ.replace("save = 21", "save = 5"))
        self.succeed("solve", "few.toml", "--output", "few.h5", "--quiet")
        done = self.run_tool("validate", "a.h5", "few.h5")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("by one method: save points differ, 21 and 5", done.stdout + done.stderr)
        self.path("few.h5").write_bytes(self.path("a.h5").read_bytes()[:9000])
        self.fail_with("few.h5: found a truncated file, 9,000 of ", "validate", "a.h5", "few.h5")

    def test_an_extract_without_its_tables_is_told_what_it_lacks(self):
        with h5py.File(self.path("b.h5"), "r+") as file:
            for name in ("status", "accepted", "rejected", "evaluations", "end_time", "start_time", "end_state"):
                del file[name]
        self.fail_with("b.h5:/status: found nothing of that name, expected a dataset; an extract of a result keeps all its "
                       "tables, or state, time and initial_state without the attribute version", "validate", "a.h5", "b.h5")
        with h5py.File(self.path("b.h5"), "r+") as file:
            del file.attrs["version"]
        self.verdict(0, "same bits")

    def test_float32_passed_for_float64_is_different(self):
        self.succeed("solve", "lorenz.toml", "--output", "b.h5", "--overwrite", "--precision", "f64", "--quiet")
        self.verdict(1, "float32 and float64: compared as float64")

    def test_what_cannot_be_compared_is_an_error(self):
        self.succeed("solve", "lorenz.toml", "--output", "b.h5", "--overwrite", "--trajectories", "50", "--quiet")
        self.verdict(2, "found 100 and 50 trajectories, expected as many trajectories in both")
        self.write("b.h5", "text")
        self.verdict(2, "lockstep: error: b.h5: found no HDF5 signature")
        self.fail_with("missing.h5", "validate", "a.h5", "missing.h5")
        self.write("later.toml", LORENZ.replace("span = [0, 2]", "span = [0, 3]"))
        self.succeed("solve", "later.toml", "--output", "b.h5", "--overwrite", "--quiet")
        self.verdict(2, r"found save point 1 at 0\.1 and 0\.15")


class Evaluate(NetTest):
    def test_outputs_are_the_nets(self):
        rng = np.random.default_rng(5)
        weights = [rng.normal(size=shape).astype(np.float32) for shape in ((16, 3), (16,), (2, 16), (2,))]
        self.write("small.safetensors", safetensors(dict(zip(("0.weight", "0.bias", "2.weight", "2.bias"), weights))))
        rows = rng.normal(size=(1001, 3))
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = rows
        self.succeed("evaluate", "small.safetensors", "--input", "x.h5", "--output", "y.h5", "--precision", "f64",
                     "--activations", "relu,identity")
        w1, b1, w2, b2 = [w.astype(np.float64) for w in weights]
        expected = np.maximum(rows @ w1.T + b1, 0) @ w2.T + b2
        with h5py.File(self.path("y.h5")) as file:
            self.assertEqual(file["output"].dtype, np.float64)
            # Two sums of up to 17 terms of size about 4: 17 * 2^-53 * 17 * 16 is below 1e-12.
            np.testing.assert_allclose(file["output"][:], expected, rtol=0, atol=1e-12)
            exact = file["output"][:]
        self.succeed("evaluate", "small.safetensors", "-i", "x.h5", "-o", "y.h5", "--overwrite", "--activations",
                     "relu", "--threads", "2")  # of the hidden layer
        with h5py.File(self.path("y.h5")) as file:
            self.assertEqual(file["output"].dtype, np.float32)
            np.testing.assert_allclose(file["output"][:], exact, rtol=0, atol=1e-12 * 2**29)

    def test_ports_that_would_share_a_dataset_are_named(self):
        def evaluates(inputs, outputs):  # what the first two inputs, or the input and itself, add up to
            with h5py.File(self.path("ports.h5"), "w") as file:
                file.attrs["lockstep_model"] = 2
                for i, name in enumerate(inputs):
                    file.create_group(f"inputs/{i}").attrs.update(name=name, features=1)
                for i, name in enumerate(outputs):
                    file.create_group(f"outputs/{i}").attrs.update(name=name, features=1, value="sum")
                node = file.create_group("nodes/0")
                node.attrs.update(name="sum", operation="binary", kind="add")
                node["inputs"] = [inputs[0], inputs[-1]]
            return ("evaluate", "ports.h5", "--input", "x.h5", "--output", "y.h5", "--overwrite")

        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = file["a_b"] = file["c"] = np.ones((4, 1))
        self.succeed(*evaluates(["a/b", "c"], ["y", "z/1"]))
        with h5py.File(self.path("y.h5")) as file:
            np.testing.assert_array_equal(file["z_1"], np.full((4, 1), 2))
        self.fail_with('ports.h5: ports "a/b" and "a_b": found one dataset for both, a_b', *evaluates(["a/b", "a_b"], ["y"]))
        self.fail_with('ports "y" and "y_feature": found one dataset for both, y_feature',
                       *evaluates(["x"], ["y", "y_feature"]))

    def test_guard_stop_names_the_first_row_outside_and_its_port(self):
        with h5py.File(self.path("ports.h5"), "w") as file:
            file.attrs["lockstep_model"] = 2
            for i, (name, most) in enumerate((("a", 1.0), ("b", 2.0))):
                port = file.create_group(f"inputs/{i}")
                port.attrs.update(name=name, features=1)
                port["minimum"], port["maximum"] = [0.0], [most]
            file.create_group("outputs/0").attrs.update(name="y", features=1, value="sum")
            node = file.create_group("nodes/0")
            node.attrs.update(name="sum", operation="binary", kind="add")
            node["inputs"] = ["a", "b"]

        def evaluated(*outside, guard="stop"):  # (port, row)
            with h5py.File(self.path("x.h5"), "w") as file:
                for name in "ab":
                    file[name] = np.full((5, 1), 0.5)
                for name, row in outside:
                    file[name][row] = 3
            return ("evaluate", "ports.h5", "--input", "x.h5", "--output", "y.h5", "--overwrite", "--guard", guard)

        for outside, place in (((("b", 2), ("a", 3)), "x.h5:/b, row 2"), ((("b", 4), ("a", 1)), "x.h5:/a, row 1"),
                               ((("a", 2), ("b", 2)), "x.h5:/a, row 2"), ((("b", 4),), "x.h5:/b, row 4")):
            self.fail_with(f"{place}: found an input outside the range ports.h5 was trained on", *evaluated(*outside))
            self.assertFalse(self.path("y.h5").exists())
        self.succeed(*evaluated())
        self.succeed(*evaluated(("b", 2), ("a", 3), guard="flag"))
        with h5py.File(self.path("y.h5")) as file:
            self.assertEqual(list(file["outside_range"]), [0, 0, 1, 1, 0])

    def test_numbers_too_large_for_float32_are_refused(self):
        rows = np.ones((3, 3))
        rows[2, 1] = -1e39
        rows[0] = np.inf, np.nan, 3e38
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = rows
        arguments = ("evaluate", "net.safetensors", "--input", "x.h5", "--output", "y.h5", "--overwrite")
        self.fail_with("x.h5:/input, row 2, column 1: found -1e+39, expected a number that fits in float32; evaluate "
                       "with --precision f64", *arguments)
        self.assertFalse(self.path("y.h5").exists())
        self.succeed(*arguments, "--precision", "f64")
        with h5py.File(self.path("x.h5"), "r+") as file:
            file["input"][2, 1] = 1  # infinity and NaN themselves are numbers to compute with
        self.succeed(*arguments)
        with h5py.File(self.path("y.h5")) as file:
            self.assertTrue(np.isnan(file["output"][0]).all() and np.isfinite(file["output"][1:]).all())
        self.write("x.csv", "x0,x1,x2\n1,2,3\n1,2,1e300\n")
        self.fail_with("x.csv:3, column 2: found 1e+300", "evaluate", "net.safetensors", "--input", "x.csv", "--output",
                       "y.h5", "--overwrite")

    def test_a_problem_file_is_computed_in_its_own_precision_unless_the_flag_says_another(self):
        t = 1700100000.5  # float32 tells 128 s apart there
        self.write("clock.toml", '[rhs.equations]\nx = "t - 1700100000 + 0 * x"\n[method]\nprecision = "f64"\n')
        with h5py.File(self.path("x.h5"), "w") as file:
            file["u"] = [[0.0]]
            file["t"] = [[t]]
        evaluate = ("evaluate", "--input", "x.h5", "--output", "y.h5", "--overwrite")
        def answer():
            with h5py.File(self.path("y.h5")) as file:
                self.assertEqual(file.attrs["precision"], {"f4": "f32", "f8": "f64"}[file["output"].dtype.str[1:]])
                return file["output"][0, 0], file["output"].dtype
        self.assertIn(", f64", self.succeed(*evaluate, "clock.toml"))
        self.assertEqual(answer(), (0.5, np.float64))
        self.succeed(*evaluate, "clock.toml", "--precision", "f32")
        self.assertEqual(answer()[1], np.float32)
        self.assertRegex(self.succeed("info", "clock.toml"), r"(?m)^precision +f64, as \[method\] says$")
        for flags, words in (((), " f64 graph"), (("--precision", "f32"), " f32 graph")):
            self.succeed("compile", "clock.toml", "-o", "clock.plan", "--overwrite", *flags)
            self.assertIn(words, self.succeed("explain", "clock.plan"))
        self.assertIn("note: evaluate it with --precision f64, as [method] of clock.toml says",
                      self.succeed("import", "clock.toml", "-o", "clock.h5"))
        self.write("clock.toml", '[rhs.equations]\nx = "t - 1700100000 + 0 * x"\n')
        self.succeed(*evaluate, "clock.toml")
        self.assertEqual(answer()[1], np.float32)
        self.assertNotIn("precision", self.succeed("import", "clock.toml", "-o", "clock.h5", "--overwrite"))

    def test_netcdf_attributes_say_what_numbers_mean(self):
        meant = np.array([[1.5, 2.5, 1.75], [np.nan, 1.25, 2.0], [2.0, 2.25, np.nan], [1.0, 1.0, 1.0]])
        arguments = ("evaluate", "net.safetensors", "-i", "x.h5", "-o", "y.h5", "--overwrite", "--precision", "f64")

        def evaluated(stored, **attributes):
            with h5py.File(self.path("x.h5"), "w") as file:
                file["input"] = stored
                file["input"].attrs.update(attributes)
            printed = self.succeed(*arguments)
            with h5py.File(self.path("y.h5")) as file:
                return file["output"][:], printed

        expected, printed = evaluated(meant)
        self.assertIn("2 of them with inputs that are not finite, first x.h5:/input, row 1\n", printed)
        self.assertEqual(list(np.isfinite(expected).all(axis=1)), [True, False, False, True])
        packed = np.where(np.isnan(meant), -999, (meant - 1) * 4).astype(np.int16)
        holes = np.where(np.isnan(meant), 1e20, meant).astype(np.float32)  # 1e20 as float32 has it
        for stored, attributes in ((packed, {"scale_factor": 0.25, "add_offset": 1.0, "_FillValue": np.int16(-999)}),
                                   (holes, {"_FillValue": np.float32(np.nan), "missing_value": np.float32([7, 1e20])})):
            outputs, printed = evaluated(stored, **attributes)
            np.testing.assert_array_equal(outputs, expected)
            self.assertIn("2 of them with inputs that are not finite, first x.h5:/input, row 1\n", printed)
        self.assertNotIn("finite", evaluated(meant[3:])[1])
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = meant
            file["input"].attrs["scale_factor"] = "a tenth"
        self.fail_with("x.h5:/input@scale_factor: found", *arguments)

    def test_columns_of_an_unnamed_net_are_matched_by_number_or_told(self):
        self.write("right.csv", "x0,x1,x2\n1,2,3\n")
        self.write("turned.csv", "x2,other,x0,x1\n3,9,1,2\n")
        self.write("other.csv", "a,b,c\n1,2,3\n")
        answers = set()
        for name in ("right", "turned", "other"):
            done = self.run_tool("evaluate", "net.safetensors", "-i", f"{name}.csv", "-o", f"{name}_y.csv")
            self.assertEqual(done.returncode, 0, done.stderr)
            note = "note: net.safetensors names no inputs: the columns a, b, c of other.csv are taken in their order"
            self.assertEqual(note in done.stderr, name == "other", done.stderr)
            answers.add(self.path(f"{name}_y.csv").read_text())
        self.assertEqual(len(answers), 1)
        self.succeed("evaluate", "net.safetensors", "-i", "right.csv", "-o", "y.CSV")
        self.assertIn(self.path("y.CSV").read_text(), answers)
        for ending in (".txt", ".TSV", ".json"):
            self.fail_with(f'--output: found "y{ending}", expected a name that ends in .h5, for HDF5, or in .csv; name it y.h5',
                           "evaluate", "net.safetensors", "-i", "right.csv", "-o", "y" + ending)
            self.assertFalse(self.path("y" + ending).exists())
        self.write("few.csv", "a,b\n1,2\n")
        self.fail_with("few.csv: found 2 columns, expected 3 in the order of the inputs of net.safetensors, which have "
                       "no names; or call them x0 to x2", "evaluate", "net.safetensors", "-i", "few.csv", "-o", "y.csv")

    def test_bad_inputs_are_named(self):
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = np.zeros((4, 2))
            file["flat"] = np.zeros(4)
        arguments = ("evaluate", "net.safetensors", "--input", "x.h5", "--output", "y.h5")
        self.fail_with("x.h5:/input: found 2 columns, expected [sample, feature] with 3 columns", *arguments)
        self.fail_with("x.h5:/flat: found 1 dimension", *arguments, "--input-dataset", "flat")
        self.fail_with('x.h5: found no dataset "nothing"', *arguments, "--input-dataset", "nothing")
        self.fail_with("missing.h5", "evaluate", "net.safetensors", "--input", "missing.h5", "--output", "y.h5")
        with h5py.File(self.path("unwritten.h5"), "w") as file:
            file.create_dataset("input", (400_000, 3), "f4", chunks=(65536, 3))
        self.fail_with("unwritten.h5:/input: found 4800000 bytes of numbers that were never written, expected numbers in the "
                       "file", "evaluate", "net.safetensors", "-i", "unwritten.h5", "-o", "y.h5")
        self.assertFalse(self.path("y.h5").exists())
        self.write("y.h5", "precious")
        with h5py.File(self.path("x.h5"), "w") as file:
            file["input"] = np.zeros((4, 3))
        self.fail_with("y.h5: found a file of that name", *arguments)


    def test_what_does_not_fit_is_told_what_would(self):
        arguments = ("evaluate", "net.safetensors", "--output", "y.h5", "--input")
        with h5py.File(self.path("x.h5"), "w") as file:
            file["state"], file["wide/x"], file["turned"] = np.zeros((4, 3)), np.zeros(3), np.zeros((3, 4))
        self.fail_with('x.h5: found no dataset "input", expected one for the inputs; choose with --input-dataset among state, '
                       "turned, wide/x", *arguments, "x.h5")
        self.fail_with("x.h5:/turned: found 4 columns, expected [sample, feature] with 3 columns", *arguments, "x.h5",
                       "--input-dataset", "turned")
        self.fail_with("; transpose it", *arguments, "x.h5", "--input-dataset", "turned")
        self.fail_with("x.h5:/wide: found a group, expected a dataset; name one inside it", *arguments, "x.h5",
                       "--input-dataset", "wide")
        for name in ("a/b", ""):
            self.fail_with(f'--output-dataset: found "{name}", expected a name without /', *arguments, "x.h5",
                           "--input-dataset", "state", "--output-dataset", name)
        np.save(self.path("x.npy"), np.zeros((4, 3)))
        self.fail_with("x.npy: found bytes that are no text, expected a table of numbers as text (CSV), or HDF5; write "
                       "NumPy's arrays with numpy.savetxt or h5py", *arguments, "x.npy")
        self.write("wide.csv", "x0,x1,x2\n1,2,3\n".encode("utf-16"))
        self.fail_with("wide.csv: found a text in UTF-16, expected a table of numbers as text (CSV), or HDF5; save it as UTF-8",
                       *arguments, "wide.csv")
        self.assertFalse(self.path("y.h5").exists())
        self.write("one.csv", "x0,x1,x2\n1,2,3\n")
        self.assertRegex(self.succeed(*arguments, "one.csv"), r"\A1 sample of 3 -> 3 in ")

    def test_a_net_is_not_imported_over_itself(self):
        before = self.path("net.safetensors").read_bytes()
        self.fail_with("net.safetensors: found a file that is read as well", "import", "net.safetensors", "-o",
                       "net.safetensors", "--overwrite")
        self.assertEqual(self.path("net.safetensors").read_bytes(), before)


class Info(NetTest):
    def test_models_and_results_are_described(self):
        text = self.succeed("info", "net.safetensors")
        for part in ("dense 3 -> 100", "tanh", "703", "digest", "float32"):
            self.assertIn(part, text)
        self.succeed("solve", "lorenz.toml", "--quiet")
        text = self.succeed("info", "lorenz.h5")
        for part in ("100 trajectories x 21 times x 3 components, float32", "100 success", "rho = 28", "problem_digest"):
            self.assertIn(part, text)
        self.write("each.toml", LORENZ + "[method]\natol = [1e-4, 1e-6, 1e-5]\n")
        self.succeed("solve", "each.toml", "--trajectories", "1", "--output", "each.h5")
        text = self.succeed("info", "each.h5")
        self.assertRegex(text, r"atol +1e-04, 1e-06, 1e-05\n")
        self.assertIn("1 trajectory x 21 times x 3 components", text)

    def test_times_far_from_zero_have_the_digits_that_tell_them_apart(self):
        problem = LORENZ.replace("[0, 2]", "[1.7e9, 1700000002]")
        self.write("late.toml", problem)
        self.succeed("solve", "late.toml", "--quiet")
        self.assertRegex(self.succeed("info", "lorenz.h5"), r"(?m)^time +1700000000 to 1700000002$")
        self.write("late.toml", problem + "[method]\nmax_steps = 30\n")
        said = self.succeed("solve", "late.toml", "--overwrite")
        self.assertRegex(said, r"came to t = 170000000[01]\.[0-9]{2,3} of 1700000002 in 30 steps")

    def test_of_many_components_a_few_are_shown_with_their_units(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            file["state"].attrs.create("component_units", ["K", "m/s", "Pa"], dtype=h5py.string_dtype())
        self.assertRegex(self.succeed("info", "lorenz.h5"), r"\n  y +\S+ to \S+ m/s\n")
        self.write("many.safetensors", safetensors({"0.weight": -np.eye(40), "0.bias": np.zeros(40)}))
        self.write("many.toml", NET.replace("net.safetensors", "many.safetensors").replace(
            'components = ["x", "y", "z"]', 'activations = "identity"').replace("[1, 0, 0]", "0"))
        self.succeed("solve", "many.toml")
        text = self.succeed("info", "net.h5")
        self.assertRegex(text, r"\n  u30 .*\n  9 others +\S+ to \S+\n\nprovenance")
        self.assertNotIn("u31", text)
        text = self.succeed("info", "--systems")
        for part in ("lorenz ", "van_der_pol", "pleiades", "robertson"):
            self.assertIn(part, text)


    def test_of_data_the_datasets_are_listed_and_what_could_be_done_with_them(self):
        with h5py.File(self.path("data.h5"), "w") as file:
            file["x"] = np.zeros((1000, 3))
            file["y"] = np.zeros(1000, "f4")
            file["run/time"] = np.zeros(11)
            file["note"] = "measured"
            file["pair"] = np.zeros(2, "f4,i4")
        text = self.succeed("info", "data.h5")
        self.assertRegex(text, r"\Adata.h5: an HDF5 file, neither a model nor results of an ensemble, \d.* kB\n")
        for part in ("\n  x         1,000 x 3, float64\n", "\n  y         1,000 values, float32\n",
                     "\n  run/time  11 values, float64\n", "\n  note      one value, string\n", "\n  pair  "):
            self.assertIn(part, text)
        self.assertIn("lockstep evaluate NET --input data.h5 --input-dataset x --output answers.h5   (3 columns", text)
        self.assertIn('inputs = "x", targets = "y"', text)
        with h5py.File(self.path("orbits.h5"), "w") as file:
            file["t"] = np.zeros(5)
            file["u"] = np.zeros((7, 5, 2))
        self.assertIn('time = "t", states = "u"', self.succeed("info", "orbits.h5"))
        with h5py.File(self.path("text.h5"), "w") as file:
            file["note"] = "measured"
        self.assertIn("nothing that lockstep reads", self.succeed("info", "text.h5"))
        with h5py.File(self.path("empty.h5"), "w"):
            pass
        self.assertIn("no datasets", self.succeed("info", "empty.h5"))

    def test_what_is_suggested_works(self):
        with h5py.File(self.path("data.h5"), "w") as file:
            file["run/x"] = np.ones((10, 3))
            file["run/y"] = np.ones((10, 2))
        text = self.succeed("info", "data.h5")
        words = re.search(r"lockstep (evaluate NET \S+ .*\S)   \(", text)[1].replace("NET", "net.safetensors").split()
        self.succeed(*words, "--quiet")
        data = re.search(r'(file = "data.h5"), (inputs = .*), (targets = .*)\n', text)
        self.write("train.toml", "[net]\nhidden = [4]\n[data]\n" + "\n".join(data.groups()) +
                   "\n[training]\niterations = 2\n[output]\nfile = \"made\"\n")
        self.succeed("train", "train.toml", "--quiet")


class Explain(NetTest):
    def test_a_prediction_has_reasons(self):
        text = self.succeed("explain", "net.toml", "--cpu-target", "scalar", "--threads", "1")
        for part in ("scalar", "1 thread", "100 trajectories of 3 components", "predicted", "\n- "):
            self.assertIn(part, text)
        self.assertFalse(list(self.folder.glob("*.h5")), "nothing is written")
        self.fail_with("bad.toml", "explain", "bad.toml")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
