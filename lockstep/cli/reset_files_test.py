"""States that change at events: exact solutions, and that shards, resumed runs and files alone give the same bits.

usage: reset_files_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest, h5py, np

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/problem_file.md"
# Balls of other heights, over a floor each, which count their bounces and keep their highest point since the start.
BALLS = """
[rhs]
parameters = { g = 9.81, bounce = 0.9, floor = 0 }
[rhs.equations]
x = "v"
v = "-g"
bounces = "0"
last = "0"
peak = "0"
[ensemble]
trajectories = 70
initial_state = { x = { linspace = [1, 10] }, v = 2, bounces = 0, last = 0, peak = 0 }
parameters = { bounce = { linspace = [0.85, 0.95] } }
[time]
span = [0, 4]
save = 81
[method]
precision = "f64"
rtol = 1e-11
atol = 1e-11
[[resets]]
component = "x"
direction = "falling"
to = { x = 0, v = "-bounce * v", bounces = "bounces + 1", last = "t" }
[[resets]]
component = "v"
direction = "falling"
to = { peak = "max(peak, x)" }
[output]
file = "balls.h5"
"""
OF_FUNCTION = BALLS.replace('component = "x"', 'function = "x - floor"').replace("x = 0, v", 'x = "floor", v')
LOOSELY = ["--quiet", "--overwrite", "--rtol", "1e-5", "--atol", "1e-5"]
# A heater between 19 and 21 degrees, in a room that loses what it has.
THERMOSTAT = """
[rhs]
parameters = { loss = 0.1, outside = 10, heat = 3 }
[rhs.equations]
T = "-loss * (T - outside) + heat * on"
on = "0"
[ensemble]
initial_state = [20, 0]
[time]
span = [0, 48]
save = { every = 0.25 }
[method]
precision = "f64"
rtol = 1e-10
atol = 1e-10
[[resets]]
component = "T"
value = 19
direction = "falling"
to = { on = 1 }
[[resets]]
component = "T"
value = 21
direction = "rising"
to = { on = 0 }
[output]
file = "room.h5"
"""


def ball(height, speed, g, bounce, times):
    """x, v, bounces, last, peak at the times, before a bounce there."""
    rows = []
    for time in times:
        x, v, begun, bounces, last, peak = height, speed, 0.0, 0, 0.0, 0.0
        while True:
            lands = begun + (v + np.sqrt(v * v + 2 * g * x)) / g
            if v > 0 and begun + v / g < time:
                peak = max(peak, x + v * v / (2 * g))
            if lands >= time:
                break
            v, x, begun, bounces, last = bounce * np.sqrt(v * v + 2 * g * x), 0.0, lands, bounces + 1, lands
        since = time - begun
        rows.append((x + v * since - g * since**2 / 2, v - g * since, bounces, last, peak))
    return np.array(rows)


def room(times, loss=0.1, outside=10, heat=3):
    """T and on at the times: exponentials to 10 or 40 degrees between thresholds."""
    rows = []
    for time in times:
        T, on, begun = 20.0, 0, 0.0
        while True:
            rest, threshold = outside + on * heat / loss, 21 if on else 19
            switches = begun + np.log((T - rest) / (threshold - rest)) / loss
            if switches >= time:
                break
            T, on, begun = threshold, 1 - on, switches
        rows.append((rest + (T - rest) * np.exp(-loss * (time - begun)), on))
    return np.array(rows)


class ResetsTest(ToolTest):
    silent = one_line = False

    def setUp(self):
        super().setUp()
        for name, text in (("balls", BALLS), ("function", OF_FUNCTION), ("room", THERMOSTAT)):
            self.path(name + ".toml").write_text(text)


class Solutions(ResetsTest):
    def test_balls_bounce_as_exactly_as_the_tolerance(self):
        for name in ("balls", "function"):
            self.succeed("solve", name + ".toml", "--quiet", "--overwrite")
            with h5py.File(self.path("balls.h5")) as file:
                self.assertTrue((file["status"][:] == 0).all())
                for row in range(70):
                    g, bounce, _ = file["parameters"][row]
                    expected = ball(file["initial_state"][row, 0], 2, g, bounce, file["time"][:])
                    # Parabolas are followed exactly but for rounding; the root on them is found to theta's resolution,
                    # 2^-52 of a step of up to 4 s. Some tens of bounces carry that on, with speeds up to 15 m/s.
                    np.testing.assert_allclose(file["state"][row], expected, atol=1e-10)
                self.assertGreater(file["end_state"][:, 2].max(), 4)

    def test_a_thermostat_keeps_the_room_between_its_thresholds(self):
        self.succeed("solve", "room.toml", "--quiet")
        with h5py.File(self.path("room.h5")) as file:
            # Steps err by a few times 1e-10 of 20 degrees; a switch's time by that over the slope of 0.9 degrees an hour.
            np.testing.assert_allclose(file["state"][0], room(file["time"][:]), atol=1e-7)
            self.assertGreater(file["state"][0, :, 1].sum(), 10)

    def test_float32_counts_the_same_bounces(self):
        self.succeed("solve", "balls.toml", "--quiet")
        self.succeed("solve", "balls.toml", "--quiet", "--precision", "f32", "--rtol", "1e-6", "--atol", "1e-6",
                     "--output", "f32.h5")
        with h5py.File(self.path("balls.h5")) as f64, h5py.File(self.path("f32.h5")) as f32:
            # A count differs at a save point within the error of a bounce's time.
            differ = f64["state"][:, :, 2] != f32["state"][:, :, 2]
            near = np.minimum(np.abs(f64["time"][:] - f64["state"][:, :, 3]), np.abs(f64["time"][:] - f32["state"][:, :, 3]))
            self.assertTrue((near[differ] < 1e-3).all())
            self.assertLess(differ.mean(), 0.01)

    def test_an_event_ends_what_a_reset_carries_over_it(self):
        self.path("three.toml").write_text(BALLS + '[event]\ncomponent = "bounces"\nvalue = 2.5\n')
        self.succeed("solve", "three.toml", "--quiet")
        with h5py.File(self.path("balls.h5")) as file:
            ended = file["status"][:] == 1
            self.assertTrue(ended.any() and not ended.all())
            self.assertTrue((file["end_state"][ended, 2] == 3).all())
            np.testing.assert_array_equal(file["end_state"][ended, 3], file["end_time"][ended])

    def test_a_ball_that_comes_to_rest_ends(self):
        long = BALLS.replace("[0, 4]", "[0, 60]").replace('"f64"', '"f64"\nmax_steps = 5000')
        until = '[event]\nfunction = "v^2 / 2 + g * x - 1e-6"\n'
        for text, statuses in ((long, {2, 4}), (long + until, {1})):
            self.path("rest.toml").write_text(text)
            out = self.succeed("solve", "rest.toml", "--overwrite")
            if "step_too_small:" in out:
                self.assertIn("resets may follow each other ever faster there", out)
            with h5py.File(self.path("balls.h5")) as file:
                self.assertLessEqual(set(file["status"][:]), statuses)
                for row in (0, 40, 69):
                    height, (g, bounce, _) = file["initial_state"][row, 0], file["parameters"][row]
                    lands = np.sqrt(4 + 2 * g * height)
                    # The sum of the flights' geometric series; what is left of it at a speed of 1.5 mm/s, or where the
                    # time's rounding is as long as a flight and a bounce in thousands counts.
                    rests = (2 + lands) / g + 2 * bounce * lands / g / (1 - bounce)
                    self.assertAlmostEqual(file["end_time"][row], rests, delta=0.01 if 1 in statuses else 1e-5)

    def test_they_are_told(self):
        text = ("2 resets: x = 0, v = -bounce * v, bounces = bounces + 1, last = t where x falls through 0; "
                "peak = max(peak, x) where v falls through 0")
        self.assertIn("resets        " + text, self.succeed("explain", "balls.toml"))
        self.assertIn("  resets: " + text, self.succeed("solve", "balls.toml"))
        self.assertIn("resets           " + text, self.succeed("info", "balls.h5"))
        with h5py.File(self.path("balls.h5")) as file:
            self.assertEqual(file.attrs["resets"], text)
            self.assertIn("too little for a GPU", file.attrs["engine_reason"])
            resets = file["problem/resets"]
            self.assertEqual(sorted(resets), ["0", "1"])
            self.assertEqual(dict(resets["1"].attrs), {"event_component": 1, "event_value": 0, "event_direction": "falling",
                                                       "text": "peak = max(peak, x) where v falls through 0"})
            self.assertEqual(list(resets["1"]), ["state_model"])
        self.path("log.toml").write_text(BALLS + "events = true\n")
        self.assertIn("a GPU cannot run this: problem.keep_events is true", self.succeed("explain", "log.toml"))
        self.fail_with("cuda", "solve", "log.toml", "--device", "cuda", "--output", "log.h5")
        self.succeed("solve", "function.toml", "--quiet", "--overwrite")
        with h5py.File(self.path("balls.h5")) as file:
            self.assertEqual(sorted(file["problem/resets/0"]), ["event_model", "state_model"])

    def test_the_pages_examples_are_what_it_says(self):
        section = PAGE.read_text().split("## [[resets]]", 1)[1]
        ball_table, records, switch = (part.split("```", 1)[0] for part in section.split("```toml\n")[1:4])
        rest = BALLS.split("[ensemble]")[1].split("[[resets]]")[0]
        output = '[output]\nfile = "page.h5"\n'
        before, tables = records.split("[[resets]]", 1)
        with_state = rest.replace("parameters = { bounce", "parameters = { g = 9.81, bounce")
        self.path("page.toml").write_text(before + "[ensemble]" + with_state + "[[resets]]" + tables + output)
        self.succeed("solve", "page.toml", "--quiet")
        self.succeed("solve", "balls.toml", "--quiet")
        with h5py.File(self.path("balls.h5")) as file, h5py.File(self.path("page.h5")) as page:
            self.assertEqual(file["state"][:].tobytes(), page["state"][:].tobytes())
        plain = BALLS.split("[rhs]")[1].split("[[resets]]")[0]
        self.path("page.toml").write_text("[rhs]" + plain + ball_table + output)
        self.succeed("solve", "page.toml", "--quiet", "--overwrite")
        rest = THERMOSTAT.split("[ensemble]")[1].split("[[resets]]")[0]
        before, tables = switch.split("[[resets]]", 1)
        self.path("page.toml").write_text(before + "[ensemble]" + rest + "[[resets]]" + tables + output)
        self.succeed("solve", "page.toml", "--quiet", "--overwrite")
        with h5py.File(self.path("page.h5")) as page:
            np.testing.assert_allclose(page["state"][0], room(page["time"][:]), atol=1e-7)


class Parts(ResetsTest):
    def test_shards_indices_and_packed_files_hold_the_whole_runs_bits(self):
        self.succeed("solve", "function.toml", "--quiet")
        for index in (1, 2, 3):
            self.succeed("solve", "function.toml", "--shard", f"{index}/3", "--quiet")
        shards = sorted(self.folder.glob("balls.shard-*.h5"))
        self.succeed("merge", *shards, "--output", "merged.h5", "--quiet")
        self.succeed("merge", *shards, "--output", "index.h5", "--index", "--quiet")
        self.succeed("pack", "balls.h5", "--output", "packed.h5", "--quiet")
        with h5py.File(self.path("balls.h5")) as whole:
            for other in ("merged.h5", "index.h5", "packed.h5"):
                with h5py.File(self.path(other)) as file:
                    self.assertEqual(whole["state"][:].tobytes(), file["state"][:].tobytes(), other)
                    self.assertEqual(file.attrs["resets"], whole.attrs["resets"])
                    for name in ("0", "1"):
                        ours, theirs = whole["problem/resets"][name], file["problem/resets"][name]
                        self.assertEqual(dict(ours.attrs), dict(theirs.attrs))
                        self.assertEqual({key: ours[key][:].tobytes() for key in ours},
                                         {key: theirs[key][:].tobytes() for key in theirs})

    def test_a_file_is_judged_by_its_problem_solved_again(self):
        for name in ("balls", "function"):
            for shard in ([], ["--shard", "2/3"]):
                self.succeed("solve", name + ".toml", "--output", "a.h5", *LOOSELY, *shard)
                self.succeed("solve", name + ".toml", "--output", "b.h5", "--precision", "f32", *LOOSELY, *shard)
                done = self.run_tool("validate", "a.h5", "b.h5")
                self.assertIn("computed anew from the problem in a.h5", done.stdout, done.stderr)

    def test_threads_and_instruction_sets_change_no_bit(self):
        self.succeed("solve", "balls.toml", "--quiet", "--threads", "1")
        self.succeed("solve", "balls.toml", "--quiet", "--threads", "3", "--cpu-target", "scalar", "--output", "other.h5")
        with h5py.File(self.path("balls.h5")) as file, h5py.File(self.path("other.h5")) as other:
            self.assertEqual(file["state"][:].tobytes(), other["state"][:].tobytes())

    def test_blanks_make_no_other_problem(self):
        self.write("spaced.toml", OF_FUNCTION.replace("-bounce * v", "-bounce*v").replace("x - floor", "x-floor"))
        self.write("balls.toml", OF_FUNCTION)
        for name, shard in (("whole.h5", "1/1"), ("1.h5", "1/2"), ("2.h5", "2/2")):
            problem = "spaced.toml" if shard == "2/2" else "balls.toml"
            self.succeed("solve", problem, "--shard", shard, "--output", name, *LOOSELY)
        self.succeed("solve", "spaced.toml", "--output", "spaced.h5", *LOOSELY)
        with h5py.File(self.path("whole.h5")) as whole, h5py.File(self.path("spaced.h5")) as spaced:
            self.assertNotEqual(whole.attrs["resets"], spaced.attrs["resets"])
        self.assertIn("same bits", self.succeed("validate", "whole.h5", "spaced.h5"))
        self.succeed("merge", "1.h5", "2.h5", "--output", "merged.h5")
        self.succeed("validate", "--bits", "whole.h5", "merged.h5")
        self.assertIn("nothing to do", self.succeed("solve", "balls.toml", "--output", "spaced.h5", "--resume",
                                                    *(flag for flag in LOOSELY if flag != "--quiet")))

    def test_other_resets_are_another_problem(self):
        self.succeed("solve", "balls.toml", "--quiet")
        digests = set()
        for old, new in (("", ""), ("max(peak, x)", "max(peak, 2 * x)"), ("bounces + 1", "bounces + 2"),
                         ('"x"\ndirection = "falling"', '"x"\ndirection = "either"')):
            self.path("other.toml").write_text(BALLS.replace(old, new))
            self.succeed("solve", "other.toml", "--quiet", "--overwrite", "--output", "other.h5")
            with h5py.File(self.path("other.h5")) as file:
                digests.add(file.attrs["problem_digest"])
        self.assertEqual(len(digests), 4)
        said = self.run_tool("validate", "balls.h5", "other.h5").stdout
        self.assertIn("x falls through 0", said)
        self.assertIn("x crosses 0", said)
        self.succeed("solve", "balls.toml", "--quiet", "--shard", "1/2")
        self.path("other.toml").write_text(BALLS.replace("bounces + 1", "bounces + 2"))
        self.succeed("solve", "other.toml", "--quiet", "--shard", "2/2")
        self.fail_with("found problem_digest", "merge", *self.folder.glob("balls.shard-*.h5"), "--output", "merged.h5")


class Continued(ResetsTest):
    def test_what_is_open_is_solved_as_it_would_have_been(self):
        self.succeed("solve", "balls.toml", "--quiet")
        with h5py.File(self.path("balls.h5"), "r+") as file:
            whole = file["state"][:].tobytes()
            file["status"][2:40] = file["status"][69:] = 6  # cancelled
            file["state"][2:40] = np.nan
        self.path("other.toml").write_text(BALLS.replace("max(peak, x)", "max(peak, 2 * x)"))
        self.fail_with("peak = max(peak, x) where v falls through 0", "solve", "other.toml", "--quiet", "--resume")
        self.succeed("solve", "balls.toml", "--quiet", "--resume")
        with h5py.File(self.path("balls.h5")) as file:
            self.assertEqual((file.attrs["resumed"], file["state"][:].tobytes()), (1, whole))


class Refused(ResetsTest):
    def test_what_is_wrong_is_named_where_it_stands(self):
        for old, new, words in (
                ("to = { peak", "to = { peek", 'resets[1].to.peek: found "peek", expected one of x, v, bounces, last, '
                                               'peak; did you mean "peak"?'),
                ("to = { peak", "to = { floor", 'resets[1].to.floor: found the parameter "floor", expected a component'),
                ("-bounce * v", "-bonce * v", 'resets[0].to.v, column 2: found "bonce"'),
                ('component = "v"', 'component = "w"', 'resets[1].component: found "w"'),
                ('component = "v"', 'function = "v > 0"', 'resets[1].function: found the condition "v > 0"'),
                ('component = "v"', 'function = "3"', 'resets[1].function: found the number "3"'),
                ("to = { peak", "affect = { peak", "resets[1].affect: found an unknown key"),
                ('"f64"\nrtol', '"f64"\ncontrol = "common"\nrtol', "method.control: found common with resets"),
                ("rtol = 1e-11\natol = 1e-11", "dt = 0.01", "method.control: found fixed with resets")):
            self.path("wrong.toml").write_text(BALLS.replace(old, new))
            done = self.run_tool("solve", "wrong.toml")
            self.assertIn(words, done.stderr)
            self.assertEqual((done.returncode, self.path("balls.h5").exists()), (2, False))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
