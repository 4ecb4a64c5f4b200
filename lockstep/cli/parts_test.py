"""Ensembles solved in shards, merged and indexed, from outside: the files by h5py and xarray, the messages as read.

usage: parts_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest, h5py, np


# Random states, a parameter and an end of its own for each trajectory: everything that a shard must number right.
PROBLEM = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = 101
seed = 3
initial_state = { normal = { mean = [1, 0, 0], std = 0.1 } }
parameters = { rho = { linspace = { low = 20, high = 28 } } }
[time]
span = { start = 0, end = { linspace = { low = 1, high = 2 } } }
save = 5
[output]
file = "lorenz.h5"
"""
# Datasets shared by all trajectories.
SHARED = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = 64
initial_state = { box = { low = -1, high = [1, 2, 3] } }
[time]
span = [0, 1]
save = 3
[output]
file = "lorenz.h5"
"""


def datasets(file):
    """{path: dataset} of every dataset, in groups too."""
    found = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    return found


class PartsTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.path("p.toml").write_text(PROBLEM)

    def solve_shards(self, count, *flags):
        for index in range(1, count + 1):
            self.succeed("solve", "p.toml", "--shard", f"{index}/{count}", "--quiet", *flags)
        return sorted(path.name for path in self.folder.glob("lorenz.shard-*.h5"))

    def expect_same_datasets(self, a, b):
        with h5py.File(self.path(a)) as in_a, h5py.File(self.path(b)) as in_b:
            all_a, all_b = datasets(in_a), datasets(in_b)
            self.assertEqual(sorted(all_a), sorted(all_b))
            for name, one in all_a.items():
                other = all_b[name]
                self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype), name)
                if one.dtype.kind == "O":
                    self.assertEqual(list(one[()]), list(other[()]), name)
                else:
                    self.assertEqual(one[()].tobytes(), other[()].tobytes(), name)


class Shards(PartsTest):
    def test_merged_and_indexed_shards_are_the_whole_run(self):
        self.fail_with("--certificate-samples: found 2 without --certificate, expected the two together", "solve", "p.toml",
                       "--certificate-samples", "2")
        for text, flags in ((PROBLEM, ["--certificate"]), (PROBLEM, ["--certificate", "--certificate-samples", "2"]),
                            (PROBLEM, ["--precision", "f64", "--trajectories", "7"]), (SHARED, [])):
            with self.subTest(flags=flags):
                self.path("p.toml").write_text(text)
                self.succeed("solve", "p.toml", "--output", "whole.h5", "--quiet", *flags)
                shards = self.solve_shards(7, *flags)
                self.assertEqual(shards[2], "lorenz.shard-3-of-7.h5")
                self.succeed("merge", *shards, "--output", "merged.h5")
                self.succeed("merge", *reversed(shards), "--output", "index.h5", "--index")
                for name in ("merged.h5", "index.h5"):
                    self.expect_same_datasets("whole.h5", name)
                    self.assertRegex(self.succeed("validate", "--bits", "whole.h5", name), r"\Asame bits: all")
                    self.assertRegex(self.succeed("validate", "whole.h5", name), "same bits")
                for path in self.folder.glob("*.h5"):
                    path.unlink()

    def test_a_link_to_an_index_is_the_index(self):
        self.succeed("solve", "p.toml", "--output", "whole.h5", "--quiet")
        shards = self.solve_shards(2)
        self.succeed("merge", *shards, "--output", "index.h5", "--index")
        self.path("elsewhere").mkdir()
        self.path("elsewhere/link.h5").symlink_to("../index.h5")
        self.assertRegex(self.succeed("validate", "--bits", "whole.h5", "elsewhere/link.h5"), r"\Asame bits: all")
        self.succeed("merge", "elsewhere/link.h5", "--output", "merged.h5")
        self.expect_same_datasets("whole.h5", "merged.h5")
        # Made again by way of the link, it still lies where it lay.
        self.succeed("merge", *shards, "--output", "elsewhere/link.h5", "--index", "--overwrite")
        self.assertTrue(self.path("elsewhere/link.h5").is_symlink())
        self.assertRegex(self.succeed("validate", "--bits", "whole.h5", "index.h5"), r"\Asame bits: all")

    def test_shards_of_a_grid_are_the_whole_grid(self):
        grid = PROBLEM.replace("trajectories = 101\n", "").replace("parameters = {", "# {").replace(
            "end = { linspace = { low = 1, high = 2 } }", "end = 1")
        self.path("p.toml").write_text(grid.replace(
            "[time]", "[ensemble.grid]\nrho = { linspace = [20, 28, 9] }\nx = { logspace = [0.1, 10, 3] }\n[time]"))
        self.succeed("solve", "p.toml", "--output", "whole.h5", "--quiet")
        shards = self.solve_shards(4)
        with h5py.File(self.path(shards[1]), "r+") as file:  # as a stopped run leaves it
            file["status"][2:5] = 6
            file["state"][2:5] = np.nan
            file["committed"][()] = file["committed"][()] - 3
        self.succeed("solve", "p.toml", "--shard", "2/4", "--resume", "--quiet")
        self.succeed("merge", *shards, "--output", "merged.h5")
        self.expect_same_datasets("whole.h5", "merged.h5")
        with h5py.File(self.path("merged.h5")) as file:
            self.assertEqual(list(file.attrs["grid"]), ["rho", "x"])
            self.assertEqual(file.attrs["grid_points"].tolist(), [9, 3])
            rho = file["parameters"][:, 1].reshape(9, 3)
            np.testing.assert_array_equal(rho, np.linspace(20, 28, 9)[:, None] + np.zeros(3))
            np.testing.assert_array_equal(file["initial_state"][:, 0].reshape(9, 3), np.zeros((9, 1)) + [0.1, 1, 10])
        text = self.succeed("info", "merged.h5")
        self.assertRegex(text, r"\ngrid +rho 9 x x 3\n")
        self.assertRegex(text, r"\ninitial state +of all trajectories\n  x +0\.1 to 10\n  y +-0\.\S+ to 0\.\S+\n")
        self.assertRegex(text, r"\nparameters +for each trajectory\n  sigma +10\n  rho +20 to 28\n  beta +2\.66667\n")
        self.fail_with("--trajectories: found 20, expected 27, one for each combination of ensemble.grid (rho 9 x x 3)",
                       "solve", "p.toml", "--trajectories", "20")

    def test_packed_shards_of_chosen_components_merge_like_others(self):
        chosen = PROBLEM.replace("[output]", '[output]\ncomponents = ["z", "x"]\nevery = 2').replace("= 101", "= 15000")
        self.path("p.toml").write_text(chosen)
        self.succeed("solve", "p.toml", "--output", "whole.h5", "--quiet", "--certificate")
        shards = self.solve_shards(3, "--certificate")
        for shard in shards[:2]:  # the first decides what is each trajectory's own
            self.succeed("pack", shard)
            with h5py.File(self.path(shard)) as file:
                self.assertIn("packed", file.attrs)
        self.succeed("merge", *shards, "--output", "merged.h5")
        self.succeed("merge", *shards, "--output", "index.h5", "--index")
        for name in ("merged.h5", "index.h5"):
            self.expect_same_datasets("whole.h5", name)
            with h5py.File(self.path(name)) as file:
                self.assertNotIn("packed", file.attrs)
                self.assertEqual([text.decode() for text in file["component"][:]], ["z", "x"])

    def test_a_shard_is_resumed_and_no_other_in_its_place(self):
        self.succeed("solve", "p.toml", "--output", "whole.h5", "--quiet")
        self.solve_shards(2)
        with h5py.File(self.path("lorenz.shard-2-of-2.h5"), "r+") as file:  # as a stopped run leaves it
            file["status"][3:9] = 6
            file["state"][3:9] = np.nan
            file["committed"][()] = file["committed"][()] - 6
        self.fail_with("found 6 trajectories that were not finished", "merge", "lorenz.shard-1-of-2.h5",
                       "lorenz.shard-2-of-2.h5", "--output", "merged.h5")
        shutil.copy(self.path("lorenz.shard-2-of-2.h5"), self.path("mine.h5"))
        self.fail_with("results of another run: first trajectory 50", "solve", "p.toml", "--shard", "1/2", "--output", "mine.h5",
                       "--resume", "--quiet")
        self.succeed("solve", "p.toml", "--shard", "2/2", "--resume", "--quiet")
        self.succeed("merge", "lorenz.shard-1-of-2.h5", "lorenz.shard-2-of-2.h5", "--output", "merged.h5")
        self.expect_same_datasets("whole.h5", "merged.h5")

    def test_a_shard_knows_its_place(self):
        self.solve_shards(3)
        with h5py.File(self.path("lorenz.shard-2-of-3.h5")) as file:
            self.assertEqual(file.attrs["shard"], "2/3")
            self.assertEqual(file.attrs["first_trajectory"], 33)
            self.assertEqual(file.attrs["ensemble_trajectories"], 101)
            self.assertEqual(list(file["trajectory"][:]), list(range(33, 67)))
        self.assertIn("trajectories 33 to 66 of 101", self.succeed("info", "lorenz.shard-2-of-3.h5"))

    def test_an_output_that_is_named_keeps_its_name(self):
        self.succeed("solve", "p.toml", "--shard", "2/3", "--output", "mine.h5", "--quiet")
        self.assertTrue(self.path("mine.h5").exists())

    def test_wrong_shards_are_refused(self):
        self.fail_with('--shard: found "4/3", expected I/N with I from 1 to N', "solve", "p.toml", "--shard", "4/3")
        self.fail_with('--shard: found "2", expected', "solve", "p.toml", "--shard", "2")
        self.fail_with("--shard: found 1/200 of 101 trajectories, expected at most 101 shards", "solve", "p.toml", "--shard", "1/200")
        self.path("common.toml").write_text(SHARED.replace("[output]", '[method]\ncontrol = "common"\n[output]'))
        self.fail_with("--shard: found 1/2 of an ensemble with one common step", "solve", "common.toml", "--shard", "1/2")

    def test_merging_what_does_not_fit_is_refused_by_name(self):
        shards = self.solve_shards(3)
        merge = ("merge", "--output", "whole.h5")
        self.fail_with("found no file with trajectories 33 to 66", *merge, shards[0], shards[2])
        shutil.copy(self.path(shards[1]), self.path("copy.h5"))
        self.fail_with("found trajectories 33 to 66, which", *merge, *shards, "copy.h5")
        self.succeed("solve", "p.toml", "--shard", "2/3", "--rtol", "1e-7", "--quiet", "--output", "other.h5")
        self.fail_with("other.h5: found rtol", *merge, shards[0], "other.h5", shards[2])
        self.succeed("solve", "p.toml", "--shard", "2/3", "--seed", "4", "--quiet", "--output", "other.h5", "--overwrite")
        self.fail_with("other.h5: found problem_digest", *merge, shards[0], "other.h5", shards[2])
        self.path("text.h5").write_text("text")
        self.fail_with("text.h5: found no HDF5 signature", *merge, *shards, "text.h5")
        self.path("cut.h5").write_bytes(self.path(shards[1]).read_bytes()[:9000])
        self.fail_with("cut.h5: found", *merge, shards[0], "cut.h5", shards[2])
        with h5py.File(self.path("copy.h5"), "r+") as file:
            file.attrs["lockstep_format"] = "ensemble 7"
        self.fail_with('copy.h5: found format "ensemble 7" of version',
                       *merge, shards[0], "copy.h5", shards[2])
        self.fail_with("missing.h5: found no such file", *merge, shards[0], "missing.h5")
        self.path("whole.h5").write_text("precious")
        self.fail_with("whole.h5: found a file of that name, expected none; choose another name, or replace it with "
                       "--overwrite", *merge, *shards)
        self.assertEqual(self.path("whole.h5").read_text(), "precious")
        self.succeed(*merge, *shards, "--overwrite", "--quiet")
        self.assertFalse(list(self.folder.glob(".*")), "nothing half-written is left")


class Index(PartsTest):
    def setUp(self):
        super().setUp()
        self.succeed("solve", "p.toml", "--output", "whole.h5", "--quiet")
        self.shards = self.solve_shards(3)
        self.succeed("merge", *self.shards, "--output", "index.h5", "--index")

    def test_it_opens_from_anywhere_and_after_a_move(self):
        moved = self.path("moved")
        moved.mkdir()
        for name in [*self.shards, "index.h5"]:
            shutil.move(self.path(name), moved / name)
        elsewhere = self.path("elsewhere")
        elsewhere.mkdir()
        for folder, name in ((elsewhere, "../moved/index.h5"), (moved, "index.h5"), (elsewhere, moved / "index.h5")):
            self.assertRegex(self.succeed("validate", "--bits", self.path("whole.h5"), name, cwd=folder), "same bits")
        self.expect_same_datasets("whole.h5", "moved/index.h5")

    def test_tools_open_it_like_a_file(self):
        text = self.succeed("info", "index.h5")
        self.assertIn("index of           3 files: lorenz.shard-1-of-3.h5, ", text)
        self.assertIn("101 success", text)
        if shutil.which("gnuplot"):
            self.succeed("plot", "index.h5", "--kind", "phase")
        self.succeed("merge", "index.h5", "--output", "again.h5")
        self.expect_same_datasets("whole.h5", "again.h5")

    def test_xarray_opens_it(self):
        try:
            import h5netcdf  # noqa: F401
            import xarray
        except ImportError:
            self.skipTest("xarray or h5netcdf is not installed")
        with xarray.open_dataset(self.path("index.h5"), engine="h5netcdf") as index, \
                xarray.open_dataset(self.path("whole.h5"), engine="h5netcdf") as whole:
            self.assertEqual(index.state.dims, ("trajectory", "save_point", "component"))
            xarray.testing.assert_equal(index, whole)
            for name in whole.variables:
                self.assertEqual(index[name].attrs.keys(), whole[name].attrs.keys(), name)

    def test_a_missing_part_is_named_and_shows_as_cancelled_elsewhere(self):
        self.path(self.shards[1]).unlink()
        for command in (["info", "index.h5"], ["validate", "--bits", "whole.h5", "index.h5"], ["plot", "index.h5"],
                        ["merge", "index.h5", "--output", "again.h5"]):
            self.fail_with("index.h5: found no file lorenz.shard-2-of-3.h5 behind this index, expected the file with "
                           "trajectories 33 to 66", *command)
        # HDF5 itself raises no error: what it shows must at least not look like results.
        with h5py.File(self.path("index.h5")) as file:
            self.assertTrue(np.isnan(file["state"][33:67]).all())
            self.assertTrue((file["status"][33:67] == 6).all())
            self.assertFalse(np.isnan(file["state"][:33]).any())

    def test_a_part_solved_again_otherwise_is_named(self):
        self.succeed("solve", "p.toml", "--shard", "2/3", "--seed", "4", "--quiet", "--overwrite")
        self.fail_with("lorenz.shard-2-of-3.h5: found another file than index.h5 was made of", "info", "index.h5")

    def test_an_index_of_unfinished_parts_is_stale_once_they_go_on(self):
        with h5py.File(self.path(self.shards[1]), "r+") as file:  # as a stopped run leaves it
            file["status"][3:9] = 6
            file["state"][3:9] = np.nan
        self.succeed("merge", *self.shards, "--output", "i.h5", "--index", "--allow-unfinished")
        self.succeed("info", "i.h5")
        self.succeed("solve", "p.toml", "--shard", "2/3", "--resume", "--quiet")
        for command in (["info", "i.h5"], ["validate", "whole.h5", "i.h5"], ["merge", "i.h5", "--output", "again.h5"]):
            self.fail_with("i.h5: found an index of parts that have changed since: 101 finished trajectories in them, "
                           "expected 95; make the index again", *command)
        self.succeed("merge", *self.shards, "--output", "i.h5", "--index", "--overwrite")
        self.succeed("info", "i.h5")


class Messages(ToolTest):
    def test_what_other_programs_write_is_answered_with_what_to_write(self):
        def refused(message, rhs, *flags, ensemble="initial_state = [1]"):
            self.write("p.toml", f"{rhs}\n[ensemble]\n{ensemble}\n[time]\nspan = [0, 1]\n[output]\nfile = \"p.h5\"\n")
            done = self.run_tool("solve", "p.toml", *flags)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)

        table = "[rhs.tables]\nk = { at = [0, 1], values = [1, 2]%s }\n[rhs.equations]\nx = \"-k(t) * x\""
        refused("periodic: found an unknown key, expected one of file, at, columns, values, interpolation; what comes again is "
                "called at the time within its period: k(t % 24)", table % ", periodic = true")
        refused("--guard: found stop with tables, none of which is read at a component or parameter", table % "", "--guard",
                "stop")
        refused('found ",", expected an operator, or the end; write decimal points: 0.5, not 0,5',
                '[rhs.equations]\nx = "-0,5*x"')
        refused('found "&", expected a number, a name, or an operator; write a and b', '[rhs.equations]\nx = "if(x && t, 1, 0)"')
        self.write("p.csv", 'x;y\n1;2\n1,000;2\n')
        refused("thousands without a comma: 1000, not 1,000", '[rhs.equations]\nx = "1"\ny = "1"',
                ensemble='initial_state = { file = "p.csv" }')
        self.write("far.toml", "[rhs]\nsystem = \"lorenz\"\n[time]\nspan = { start = 0, "
                               "end = { linspace = [1, 2, 1000000] } }\nsave = 100000000\n[output]\nfile = \"far.h5\"\n")
        self.fail_with("far.toml:5: time.save: found 100,000,000 save points for each of 1,000,000 spans, whose times take 800 TB, "
                       "expected less than the memory of this machine", "solve", "far.toml")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
