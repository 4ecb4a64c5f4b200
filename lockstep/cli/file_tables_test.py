"""What validate says of the tables beside the numbers: others, missing ones, and files that are none.

usage: file_tables_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, TOOL, ToolTest, h5py


class Tables(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        self.write("lorenz.toml", LORENZ)
        self.succeed("solve", "lorenz.toml", "--output", "a.h5", "--quiet")
        shutil.copy(self.path("a.h5"), self.path("b.h5"))

    def test_all_that_differs_beside_the_numbers_is_listed(self):
        def rename(file, name, at, text):
            words = file[name][:]
            words[at] = text
            file[name][:] = words

        def set_number(file, name, at, number):
            file[name][at] = number

        changes = (
            (lambda file: rename(file, "component", 0, b"energy"), r"  component 0's name +x and energy\n"),
            (lambda file: rename(file, "parameter", 1, b"theta"), r"  parameter 1's name +rho and theta\n"),
            (lambda file: set_number(file, "start_time", 5, 0.5), r"  start_time of trajectory 5 +0 and 0\.5\n"),
            (lambda file: set_number(file, "trajectory", 3, 44), r"  trajectory of trajectory 3 +3 and 44\n"),
            (lambda file: set_number(file, "problem/end_time", 0, 77), r"  problem/end_time of trajectory 0 +\S+ and 77\n"),
            (lambda file: file["time"].attrs.create("units", "s"), r"  time: units +not stated and s\n"),
            (lambda file: file["problem"].attrs.modify("system", "rossler"), r"  problem: system +lorenz and rossler\n"),
        )
        for change, line in changes:
            shutil.copy(self.path("a.h5"), self.path("b.h5"))
            with h5py.File(self.path("b.h5"), "r+") as file:
                change(file)
            for flags in ((), ("--bits",)):
                done = self.run_tool("validate", *flags, "a.h5", "b.h5")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, "same bits(.|\n)*what differs in how they were made:\n(.|\n)*" + line)
                self.assertEqual("b.h5: found another equation than the one of its attribute rhs_digest" in done.stderr,
                                 "rossler" in line, done.stderr)
            self.assertRegex(self.run_tool("validate", "--json", "a.h5", "b.h5").stdout, r'"field": "' + line[2:9])
        # Two of three names exchanged: the columns are others, whatever the third is called.
        with h5py.File(self.path("b.h5"), "r+") as file:
            file["component"][:] = [b"y", b"x", b"energy"]
        self.assertEqual(self.run_tool("validate", "a.h5", "b.h5").returncode, 2)

    def change(self, name, edit):
        with h5py.File(self.path("b.h5"), "r+") as file:
            values = file[name][...]
            edit(values)
            file[name][...] = values

    def test_other_step_counts_are_told_but_the_states_are_the_same(self):
        def edit(steps):
            steps[3] += 1
        self.change("accepted", edit)
        out = self.succeed("validate", "a.h5", "b.h5")
        self.assertRegex(out, r"\Asame states: all [\d,]+ numbers of state agree, but not how many steps were taken")
        self.assertRegex(out, r"steps, evaluations +other counts in 1 trajectory")
        done = self.run_tool("validate", "--bits", "a.h5", "b.h5")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"\Adifferent: state agrees in all [\d,]+ numbers, but not what lies around it")

    def test_bits_are_told_as_json(self):
        same = json.loads(self.succeed("validate", "--bits", "--json", "a.h5", "b.h5"))
        self.assertEqual((same["same_bits"], same["exit_code"], same["different_numbers"]), (True, 0, 0))

        def edit(state):
            state[17, 4, 1] += 1
            state[18, 4, 1] = float("inf")
        self.change("state", edit)
        other = 'b "\\ü.h5'
        shutil.move(self.path("b.h5"), self.path(other))
        done = self.run_tool("validate", "--bits", "--json", "a.h5", other)
        self.assertEqual(done.returncode, 1, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["same_bits"], found["exit_code"], found["different_numbers"],
                          found["different_trajectories"], found["b"]), (False, 1, 2, 2, other))
        self.assertAlmostEqual(found["largest_absolute"], 1, delta=1e-5)
        self.fail_with("--report: found a page of the verdict, of which --bits asks for none", "validate", "--bits",
                       "--report", "page", "a.h5", "a.h5")

    def test_one_tolerance_for_all_is_that_of_each(self):
        with h5py.File(self.path("b.h5"), "r+") as file:
            atol = file.attrs["atol"]
            del file.attrs["atol"]
            file.attrs["atol"] = [atol] * 3
        for flags in ((), ("--bits",)):
            self.assertNotIn("atol", self.run_tool("validate", *flags, "a.h5", "b.h5").stdout)
        with h5py.File(self.path("b.h5"), "r+") as file:
            file.attrs["atol"] = [atol, atol, 2 * atol]
        self.assertEqual(self.run_tool("validate", "a.h5", "b.h5").returncode, 2)

    def test_a_table_that_the_file_tells_of_may_not_be_missing(self):
        self.write("dosed.toml", LORENZ + '[[impulses]]\ncomponent = "x"\nchange = 1\nevery = 0.5\n')
        self.write("ball.toml", '[rhs.equations]\nx = "v"\nv = "-9.81"\n[ensemble]\ntrajectories = 5\n'
                   'initial_state = [1, 0]\n[time]\nspan = [0, 3]\nsave = 4\n[[resets]]\ncomponent = "x"\nvalue = 0\n'
                   'direction = "falling"\nto = { v = "-0.8*v" }\n[output]\nfile = "ball.h5"\nevents = true\n')
        self.succeed("solve", "dosed.toml", "--output", "dosed.h5", "--quiet")
        self.succeed("solve", "ball.toml", "--quiet")
        for whole, tables, said in (
                ("dosed.h5", "impulse_", "/impulse_time: found nothing of that name, expected the impulses that attribute"),
                ("ball.h5", "event_", "/event_time: found nothing of that name, expected the events that attribute"),
                ("a.h5", "parameters", "/parameters: found nothing of that name, expected the numbers that the dataset")):
            shutil.copy(self.path(whole), self.path("b.h5"))
            with h5py.File(self.path("b.h5"), "r+") as file:
                for name in [name for name in file if name.startswith(tables)]:
                    del file[name]
            for flags in ((), ("--bits",)):
                self.fail_with("b.h5:" + said, "validate", *flags, whole, "b.h5")

    def test_agreement_of_a_part_is_none_of_the_whole(self):
        with h5py.File(self.path("b.h5"), "r+") as file:
            file["status"][2:] = 6  # cancelled
            file["state"][2:] = float("nan")
        for files in (("a.h5", "b.h5"), ("b.h5", "a.h5")):
            done = self.run_tool("validate", *files)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(f"No verdict on the whole: the 2 of 100 trajectories that {files[0]} and {files[1]} have both "
                          "finished agree, to the bit.", done.stdout)
            self.assertIn("98 trajectories left out, not finished in b.h5", done.stdout)

    def test_no_trajectory_is_no_agreement(self):
        for name in ("a.h5", "b.h5"):
            with h5py.File(self.path(name), "r+") as file:
                for table in [name for name in file if isinstance(file[name], h5py.Dataset)]:
                    if file[table].shape[:1] == (100,):
                        numbers = file[table][:0]
                        del file[table]
                        file[table] = numbers
        done = self.run_tool("validate", "a.h5", "b.h5")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("there is nothing to compare", done.stdout + done.stderr)

    def test_why_nothing_tells_of_rounding_is_told(self):
        self.succeed("solve", "lorenz.toml", "--certificate", "--output", "c.h5", "--quiet")
        with h5py.File(self.path("c.h5"), "r+") as file:
            file["certificate_state"][:] = float("nan")
        with h5py.File(self.path("b.h5"), "r+") as file:
            file["state"][:, 1:] *= 1.5
        done = self.run_tool("validate", "c.h5", "b.h5", "--stored-only")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("that are to tell how far rounding goes have no finite states after the start", done.stdout)
        self.assertNotIn("drives trajectories apart", done.stdout)
        self.fail_with("--lyapunov", "validate", "a.h5", "b.h5", "--lyapunov", "nan")

    def test_devices_and_pipes_are_refused_at_once(self):
        os.mkfifo(self.path("pipe"))
        self.write("drawn.toml", re.sub("initial_state = .*", 'initial_state = { file = "pipe" }', LORENZ))
        for name in ("/dev/zero", "pipe"):
            for command in (("info", name), ("import", name, "-o", "net.h5"), ("plot", name), ("explain", name),
                            ("validate", "a.h5", name), ("validate", name, "a.h5"), ("solve", "drawn.toml"),
                            ("solve", "lorenz.toml", "--output", name),
                            ("solve", "lorenz.toml", "--overwrite", "--output", name)):
                done = subprocess.run([TOOL, *command], cwd=self.folder, capture_output=True, text=True, timeout=20)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertRegex(done.stderr, "found (a device or pipe|no regular file|a file of that name)")
        self.assertFalse(self.path("pipe").is_file())

    def test_a_filter_that_is_not_known_is_named_with_a_way_out(self):
        with h5py.File(self.path("b.h5"), "r+") as file:
            states = file["state"][:]
            del file["state"]
            file.create_dataset("state", data=states, chunks=True, compression="lzf")
        done = self.run_tool("validate", "a.h5", "b.h5")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"b\.h5:/state: found numbers behind the filter lzf \(32000\), .*h5repack -f NONE")

    def test_states_that_stand_for_other_numbers_are_refused(self):
        for attribute, number in (("scale_factor", 2.0), ("add_offset", 1.0), ("_FillValue", 0.0), ("missing_value", -1.0)):
            shutil.copy(self.path("a.h5"), self.path("b.h5"))
            with h5py.File(self.path("b.h5"), "r+") as file:
                file["state"].attrs[attribute] = number
            said = f"b.h5:/state: attribute {attribute}: found {number:g}, expected none"
            self.fail_with(said, "validate", "a.h5", "b.h5")
            with h5py.File(self.path("b.h5"), "r+") as file:
                file["state"].attrs[attribute] = [number]
            self.fail_with(said, "validate", "a.h5", "b.h5")
        with h5py.File(self.path("b.h5"), "r+") as file:
            del file["state"].attrs["missing_value"]
            file["state"].attrs["_FillValue"] = float("nan")
        self.assertEqual(self.run_tool("validate", "a.h5", "b.h5").returncode, 0)

    def test_what_is_no_result_file_is_told_as_what_it_is(self):
        self.write("empty.h5", "")
        self.path("one").symlink_to("other")
        self.path("other").symlink_to("one")
        self.fail_with("empty.h5: found an empty file, expected an HDF5 file", "validate", "a.h5", "empty.h5")
        self.fail_with("one: found Too many levels of symbolic links, expected an HDF5 file", "validate", "a.h5", "one")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
