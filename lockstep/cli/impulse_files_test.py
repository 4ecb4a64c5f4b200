"""States that change at once: exact solutions, and that shards, resumed runs and files alone give the same bits.

usage: impulse_files_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import TOOL, ToolTest, h5py, np

# A drug in the gut and in the blood.
EQUATIONS = """
[rhs]
parameters = { absorbed = 1.2, gone = 0.15 }
[rhs.equations]
gut = "-absorbed * gut"
blood = "absorbed * gut - gone * blood"
"""
DOSED = EQUATIONS + """
[ensemble]
trajectories = 70
initial_state = [0, 1]
parameters = { gone = { box = [0.1, 0.2] } }
[time]
span = [0, 48]
save = 97
[method]
precision = "f64"
rtol = 1e-11
atol = 1e-11
[[impulses]]
component = "gut"
change = 100
every = 12
[[impulses]]
component = "blood"
factor = 0.5
times = 30.25
[output]
file = "dosed.h5"
"""
OWN = DOSED.replace("change = 100", "change = { lognormal = { median = 100, sigma = 0.3 } }")
SOME = DOSED.split("[[impulses]]")[0] + """
[[impulses]]
file = "doses.csv"
[output]
file = "dosed.h5"
"""
CSV = """# of some patients
trajectory,time,component,change,factor
3,24,gut,100,1
0,0,gut,50,1
3,12.5,blood,0,0.5
69,47,0,7,2
3,40,gut,100,1
"""


def flow(u, absorbed, gone, duration):
    gut, blood = u
    fast, slow = np.exp(-absorbed * duration), np.exp(-gone * duration)
    return [gut * fast, blood * slow + gut * absorbed / (absorbed - gone) * (slow - fast)]


def exact(start, impulses, times, absorbed, gone):
    """States at the times, before an impulse there; impulses (time, component, change, factor), by time."""
    states = []
    for end in times:
        u, t = list(start), times[0]
        for when, component, change, factor in impulses:
            if not t <= when < end:
                continue
            u = flow(u, absorbed, gone, when - t)
            t = when
            u[component] = factor * u[component] + change
        states.append(flow(u, absorbed, gone, end - t))
    return np.array(states)


class ImpulsesTest(ToolTest):
    silent = one_line = False

    def setUp(self):
        super().setUp()
        self.path("doses.csv").write_text(CSV)
        for name, text in (("shared", DOSED), ("own", OWN), ("some", SOME)):
            self.path(name + ".toml").write_text(text)

    def of_row(self, file, row):
        """Read by the page: (time, component, change, factor)."""
        columns = []
        for name in ("time", "component", "change", "factor"):
            column = file["impulse_" + name]
            if "impulse_trajectory" in file:
                columns.append(column[:][file["impulse_trajectory"][:] == file["trajectory"][row]])
            else:
                columns.append(column[row] if column.ndim == 2 else column[:])
        return list(zip(*columns))


class Solutions(ImpulsesTest):
    def test_they_are_exact_to_the_tolerance(self):
        for name in ("shared", "own", "some"):
            self.succeed("solve", name + ".toml", "--quiet", "--overwrite")
            with h5py.File(self.path("dosed.h5")) as file:
                self.assertTrue((file["status"][:] == 0).all())
                jumps = 0
                for row in range(70):
                    impulses = self.of_row(file, row)
                    jumps += len(impulses)
                    expected = exact([0, 1], impulses, file["time"][:], *file["parameters"][row])
                    # Errors of steps are a few times rtol of states up to 150.
                    np.testing.assert_allclose(file["state"][row], expected, atol=1e-8)
                self.assertEqual(jumps, 5 if name == "some" else 70 * 5)

    def test_a_file_alone_says_what_happened(self):
        self.succeed("solve", "shared.toml", "--quiet")
        with h5py.File(self.path("dosed.h5")) as file:
            self.assertEqual(self.of_row(file, 5),
                             [(0, 0, 100, 1), (12, 0, 100, 1), (24, 0, 100, 1), (30.25, 1, 0, 0.5), (36, 0, 100, 1)])
            self.assertEqual(file.attrs["impulses"], "5 changes of gut, blood, at t = 0 to 36")
            self.assertEqual([name for name in file if name.startswith("impulse")],
                             ["impulse", "impulse_change", "impulse_component", "impulse_factor", "impulse_time"])
        self.succeed("solve", "own.toml", "--quiet", "--overwrite")
        with h5py.File(self.path("dosed.h5")) as file:
            self.assertEqual(file["impulse_change"].shape, (70, 5))
            self.assertEqual((file["impulse_time"].shape, file["impulse_factor"].shape), ((5,), (5,)))
        self.succeed("solve", "some.toml", "--quiet", "--overwrite")
        with h5py.File(self.path("dosed.h5")) as file:
            self.assertEqual(list(file["impulse_trajectory"][:]), [0, 3, 3, 3, 69])
            self.assertEqual(file.attrs["impulses"],
                             "0 to 3 changes of each trajectory's own, of gut, blood, at t = 0 to 47")

    def test_the_pages_examples_are_what_it_says(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/problem_file.md").read_text()
        example = page.split("A drug taken every 12 hours", 1)[1].split("```toml\n", 1)[1].split("```", 1)[0]
        self.path("page.toml").write_text(example)
        self.succeed("solve", "page.toml", "--quiet", "--precision", "f64", "--rtol", "1e-10", "--atol", "1e-10")
        with h5py.File(self.path("doses.h5")) as file:
            self.assertEqual(list(file["impulse_time"][:]), [0, 12, 24, 36])
            for row in (0, 999):
                expected = exact([0, 0], self.of_row(file, row), file["time"][:], *file["parameters"][row])
                np.testing.assert_allclose(file["state"][row], expected, atol=1e-7)
        section = page.split("## [[impulses]]", 1)[1]
        tables = section.split("```toml\n", 1)[1].split("```", 1)[0]
        csv = section.split("\n```\n", 3)[2].split("```", 1)[0]
        self.path("doses.csv").write_text(csv)
        head = DOSED.split("[[impulses]]")[0].replace("48", "120")
        more = '[[impulses]]\nfile = "doses.csv"\n[output]\nfile = "page.h5"\n'
        self.path("page.toml").write_text(head + tables + more)
        self.succeed("solve", "page.toml", "--quiet")
        with h5py.File(self.path("page.h5")) as file:
            doses = [(12 * k, 0, 100, 1) for k in range(10)] + [(30, 1, 0, 0.5), (75.5, 1, 0, 0.5)]
            self.assertEqual(self.of_row(file, 2), sorted(doses))
            self.assertEqual(self.of_row(file, 1), sorted(doses + [(6.5, 0, 50, 1)]))
            self.assertEqual(len(self.of_row(file, 0)), 14)

    def test_they_are_told(self):
        self.assertIn("impulses      5 changes of gut, blood, at t = 0 to 36", self.succeed("explain", "shared.toml"))
        self.assertIn("  impulses: 5 changes of gut, blood, at t = 0 to 36", self.succeed("solve", "shared.toml"))
        self.assertIn("impulses         5 changes of gut", self.succeed("info", "dosed.h5"))
        self.path("late.toml").write_text(DOSED.replace("times = 30.25", "times = [30.25, 48]"))
        done = self.run_tool("solve", "late.toml", "--overwrite")
        self.assertRegex(done.stderr, r"note: 1 of 2 impulses of \S*late.toml:\d+: impulses\[1\].times does nothing")


class Parts(ImpulsesTest):
    def test_shards_indices_and_packed_files_hold_the_whole_runs_bits(self):
        for name in ("shared", "own", "some"):
            self.succeed("solve", name + ".toml", "--quiet", "--overwrite")
            for index in (1, 2, 3):
                self.succeed("solve", name + ".toml", "--shard", f"{index}/3", "--quiet", "--overwrite")
            shards = sorted(self.folder.glob("dosed.shard-*.h5"))
            self.succeed("merge", *shards, "--output", "merged.h5", "--quiet", "--overwrite")
            self.succeed("merge", *shards, "--output", "index.h5", "--index", "--quiet", "--overwrite")
            self.succeed("pack", "dosed.h5", "--output", "packed.h5", "--quiet", "--overwrite")
            with h5py.File(self.path("dosed.h5")) as whole:
                for other in ("merged.h5", "index.h5", "packed.h5"):
                    with h5py.File(self.path(other)) as file:
                        self.assertEqual(set(file), set(whole))
                        for key in whole:
                            if isinstance(whole[key], h5py.Dataset) and whole[key].dtype.kind != "O":
                                self.assertEqual(whole[key][()].tobytes(), file[key][()].tobytes(), (name, other, key))
                        self.assertEqual(file.attrs["impulses"], whole.attrs["impulses"])
            # 1 of 3 has the first two with impulses of "some", 2 of 3 none, 3 of 3 the last.
            with h5py.File(shards[1]) as part:
                rows = [self.of_row(part, row) for row in range(2)]
            with h5py.File(self.path("dosed.h5")) as whole:
                self.assertEqual(rows, [self.of_row(whole, 23 + row) for row in range(2)])

    def test_a_file_is_judged_by_its_problem_solved_again(self):
        for name in ("shared", "own", "some"):
            for index in ("", "2/3"):
                shard = ["--shard", index] if index else []
                loosely = ["--quiet", "--overwrite", "--rtol", "1e-4", "--atol", "1e-4", *shard]
                self.succeed("solve", name + ".toml", "--output", "a.h5", *loosely)
                self.succeed("solve", name + ".toml", "--output", "b.h5", "--precision", "f32", *loosely)
                self.assertIn("computed anew from the problem in a.h5", self.succeed("validate", "a.h5", "b.h5"))

    def test_components_that_are_chosen_change_nothing(self):
        self.succeed("solve", "own.toml", "--quiet")
        self.path("blood.toml").write_text(OWN + 'components = ["blood"]\n')
        self.succeed("solve", "blood.toml", "--quiet", "--output", "blood.h5")
        loosely = ["--quiet", "--rtol", "1e-4", "--atol", "1e-4"]
        self.succeed("solve", "blood.toml", "--output", "a.h5", *loosely)
        self.succeed("solve", "blood.toml", "--output", "b.h5", "--precision", "f32", *loosely)
        with h5py.File(self.path("dosed.h5")) as whole, h5py.File(self.path("blood.h5")) as part:
            self.assertEqual(whole["state"][:, :, 1].tobytes(), part["state"][:, :, 0].tobytes())
            self.assertEqual(list(part["impulse_component"][:]), [0, 0, 0, 1, 0], "indices in the whole state")
        self.assertIn("computed anew", self.succeed("validate", "a.h5", "b.h5"))

    def test_other_impulses_are_another_problem(self):
        self.succeed("solve", "own.toml", "--quiet")
        self.path("other.toml").write_text(OWN.replace("factor = 0.5", "factor = 0.25"))
        self.succeed("solve", "other.toml", "--quiet", "--output", "other.h5")
        said = self.run_tool("validate", "dosed.h5", "other.h5").stdout
        self.assertIn("impulse factors [3] differs, 0.5 and 0.25", said)
        self.succeed("solve", "own.toml", "--quiet", "--shard", "1/2")
        self.succeed("solve", "other.toml", "--quiet", "--shard", "2/2")
        self.fail_with("found problem_digest", "merge", *self.folder.glob("dosed.shard-*.h5"), "--output", "merged.h5")


class Continued(ImpulsesTest):
    def test_what_is_open_is_solved_as_it_would_have_been(self):
        for name in ("shared", "own", "some"):
            self.succeed("solve", name + ".toml", "--quiet", "--overwrite")
            with h5py.File(self.path("dosed.h5"), "r+") as file:
                whole = file["state"][:].tobytes()
                file["status"][2:40] = file["status"][69:] = 6  # cancelled
                file["state"][2:40] = np.nan
            text = self.path(name + ".toml").read_text()
            self.path("other.toml").write_text(text.replace("factor = 0.5", "factor = 0.25"))
            self.path("doses.csv").write_text(CSV.replace("3,40,gut,100", "3,40,gut,101"))
            different = {"shared": "impulse 3: factor 0.5, expected impulse 3: factor 0.25",
                         "own": "impulse 3 of trajectory 0: factor 0.5, expected",
                         "some": "impulse 2 of trajectory 3: change 100, expected"}[name]
            self.fail_with(different, "solve", "other.toml", "--quiet", "--resume")
            self.path("doses.csv").write_text(CSV)
            self.succeed("solve", name + ".toml", "--quiet", "--resume")
            with h5py.File(self.path("dosed.h5")) as file:
                self.assertEqual((file.attrs["resumed"], file["state"][:].tobytes()), (1, whole), name)

    def test_a_killed_run_goes_on_to_the_same_bits(self):
        self.path("long.toml").write_text(SOME.replace("= 70", "= 150000").replace("save = 97", "save = 13"))
        # Seconds of steps; the first trajectories are stored within a half.
        command = ["solve", "long.toml", "--quiet", "--threads", "1", "--method", "bs3", "--rtol", "1e-10"]
        running = subprocess.Popen([TOOL, *command, "--output", "killed.h5"], cwd=self.folder)
        begun = time.monotonic()
        stored = 0
        while stored == 0 and time.monotonic() - begun < 60 and running.poll() is None:
            time.sleep(0.02)
            try:
                with h5py.File(self.path("killed.h5.part")) as file:
                    stored = int(file["committed"][()])
            except OSError:
                pass
        self.assertIsNone(running.poll())
        running.send_signal(signal.SIGKILL)
        running.wait()
        self.succeed(*command, "--output", "killed.h5", "--resume")
        self.succeed(*command, "--output", "whole.h5")
        with h5py.File(self.path("killed.h5")) as killed, h5py.File(self.path("whole.h5")) as whole:
            self.assertEqual(killed.attrs["resumed"], 1)
            self.assertEqual(killed["state"][:].tobytes(), whole["state"][:].tobytes())


class Trained(ImpulsesTest):
    FIT = """
[rhs]
parameters = { absorbed = { start = 0.5, positive = true }, gone = { start = 0.1, positive = true } }
[rhs.equations]
gut = "-absorbed * gut"
blood = "absorbed * gut - gone * blood"
[[phase]]
optimiser = "lbfgs"
iterations = 200
[method]
precision = "f64"
rtol = 1e-9
[output]
file = "fit"
overwrite = true
"""

    def fitted(self, text):
        return {name: float(value) for name, value in re.findall(r"^(absorbed|gone) = (\S+)", self.train(text), re.M)}

    def train(self, text):
        self.path("fit.toml").write_text(text)
        return self.succeed("train", "fit.toml")

    def test_rates_are_found_across_doses(self):
        rows, doses = ["patient,hour,gut,blood"], ["patient,hour,component,change,factor"]
        for patient, name in enumerate(("ann", "bob", "cid")):
            impulses = [(12 * k, 0, 100 - 10 * patient, 1) for k in range(3)] + [(30, 1, 0, 0.5)] * (patient == 1)
            doses += [f"{name},{when},{('gut', 'blood')[c]},{change},{factor}" for when, c, change, factor in impulses]
            times = [0, 1.5, 4, 12, 14, 20, 25, 29, 31, 36]
            for when, (gut, blood) in zip(times, exact([0, 0], impulses, times, 1.2, 0.25)):
                rows.append(f"{name},{when},{0 if when == 0 else ''},{float(blood)!r}")
        self.path("blood.csv").write_text("\n".join(rows) + "\n")
        self.path("mg.csv").write_text("\n".join(doses) + "\n")
        data = ('[data]\nfile = "blood.csv"\ntime = "hour"\nstates = ["gut", "blood"]\ntrajectory = "patient"\n'
                '[[impulses]]\nfile = "mg.csv"\n')
        out = self.train(data + self.FIT)
        self.assertIn("3 trajectories of 10 points, 27 of 60 numbers missing, 10 impulses", out)
        found = self.fitted(data + self.FIT)
        self.assertAlmostEqual(found["absorbed"], 1.2, delta=1e-5)
        self.assertAlmostEqual(found["gone"], 0.25, delta=1e-5)
        # A checkpoint is not gone on from with other doses.
        self.path("mg.csv").write_text("\n".join(doses).replace("ann,12,gut,100", "ann,12,gut,110") + "\n")
        self.fail_with("data", "train", "fit.toml", "--resume")

    def test_the_pages_example_is_what_it_says(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/training.md").read_text()
        example = page.split("\n## Doses\n", 1)[1].split("```toml\n", 1)[1].split("```", 1)[0]
        blood, doses = ["patient,hour,blood"], ["patient,hour,change"]
        for patient in (101, 7):
            impulses = [(12 * k, 0, 100 - patient / 4, 1) for k in range(3)]
            doses += [f"{patient},{when},{change}" for when, _, change, _ in impulses]
            times = [0, 1.5, 4, 12, 14, 20, 25, 29, 31, 36]
            states = exact([0, 0], impulses, times, 1.2, 0.25)
            blood += [f"{patient},{when},{float(state[1])!r}" for when, state in zip(times, states)]
        self.path("blood.csv").write_text("\n".join(blood) + "\n")
        self.path("doses.csv").write_text("\n".join(doses) + "\n")
        out = self.train(example)
        for name, rate in (("ka", 1.2), ("ke", 0.25)):
            self.assertAlmostEqual(float(re.search(rf"^{name} = (\S+)", out, re.M).group(1)), rate, delta=1e-3)

    def test_a_solves_result_brings_those_that_it_had(self):
        for name in ("own", "some"):
            self.path(name + ".toml").write_text({"own": OWN, "some": SOME}[name].replace(
                "parameters = { gone = { box = [0.1, 0.2] } }", "").replace("[0, 1]", "[1, 1]"))
            self.succeed("solve", name + ".toml", "--quiet", "--overwrite")
            found = self.fitted('[data]\nfile = "dosed.h5"\n' + self.FIT)
            self.assertAlmostEqual(found["absorbed"], 1.2, delta=1e-5)
            self.assertAlmostEqual(found["gone"], 0.15, delta=1e-5)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
