"""What validate says of the tables beside the numbers: others, missing ones, and files that are none.

usage: file_tables_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, ToolTest, h5py


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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
