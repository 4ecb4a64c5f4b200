"""Which resets struck, and when, in result files: balls' bounces by hand, runs that are killed and go on, shards, what
validate and info say, pictures, and what is refused.

usage: event_files_test.py LOCKSTEP [unittest arguments]
LOCKSTEP_SEED in the environment sets the moments at which runs are killed.
Exit code 77 without h5py: skipped, not passed.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import TOOL, ToolTest, h5py, np

SEED = int(os.environ.get("LOCKSTEP_SEED", 1))
COLUMNS = ("event_time", "event_reset", "event_trajectory")
BALLS = """
[rhs]
parameters = {{ g = 9.81, bounce = 0.9 }}
[rhs.equations]
x = "v"
v = "-g"
[ensemble]
trajectories = {count}
initial_state = {{ x = {{ linspace = [1, 10] }}, v = 0 }}
[time]
span = [0, 4]
save = 3
unit = "s"
[method]
precision = "f64"
rtol = 1e-11
atol = 1e-11
{method}
[[resets]]
component = "x"
direction = "falling"
to = {{ x = 0, v = "-bounce * v" }}
[[resets]]
component = "v"
direction = "falling"
to = {{ v = 0 }}
[output]
file = "balls.h5"
{output}
"""


def bounces(height, end, g=9.81, bounce=0.9):
    flight = t = np.sqrt(2 * height / g)
    times = []
    while t < end:
        times.append(t)
        flight *= bounce
        t += 2 * flight
    return times


class EventsTest(ToolTest):
    silent = one_line = False
    timeout = 300

    def setUp(self):
        super().setUp()
        self.write_balls("balls.toml")

    def write_balls(self, name, count=70, method="", output="events = true"):
        self.path(name).write_text(BALLS.format(count=count, method=method, output=output))

    def log(self, name):
        with h5py.File(self.path(name)) as file:
            return [file[column][:] for column in COLUMNS]

    def assert_same_log(self, a, b, message=""):
        for ours, theirs in zip(self.log(a), self.log(b)):
            self.assertEqual(ours.tobytes(), theirs.tobytes(), message)


class Files(EventsTest):
    def test_times_are_those_of_bounces(self):
        said = self.succeed("solve", "balls.toml")
        times, resets, whose = self.log("balls.h5")
        self.assertEqual((times.dtype, resets.dtype, whose.dtype), (np.float64, np.int32, np.int64))
        self.assertTrue((np.diff(whose) >= 0).all())
        self.assertIn(f"events: {len(times)}\n", said)
        for row, height in enumerate(np.linspace(1, 10, 70)):
            own = times[(whose == row) & (resets == 0)]
            np.testing.assert_allclose(own, bounces(height, 4), atol=1e-10)
            np.testing.assert_array_equal(times[whose == row], np.sort(times[whose == row]))
        with h5py.File(self.path("balls.h5")) as file:
            self.assertEqual(file["event_time"].attrs["units"], "s")
            self.assertEqual(list(file["event_reset"].attrs["resets"]),
                             ["x = 0, v = -bounce * v where x falls through 0", "v = 0 where v falls through 0"])
            self.assertEqual(file.attrs["events"], 1)
            for name in COLUMNS[:2]:
                self.assertEqual(file[name].dims[0][0].name, "/event_trajectory")
        info = self.succeed("info", "balls.h5")
        counts = np.bincount(whose)
        self.assertRegex(info, rf"events +{len(times)}, {counts.min()} to {counts.max()} in a trajectory\n")
        self.assertRegex(info, rf"  reset 1 +{(resets == 1).sum()}: v = 0 where v falls through 0\n")

    def test_no_bit_depends_on_threads_targets_shards_or_stored_components(self):
        self.succeed("solve", "balls.toml", "--quiet", "--threads", "1")
        self.succeed("solve", "balls.toml", "--quiet", "--threads", "3", "--cpu-target", "scalar", "--output", "other.h5")
        self.assert_same_log("balls.h5", "other.h5")
        self.write_balls("part.toml", output='events = true\ncomponents = ["v"]\nevery = 2')
        self.succeed("solve", "part.toml", "--quiet", "--output", "part.h5")
        self.assert_same_log("balls.h5", "part.h5")
        for index in (1, 2, 3):
            self.succeed("solve", "balls.toml", "--shard", f"{index}/3", "--quiet")
        shards = sorted(self.folder.glob("balls.shard-*.h5"))
        self.succeed("merge", *shards, "--output", "merged.h5", "--quiet")
        self.succeed("merge", *shards, "--output", "index.h5", "--index", "--quiet")
        self.succeed("pack", "balls.h5", "--output", "packed.h5", "--quiet")
        for other in ("merged.h5", "index.h5", "packed.h5"):
            self.assert_same_log("balls.h5", other, other)
            self.assertIn("same bits", self.succeed("validate", "--bits", "balls.h5", other))
        self.write_balls("without.toml", output="")
        self.succeed("solve", "without.toml", "--quiet", "--output", "without.shard-02-of-03.h5", "--shard", "2/3")
        self.fail_with("events", "merge", shards[0], "without.shard-02-of-03.h5", shards[2], "--output", "mixed.h5")

    def test_without_the_key_nothing_is_kept(self):
        self.write_balls("without.toml", output="")
        self.succeed("solve", "without.toml", "--quiet", "--output", "without.h5")
        self.succeed("solve", "balls.toml", "--quiet")
        with h5py.File(self.path("without.h5")) as file, h5py.File(self.path("balls.h5")) as balls:
            self.assertEqual([name for name in file if name.startswith("event")], [])
            self.assertNotIn("events", file.attrs)
            self.assertEqual(file["state"][:].tobytes(), balls["state"][:].tobytes())
            self.assertEqual(file.attrs["problem_digest"], balls.attrs["problem_digest"])
        self.assertNotIn("events ", self.succeed("info", "without.h5"))
        self.assertIn("same bits", self.succeed("validate", "balls.h5", "without.h5"))
        self.fail_with("events none, expected events 1", "solve", "balls.toml", "--resume", "--output", "without.h5")

    def test_who_asks_without_resets_is_told(self):
        text = BALLS.format(count=3, method="", output="events = true").split("[[resets]]")
        self.path("none.toml").write_text(text[0] + "[event]\ncomponent = \"x\"\n[output]\nfile = \"none.h5\"\nevents = true\n")
        self.fail_with("output.events: found true, and no resets, expected resets, whose events they are; drop it: the end "
                       "times tell where an event stopped a trajectory", "solve", "none.toml")
        for key, said in (("events = 3", "output.events: found 3, expected true or false"),
                          ("keep_events = true", "output.keep_events: found an unknown key.*write events = true"),
                          ("spikes = true", "write events = true")):
            self.write_balls("wrong.toml", output=key)
            self.assertRegex(self.run_tool("solve", "wrong.toml").stderr, said)


class Continued(EventsTest):
    def test_what_is_open_is_solved_as_it_would_have_been(self):
        self.succeed("solve", "balls.toml", "--quiet")
        shutil.copy(self.path("balls.h5"), self.path("whole.h5"))
        with h5py.File(self.path("balls.h5"), "r+") as file:
            file["status"][2:40] = file["status"][69:] = 6  # cancelled
        self.succeed("solve", "balls.toml", "--quiet", "--resume")
        self.assert_same_log("balls.h5", "whole.h5")

    def test_a_run_that_is_killed_goes_on_to_the_same_bits(self):
        count = 6000
        self.write_balls("slow.toml", count, method="max_step = 2e-4")
        started = time.monotonic()
        self.succeed("solve", "slow.toml", "--quiet", "--output", "whole.h5")
        whole = time.monotonic() - started
        moments = random.Random(SEED)
        killed = 0
        for _ in range(40):
            run = subprocess.Popen([TOOL, "solve", "slow.toml", "--quiet", "--resume"], cwd=self.folder)
            try:
                run.wait(moments.uniform(0.15, 0.5) * whole)
                break
            except subprocess.TimeoutExpired:
                run.send_signal(moments.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
                run.wait()
                killed += 1
            part = self.path("balls.h5.part")
            if part.exists():
                self.assertTrue(self.path("balls.h5.part.events").exists(), f"seed {SEED}")
                drawn = self.run_tool("plot", "balls.h5.part", "--kind", "raster", "--output", "part.svg")
                if drawn.returncode != 0:  # killed early
                    self.assertIn("found no event in any trajectory", drawn.stderr, f"seed {SEED}")
        self.succeed("solve", "slow.toml", "--quiet", "--resume")
        self.assertGreater(killed, 0, f"seed {SEED}")
        self.assert_same_log("balls.h5", "whole.h5", f"seed {SEED}")
        self.assertIn("same bits", self.succeed("validate", "--bits", "balls.h5", "whole.h5"))
        self.assertFalse(self.path("balls.h5.part.events").exists())

    def test_lost_events_are_told_and_no_step_is_counted_twice(self):
        self.succeed("solve", "balls.toml", "--quiet")
        shutil.copy(self.path("balls.h5"), self.path("whole.h5"))
        with h5py.File(self.path("balls.h5"), "r+") as file:
            file["status"][30:40] = 6  # cancelled
            for column in COLUMNS:
                del file[column]
        self.path("balls.h5").rename(self.path("balls.h5.part"))
        self.fail_with("found no events, which balls.h5.part.events had beside it; finish the solve: lockstep solve --resume",
                       "plot", "balls.h5.part", "--kind", "raster")
        done = self.run_tool("solve", "balls.toml", "--resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        with h5py.File(self.path("balls.h5")) as file, h5py.File(self.path("whole.h5")) as whole:
            stored = len(whole["status"]) - 10
            self.assertIn(f"the events of {stored} trajectories are missing (balls.h5.part.events): solving them again",
                          done.stderr)
            for total, column in (("accepted_steps", "accepted"), ("rejected_steps", "rejected"),
                                  ("rhs_evaluations", "evaluations")):
                self.assertEqual(file.attrs[total], file[column][:].sum())
                self.assertEqual(file.attrs[total], whole.attrs[total])
        self.assert_same_log("balls.h5", "whole.h5")


class Judged(EventsTest):
    def change(self, name, change):
        shutil.copy(self.path("balls.h5"), self.path(name))
        with h5py.File(self.path(name), "r+") as file:
            columns = [file[column][:] for column in COLUMNS]
            changed = change(*columns)
            for column, values in zip(COLUMNS, changed):
                del file[column]
                file[column] = values

    def test_a_changed_time_a_missing_and_a_spare_one_are_found(self):
        self.succeed("solve", "balls.toml", "--quiet", "--certificate")
        times, _, whose = self.log("balls.h5")
        count, row = len(times), whose[17]

        def later(times, resets, whose):
            times[17] = np.nextafter(times[17], 9)
            return times, resets, whose

        def missing(*columns):
            return [np.delete(column, 17) for column in columns]

        def spare(times, resets, whose):
            return np.insert(times, 17, times[17]), np.insert(resets, 17, 1), np.insert(whose, 17, whose[17])

        for change, said in ((later, f"{count} and {count} events, others in 1 trajectory, at times that are at most"),
                             (missing, f"{count} and {count - 1} events, others in 1 trajectory; first"),
                             (spare, f"{count} and {count + 1} events, others in 1 trajectory; first")):
            self.change("other.h5", change)
            for flags in ([], ["--bits"]):
                done = self.run_tool("validate", *flags, "balls.h5", "other.h5")
                self.assertEqual(done.returncode, 1, change.__name__)
                self.assertIn("different: state agrees in all", done.stdout)
                self.assertIn(said, done.stdout)
                self.assertIn(f"first in trajectory {row}: its event {17 - np.searchsorted(whose, row)} is", done.stdout)
            done = self.run_tool("validate", "--json", "balls.h5", "other.h5")
            verdict = json.loads(done.stdout)
            self.assertEqual((done.returncode, verdict["outcome"], verdict["same_bits"]), (1, "disagree", False))
            self.assertIn(f"the events of trajectory {row} are others, though its states differ in no bit",
                          verdict["sentence"])
            self.assertEqual(verdict["events"]["with_other_resets"], 0 if change is later else 1)
            self.run_tool("validate", "--report", "page", "--quiet", "balls.h5", "other.h5")
            self.assertIn("They do not agree", self.path("page/index.html").read_text())
            shutil.rmtree(self.path("page"))

    def test_where_states_part_by_rounding_times_may(self):
        for method in ("tsit5", "dop853"):
            self.succeed("solve", "balls.toml", "--quiet", "--overwrite", "--method", method, "--rtol", "1e-5", "--atol",
                         "1e-5", "--output", method + ".h5")
        said = self.run_tool("validate", "tsit5.h5", "dop853.h5").stdout
        self.assertIn("events", said)
        self.succeed("solve", "balls.toml", "--quiet", "--precision", "f32", "--rtol", "1e-6", "--atol", "1e-6")
        shutil.copy(self.path("balls.h5"), self.path("port.h5"))
        with h5py.File(self.path("port.h5"), "r+") as file:
            file["state"][:, 1:] = np.nextafter(file["state"][:, 1:], np.float32(100))
            file["event_time"][:] *= 1 + 1e-8
        done = self.run_tool("validate", "balls.h5", "port.h5")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"Of the resets: .* at times that are at most [\d.e-]+ apart")


@unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
class Pictures(EventsTest):
    def picture_text(self, name):
        return "".join(xml.etree.ElementTree.parse(self.path(name)).getroot().itertext())

    def test_a_raster_has_a_stroke_for_each_event(self):
        self.succeed("solve", "balls.toml", "--quiet")
        times = self.log("balls.h5")[0]
        self.assertIn("balls_raster.png\n", self.succeed("plot", "balls.h5"))
        self.succeed("plot", "balls.h5", "--kind", "raster", "--output", "raster.svg")
        svg = self.path("raster.svg").read_text()
        text = self.picture_text("raster.svg")
        for part in ("events", "trajectory", "rate (1/s)", "time (s)", "reset", "70 trajectories"):
            self.assertIn(part, text)
        strokes = len(re.findall(r"M([\d.]+),[\d.]+ L\1,[\d.]+\s", svg))
        self.assertGreaterEqual(strokes, len(times))
        self.succeed("plot", "balls.h5", "--kind", "raster", "--trajectories", "5", "--output", "few.svg")
        self.assertIn("5 of 70 trajectories", self.picture_text("few.svg"))

    def test_rates_are_in_the_unit_of_the_time_alone_and_beside_their_numbers(self):
        # Once in 5,000 s: the numbers of the rate are wide, "0.0002".
        self.write("late.toml", '[rhs.equations]\nx = "1"\n[ensemble]\ninitial_state = [0]\n[time]\n'
                                'span = [1.7e9, 1700100000]\nunit = "seconds since 1970-01-01"\n[method]\nprecision = "f64"\n'
                                '[[resets]]\ncomponent = "x"\nvalue = 5000\nto = { x = 0 }\n[output]\nfile = "late.h5"\n'
                                'events = true\n')
        self.succeed("solve", "late.toml", "--quiet")
        self.succeed("plot", "late.h5", "--kind", "raster", "--output", "late.svg")
        self.assertIn("rate (1/seconds)", self.picture_text("late.svg"))
        self.assertIn("(seconds since 1970-01-01)", self.picture_text("late.svg"))

    def test_who_has_no_events_is_told(self):
        self.write_balls("without.toml", output="")
        self.succeed("solve", "without.toml", "--quiet")
        self.assertNotIn("raster", self.succeed("plot", "balls.h5"))
        self.fail_with("found no events; solve with events = true in [output], expected results that raster can show", "plot",
                       "balls.h5", "--kind", "raster")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
