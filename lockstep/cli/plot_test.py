"""`lockstep plot` from outside: which pictures there are, what they say, and what is refused.

usage: plot_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, TOOL, ToolTest, h5py, np


@unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
class Plot(ToolTest):
    def setUp(self):
        super().setUp()
        self.write("lorenz.toml", LORENZ)

    def check_png(self, name):
        content = self.path(name).read_bytes()
        self.assertEqual(content[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", content[16:24])
        self.assertGreaterEqual(min(width, height), 600)
        self.assertEqual(content[-8:-4], b"IEND")
        self.assertGreater(len(content), 10_000)

    def test_all_kinds_lie_beside_the_results(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        out = self.succeed("plot", "lorenz.h5")
        for kind in ("series", "phase", "spread"):
            self.assertIn(f"lorenz_{kind}.png\n", out)
            self.check_png(f"lorenz_{kind}.png")

    def test_a_sweep_is_drawn_over_its_parameter(self):
        sweep = LORENZ.replace("trajectories = 100\n", "parameters = { rho = { logspace = [0.1, 100, 7] } }\n").replace(
            "{ normal = { mean = [1, 0, 0], std = 0.1 } }", "[1, 0, 0]").replace(
            'system = "lorenz"', 'system = "lorenz"\nunits = { x = "km" }')
        self.write("sweep.toml", sweep)
        self.succeed("solve", "sweep.toml", "--quiet")
        self.assertIn("lorenz_sweep.png\n", self.succeed("plot", "lorenz.h5"))
        self.check_png("lorenz_sweep.png")
        self.succeed("plot", "lorenz.h5", "--of", "maximum", "--components", "x", "--output", "max.svg")
        text = self.picture_text("max.svg")
        for part in ("maximum over time by rho", "7 trajectories", "x (km)"):
            self.assertIn(part, text)
        for tick in ("0.1", "1", "10", "100"):
            self.assertRegex(text, rf"(^|\s){tick}\s")
        places = [x for x, _ in self.dots("max.svg")]
        steps = np.diff(places)
        self.assertEqual(len(places), 7)
        self.assertLess(steps.max() - steps.min(), 0.05, "evenly spaced on a logarithmic axis")
        # What is drawn is the maximum: heights are a line's in the numbers.
        with h5py.File(self.path("lorenz.h5")) as file:
            states, times = file["state"][:].astype(float), file["time"][:]
            for of, numbers in (("end", file["end_state"][:, 0]), ("maximum", states[:, :, 0].max(1)),
                                ("minimum", states[:, :, 0].min(1)), ("mean", np.trapz(states[:, :, 0], times) / 2)):
                self.succeed("plot", "lorenz.h5", "--kind", "sweep", "--of", of, "--components", "x", "--output", "of.svg")
                heights = np.array([y for _, y in self.dots("of.svg")])
                line = np.polynomial.Polynomial.fit(numbers, heights, 1)
                self.assertLess(np.abs(line(numbers) - heights).max(), 0.05, of)
                self.assertLess(line.deriv()(0), 0)

    def test_extremes_over_time_include_the_state_that_an_event_ended(self):
        self.write("p.toml", '[rhs]\nparameters = ["k"]\n[rhs.equations]\nx = "k"\ny = "-k"\n[ensemble]\n'
                             'initial_state = [0, 0]\nparameters = { k = [0.5, 0.75, 1, 2] }\n[time]\nspan = [0, 10]\n'
                             'save = 3\n[event]\ncomponent = "x"\nvalue = 6\n[output]\nfile = "p.h5"\n')
        self.succeed("solve", "p.toml", "--quiet")
        for of, component, numbers in (("maximum", "x", [5, 6, 6, 6]), ("minimum", "y", [-5, -6, -6, -6]),
                                       ("maximum", "y", [0, 0, 0, 0])):
            self.succeed("plot", "p.h5", "--kind", "sweep", "--of", of, "--components", component, "--output", "p.svg")
            heights = np.array([y for _, y in self.dots("p.svg")])
            self.assertEqual(len(heights), 4)
            steps = np.diff(heights)  # downwards
            self.assertLess(np.abs(steps[1:]).max(), 0.05, (of, component))
            self.assertEqual(np.sign(steps[0]), -np.sign(numbers[1] - numbers[0]), (of, component))

    def dots(self, name):  # in pixels
        return [(float(x), float(y)) for x, y in re.findall(r"href='#gpPt6' transform='translate\(([\d.]+),([\d.]+)\)",
                                                            self.path(name).read_text())]

    def test_axes_are_logarithmic_and_limited_where_it_is_asked_for(self):
        self.write("p.toml", '[rhs.equations]\nx = "-x"\ny = "1"\n[ensemble]\ninitial_state = [[1, 0], [2, 0]]\n[time]\n'
                             'span = [0, 10]\nsave = 11\n[method]\nprecision = "f64"\n[output]\nfile = "p.h5"\n')
        self.succeed("solve", "p.toml", "--quiet")
        self.succeed("plot", "p.h5", "--kind", "series", "--components", "x", "--log", "x", "--output", "log.svg")
        heights = np.array([y for _, y in self.blue_line("log.svg")])
        self.assertLess(np.abs(np.diff(heights, 2)).max(), 0.05, "exp(-t) is straight")
        self.assertIn("0.001", self.picture_text("log.svg"))
        self.succeed("plot", "p.h5", "--kind", "series", "--components", "y", "--limits", "time=2:6,y=-10:30", "--output",
                     "limits.svg")
        for part in ("-10", "30"):
            self.assertIn(part, self.picture_text("limits.svg"))
        self.assertNotRegex(self.picture_text("limits.svg"), r"\s8\s")
        for kind in ("phase", "spread", "sweep"):
            self.succeed("plot", "p.h5", "--kind", kind, "--log", "x", "--limits", "y=0:20", "--output", f"{kind}.svg")
            self.assertIn("20", self.picture_text(f"{kind}.svg"))
        self.fail_with('--log: found "w", expected one of time, x, y', "plot", "p.h5", "--log", "w")
        self.fail_with('--limits: found "x=1", expected NAME=LOW:HIGH, as in x=0:10', "plot", "p.h5", "--limits", "x=1")
        self.fail_with('--limits: found "x=0:1" of a logarithmic axis, expected limits above 0', "plot", "p.h5", "--limits",
                       "x=0:1", "--log", "x")
        self.fail_with("--log: found a flag beside --against", "plot", "p.h5", "--against", "p.h5", "--log", "x")
        with h5py.File(self.path("p.h5"), "r+") as file:
            file["state"][:, :, 0] = -1
        self.fail_with("--log: found x, which is nowhere above 0, expected positive numbers on a logarithmic axis", "plot",
                       "p.h5", "--kind", "series", "--log", "x")

    def test_two_parameters_of_a_grid_are_a_map_of_colours(self):
        grid = LORENZ.replace("trajectories = 100\n", "").replace("{ normal = { mean = [1, 0, 0], std = 0.1 } }", "[1, 0, 0]")
        self.write("grid.toml", grid.replace(
            "[time]", "[ensemble.grid]\nrho = { linspace = [20, 28, 5] }\nz = { logspace = [0.1, 10, 3] }\n[time]"))
        self.succeed("solve", "grid.toml", "--quiet")
        self.assertIn("lorenz_sweep.png\n", self.succeed("plot", "lorenz.h5"))
        self.check_png("lorenz_sweep.png")
        self.succeed("plot", "lorenz.h5", "--kind", "sweep", "--components", "y", "--output", "map.svg")
        picture, text = self.path("map.svg").read_text(), self.picture_text("map.svg")
        self.assertEqual(len(re.findall("<image style='image-rendering:pixelated'", picture)), 1)
        for part in ("end state by rho and initial z", "rho", "initial z", "0.1", "22"):
            self.assertIn(part, text)
        self.assertNotIn("mean of", text)
        self.write("three.toml", grid.replace("lorenz.h5", "three.h5").replace(
            "[time]", "[ensemble.grid]\nrho = { linspace = [20, 28, 5] }\nz = { logspace = [0.1, 10, 3] }\nsigma = [9, 10]\n[time]"))
        self.succeed("solve", "three.toml", "--quiet")
        self.succeed("plot", "three.h5", "--kind", "sweep", "--output", "three.svg")
        self.assertIn("30 trajectories · mean of 2 in a cell", self.picture_text("three.svg"))
        self.succeed("plot", "lorenz.h5", "--over", "z", "--output", "z.svg")
        self.assertIn("end state by initial z", self.picture_text("z.svg"))
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            file["status"][4] = 3
            file["end_state"][4] = np.nan
        self.succeed("plot", "lorenz.h5", "--kind", "sweep", "--output", "some.svg")
        self.assertIn("1 that failed left out", self.picture_text("some.svg"))
        self.fail_with("--over: found sigma, which is the same in all trajectories, expected what differs between them; take of "
                       "rho, z", "plot", "lorenz.h5", "--over", "sigma")
        self.fail_with('--over: found "roh", expected one of sigma, rho, beta, x, y, z; did you mean "rho"?', "plot",
                       "lorenz.h5", "--over", "roh")
        self.fail_with("--over: found a sweep's flag beside --kind phase, expected --kind sweep", "plot", "lorenz.h5", "--kind",
                       "phase", "--over", "rho")

    def test_random_states_are_no_sweep_unless_it_is_asked_for(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        self.assertNotIn("sweep", self.succeed("plot", "lorenz.h5"))
        self.fail_with("no parameter or initial value that alone differs between trajectories, nor two on a grid", "plot",
                       "lorenz.h5", "--kind", "sweep")
        self.succeed("plot", "lorenz.h5", "--over", "x,y", "--components", "z", "--output", "xy.svg")
        self.assertIn("end state by initial x and initial y", self.picture_text("xy.svg"))
        self.assertNotIn("<image", self.path("xy.svg").read_text())

    def test_svg_is_well_formed_and_names_its_axes(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        self.succeed("plot", "lorenz.h5", "--kind", "phase", "--components", "x,z", "--output", "wings.svg")
        root = xml.etree.ElementTree.parse(self.path("wings.svg")).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        text = "".join(root.itertext())
        for part in ("Lorenz 1963: phase portrait", "100 trajectories", "time"):
            self.assertIn(part, text)

    def test_a_curve_goes_to_where_an_event_stopped_it(self):
        self.write("event.toml", LORENZ.replace("save = 21", "save = [0, 2]") + '[event]\ncomponent = "z"\nvalue = 20\n')
        self.succeed("solve", "event.toml", "--quiet")
        self.succeed("plot", "lorenz.h5", "--kind", "series", "--trajectories", "1", "--output", "event.svg")
        lines = re.findall(r"rgb\( *0, 114, 178\)' +d='[^']*M\S+ L\S+ *'", self.path("event.svg").read_text())
        self.assertEqual(len(lines), 3, "a line for each component, from the only save point to the end")

    def test_a_curve_jumps_at_an_impulse(self):
        self.write("dosed.toml", '[rhs]\nparameters = { k = 1 }\n[rhs.equations]\nx = "-k * x"\n[ensemble]\n'
                   'initial_state = [1]\n[time]\nspan = [0, 3]\nsave = 4\n[[impulses]]\ncomponent = "x"\nchange = 10\n'
                   'times = [1, 2.5, 3]\n[output]\nfile = "dosed.h5"\n')
        self.assertEqual(self.run_tool("solve", "dosed.toml", "--quiet").returncode, 0)
        self.succeed("plot", "dosed.h5", "--kind", "series", "--output", "dosed.svg")
        self.check_jump(self.blue_line("dosed.svg"))
        dosed = self.path("dosed.toml").read_text().replace("[ensemble]\n", "[ensemble]\ntrajectories = 3\n")
        self.write("three.toml", dosed.replace("dosed.h5", "three.h5"))
        self.assertEqual(self.run_tool("solve", "three.toml", "--quiet").returncode, 0)
        self.succeed("plot", "three.h5", "--kind", "spread", "--output", "three.svg")
        self.check_jump(self.blue_line("three.svg"))
        self.write("own.csv", "trajectory, time, component, change\n" +
                   "".join(f"{i}, {time}, x, {9 + i}\n" for i in range(3) for time in (1, 2.5, 3)))
        table = '[[impulses]]\nfile = "own.csv"\n[output]\nfile = "own.h5"\n'
        self.write("own.toml", dosed[:dosed.index("[[impulses]]")] + table)
        self.assertEqual(self.run_tool("solve", "own.toml", "--quiet").returncode, 0)
        self.succeed("plot", "own.h5", "--kind", "spread", "--output", "own.svg")
        self.check_jump(self.blue_line("own.svg"))
        self.write("far.toml", dosed.replace("change = 10\n", "change = 20\n").replace("dosed.h5", "far.h5"))
        self.assertEqual(self.run_tool("solve", "far.toml", "--quiet").returncode, 0)
        with h5py.File(self.path("far.h5"), "r+") as file:  # apart by 0.01 before the impulse, by 10 behind
            file["state"][:, 1, 0] += 0.01
        self.succeed("plot", "far.h5", "--against", "three.h5", "--format", "svg")
        self.check_jump(self.blue_line("far_overlay.svg"))
        before, behind = self.blue_line("far_distance.svg")[:2]
        self.assertEqual(before[0], behind[0])
        self.assertLess(behind[1], before[1] - 100)

    def blue_line(self, name):  # the first, as points in pixels
        path = re.search(r"rgb\( *0, 114, 178\)' +d='[^']*M([^']*)'", self.path(name).read_text()).group(1)
        return [tuple(map(float, point.split(","))) for point in re.findall(r"[\d.]+,[\d.]+", path)]

    def check_jump(self, points):
        self.assertEqual(len(points), 5, "two at t = 1; none more at the end, nor where nothing is saved")
        self.assertEqual(points[1][0], points[2][0])
        self.assertLess(points[2][1], points[1][1] - 100, "straight up")

    def test_a_spike_between_many_save_points_is_drawn_and_a_fast_wave_is_not_a_slow_one(self):
        self.write("long.toml", LORENZ.replace("save = 21", "save = 20001"))
        self.succeed("solve", "long.toml", "--quiet", "--trajectories", "30")
        self.succeed("plot", "lorenz.h5", "--kind", "phase", "--trajectories", "30", "--output", "phase.svg")
        self.assertIn("20,001 times in 6,666 bins", self.picture_text("phase.svg"))
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            file["state"][:, :, 0] = 0
            file["state"][:, 7003, 0] = 1
            for c, period in ((1, 6), (2, 50)):
                file["state"][:, :, c] = [i % period < period // 2 for i in range(20001)]
        for kind in ("series", "spread"):
            self.succeed("plot", "lorenz.h5", "--kind", kind, "--components", "x", "--output", "spike.svg")
            heights = [y for _, y in self.blue_line("spike.svg")]
            self.assertGreater(max(heights) - min(heights), 100)
            self.assertEqual(heights.count(min(heights)), 1)
        shutil.copy(self.path("lorenz.h5"), self.path("other.h5"))
        with h5py.File(self.path("other.h5"), "r+") as file:
            file["state"][:, :, 0] = 0.001
        self.succeed("plot", "lorenz.h5", "--against", "other.h5", "--components", "x", "--format", "svg")
        for kind in ("overlay", "distance"):
            heights = [y for _, y in self.blue_line(f"lorenz_{kind}.svg")]
            self.assertGreater(max(heights) - min(heights), 100)
            self.assertEqual(heights.count(min(heights)), 1)
            self.assertIn("20,001 times in 1,000 bins", self.picture_text(f"lorenz_{kind}.svg"))
        for kind, component in (("series", "y"), ("spread", "z")):
            self.succeed("plot", "lorenz.h5", "--kind", kind, "--components", component, "--output", "wave.svg")
            line = self.blue_line("wave.svg")
            heights = {y for _, y in line}
            self.assertEqual(len(heights), 2)
            for k in range(100):
                part = {y for x, y in line if k <= 100 * (x - line[0][0]) / (line[-1][0] - line[0][0]) <= k + 1}
                self.assertEqual(part, heights, "both ends of the wave everywhere")
            self.assertIn("20,001 times in 1,000 bins", self.picture_text("wave.svg"))

    def test_end_states_are_drawn_where_none_reached_the_save_point(self):
        lines = LORENZ.replace("save = 21", "save = 1")
        self.write("end.toml", lines + '[event]\ncomponent = "z"\nvalue = 20\n')
        self.succeed("solve", "end.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertFalse((file["status"][:] == 0).any())
        self.succeed("plot", "lorenz.h5", "--format", "svg")
        self.assertIn("stopped before it", self.picture_text("lorenz_phase.svg"))
        self.assertNotIn("at the save point", self.picture_text("lorenz_phase.svg"))

    def test_few_end_states_are_drawn_larger_than_many(self):
        self.write("end.toml", LORENZ.replace("save = 21", "save = [2]"))
        sizes = {}
        for trajectories in (7, 3000):
            self.succeed("solve", "end.toml", "--quiet", "--overwrite", "--trajectories", str(trajectories))
            self.succeed("plot", "lorenz.h5", "--format", "svg")
            dots = re.findall(r"scale\((\d+\.\d+)\)", self.path("lorenz_phase.svg").read_text())
            self.assertEqual(len(dots), trajectories)
            sizes[trajectories] = float(dots[0])
        self.assertGreater(sizes[7], 2 * sizes[3000])

    def picture_text(self, name):
        return "".join(xml.etree.ElementTree.parse(self.path(name)).getroot().itertext())

    def test_of_long_curves_fewer_are_drawn_unless_more_are_asked_for(self):
        shown = {}
        for end in (0.2, 2, 20):
            self.write("p.toml", LORENZ.replace("[0, 2]", f"[0, {end}]").replace("save = 21", "save = 201"))
            self.succeed("solve", "p.toml", "--quiet", "--overwrite")
            self.succeed("plot", "lorenz.h5", "--kind", "phase", "--format", "svg")
            shown[end] = int(re.search(r"(\d+) of 100 trajectories", self.picture_text("lorenz_phase.svg")).group(1))
        self.assertEqual(shown[0.2], 60)
        self.assertTrue(3 <= shown[20] <= 6, shown)
        self.assertTrue(3 < shown[2] < 60, shown)
        self.succeed("plot", "lorenz.h5", "--kind", "phase", "--format", "svg", "--trajectories", "50")
        self.assertIn("50 of 100 trajectories", self.picture_text("lorenz_phase.svg"))

    def test_pictures_tell_how_many_are_shown_and_how_many_have_stopped(self):
        self.write("event.toml", LORENZ + '[event]\ncomponent = "x"\nvalue = 19.823\ndirection = "rising"\n')
        self.succeed("solve", "event.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5")) as file:
            left = int((file["status"][:] == 0).sum())
        self.assertTrue(0 < left < 100, left)
        self.succeed("plot", "lorenz.h5", "--format", "svg")
        for kind, parts in (("series", ["6 of 100 trajectories", "stopped"]),
                            ("phase", [" of 100 trajectories", "stopped"]),
                            ("spread", [f"{left} left at the end", "of those left", "90 %"])):
            for part in parts:
                self.assertIn(part, self.picture_text(f"lorenz_{kind}.svg"))
        self.assertNotIn("of all", self.picture_text("lorenz_spread.svg"))
        self.succeed("solve", "lorenz.toml", "--quiet", "--overwrite")
        self.succeed("plot", "lorenz.h5", "--format", "svg")
        self.assertIn("90 % of all", self.picture_text("lorenz_spread.svg"))
        for kind in ("series", "phase", "spread"):
            self.assertNotIn("stopped", self.picture_text(f"lorenz_{kind}.svg"))
        with h5py.File(self.path("lorenz.h5"), "a") as file:
            file["status"][:] = 5  # as where a net's range was left and guard = "flag" let it go on
        self.succeed("plot", "lorenz.h5", "--format", "svg")
        for kind in ("series", "phase"):
            self.assertNotIn("stopped", self.picture_text(f"lorenz_{kind}.svg"))

    def test_pictures_tell_units_tolerances_and_what_is_left_out(self):
        self.write("each.toml", LORENZ.replace('"lorenz"', '"lorenz96"').replace("mean = [1, 0, 0]", "mean = 8") +
                   f"[method]\natol = [{', '.join(['1e-5'] * 39)}, 1e-7]\n")
        self.succeed("solve", "each.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5"), "r+") as file:
            file["state"].attrs.create("component_units", ["m/s"] * 40, dtype=h5py.string_dtype())
        self.succeed("plot", "lorenz.h5", "--format", "svg")
        for kind, heading in (("series", "time series, 6 of 40 components"), ("spread", "of the ensemble, 6 of 40"),
                              ("phase", "phase portrait")):
            text = "".join(xml.etree.ElementTree.parse(self.path(f"lorenz_{kind}.svg")).getroot().itertext())
            for part in (heading, "atol 1e-07 to 1e-05", "u1 (m/s)"):
                self.assertIn(part, text)
        self.succeed("plot", "--kind", "series", "--output", "two.svg", "--components", "u40,u3", "lorenz.h5")
        text = "".join(xml.etree.ElementTree.parse(self.path("two.svg")).getroot().itertext())
        self.assertIn("u40 (m/s)", text)
        self.assertNotIn("of 40", text)

    def test_a_problem_files_units_stand_at_the_axes(self):
        self.write("units.toml", LORENZ.replace('system = "lorenz"', 'system = "lorenz"\nunits = { x = "km", z = "K" }')
                   .replace("save = 21", 'save = 21\nunit = "min"'))
        self.succeed("solve", "units.toml", "--quiet")
        with h5py.File(self.path("lorenz.h5")) as file:
            self.assertEqual(list(file["state"].attrs["component_units"]), ["km", "", "K"])
            self.assertNotIn("units", file["state"].attrs)
            for name in ("time", "start_time", "end_time"):
                self.assertEqual(file[name].attrs["units"], "min")
        self.succeed("plot", "lorenz.h5", "--format", "svg")
        for kind, parts in (("series", ["x (km)", "z (K)", "time (min)"]), ("phase", ["x (km)", "z (K)", "time (min)"]),
                            ("spread", ["x (km)", "time (min)"])):
            for part in parts:
                self.assertIn(part, self.picture_text(f"lorenz_{kind}.svg"))
            self.assertNotIn("y (", self.picture_text(f"lorenz_{kind}.svg"))
        self.assertRegex(self.succeed("info", "lorenz.h5"), r"\ntime +0 to 2 min\n  x +\S+ to \S+ km\n  y +\S+ to \S+\n")
        self.write("bad.toml", LORENZ.replace('system = "lorenz"', 'system = "lorenz"\nunits = { X = "km" }'))
        self.fail_with('bad.toml:4: rhs.units.X: found an unknown component, expected one of x, y, z; did you mean "x"?',
                       "solve", "bad.toml", "--overwrite")

    def test_numbers_near_a_large_one_and_long_names_can_be_read(self):
        name = "temperature_of_the_electrons_on_the_magnetic_axis"
        self.write("near.toml", f"""
[rhs]
units = {{ pressure = "Pa" }}
[rhs.equations]
pressure = "0.01*cos(t - 1000000000)"
{name} = "1e-5*sin(t)"
[ensemble]
trajectories = 3
initial_state = {{ normal = {{ mean = [101325, 0], std = [0.001, 1e-6] }} }}
[time]
span = [1000000000, 1000000010]
save = 51
[method]
name = "tsit5"
precision = "f64"
[output]
file = "near.h5"
""")
        self.succeed("solve", "near.toml", "--quiet")
        self.succeed("plot", "near.h5", "--format", "svg")
        for kind in ("series", "phase", "spread"):
            text = self.picture_text(f"near_{kind}.svg")
            for part in ("time − 1000000000", "pressure − 101325 (Pa)", "0.01"):
                self.assertIn(part, text)
            self.assertNotIn("1e+09", text)
            self.assertNotIn("101325.", text)
            if kind != "phase":
                self.assertIn("temperature_of_the", text)
                self.assertNotIn(name, re.sub("Equations of .*?:", "", text))
                self.assertIn("…", text)
        # As many heights as points, not a staircase of nine digits.
        line = max(re.findall(r"d='(M[^']*)'", self.path("near_series.svg").read_text()), key=len)
        self.assertGreater(len(set(re.findall(r",(\S+)", line))), 40)

    def test_pictures_of_two_files_name_both(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        self.succeed("solve", "lorenz.toml", "--quiet", "--rtol", "1e-4", "--output", "rough.h5")
        self.succeed("plot", "rough.h5", "--against", "lorenz.h5", "--format", "svg")
        self.assertIn("Lorenz 1963: rough.h5 over lorenz.h5", self.picture_text("rough_overlay.svg"))
        self.assertIn("Lorenz 1963: distance of rough.h5 from lorenz.h5", self.picture_text("rough_distance.svg"))

    def place_of(self, text, name):
        """x and y of a label in an SVG, which grow to the right and down."""
        found = re.search(r'translate\(([\d.]+),([\d.]+)\)"[^>]*>\s*<text>(?:<tspan[^>]*>|<!\[CDATA\[|\s)*' + re.escape(text),
                          self.path(name).read_text())
        self.assertIsNotNone(found, text)
        return float(found.group(1)), float(found.group(2))

    def axes_of(self, name):
        """Top and right end of the last panel's axes."""
        lines = re.findall(r"rgb\(136, 136, 136\)'[^>]*? d='([^']*)'", self.path(name).read_text())
        points = [tuple(map(float, point)) for point in re.findall(r"([\d.]+),([\d.]+)", lines[-1])]
        return min(y for _, y in points), max(x for x, _ in points)

    def test_keys_of_two_files_lie_beside_the_curves_and_both_settings_are_told(self):
        long = LORENZ.replace("trajectories = 100", "trajectories = 3001").replace("save = 21", "save = 51").replace("[0, 2]", "[0, 30]")
        self.write("a.toml", long)
        self.succeed("solve", "a.toml", "--quiet", "--output", "a.h5")
        self.succeed("solve", "a.toml", "--quiet", "--output", "b.h5", "--method", "vern9", "--precision", "f64")
        self.succeed("plot", "a.h5", "--against", "b.h5", "--format", "svg")
        for kind in ("overlay", "distance"):
            self.assertRegex(self.picture_text(f"a_{kind}.svg"), r"a\.h5: tsit5, rtol 1e-06, atol 1e-06, float32 +· +"
                                                                 r"b\.h5: vern9, rtol 1e-06, atol 1e-06, float64")
        sample = 40  # of a line, left of its title, and room for the letters of a PNG, which are wider
        self.assertGreater(self.place_of("trajectory 3000", "a_overlay.svg")[0] - sample, self.axes_of("a_overlay.svg")[1])
        for text in ("90 %, all (3,001)", "median, all (3,001)"):
            self.assertLess(self.place_of(text, "a_distance.svg")[1], self.axes_of("a_distance.svg")[0])

    def test_series_that_stop_at_their_start_have_the_axis_of_the_save_points(self):
        self.write("p.toml", '[rhs.equations]\nx = "-sqrt(-x)"\n[ensemble]\ninitial_state = [1]\n[time]\nspan = [0, 1]\nsave = 11\n'
                             '[output]\nfile = "p.h5"\n')
        self.succeed("solve", "p.toml", "--quiet")
        self.succeed("plot", "p.h5", "--kind", "series", "--format", "svg")
        self.assertLess(self.place_of("0.2", "p_series.svg")[0], self.place_of("0.8", "p_series.svg")[0])
        self.assertNotIn("-0.5", self.picture_text("p_series.svg"))

    def test_curves_over_others_begin_at_the_same_time(self):
        late = LORENZ.replace("[0, 2]", "[1000000000, 1000000002]")
        self.write("late.toml", late)
        self.succeed("solve", "late.toml", "--quiet")
        self.succeed("solve", "late.toml", "--quiet", "--rtol", "1e-4", "--output", "rough.h5")
        self.succeed("plot", "rough.h5", "--against", "lorenz.h5", "--format", "svg")
        for name in ("overlay", "distance"):
            self.assertIn("time − 1000000000", self.picture_text(f"rough_{name}.svg"))
        self.write("one.toml", LORENZ.replace("save = 21", "save = [2]"))
        self.succeed("solve", "one.toml", "--quiet", "--output", "one.h5")
        self.fail_with("one.h5: found a single save point, expected curves over time, to be drawn over those of one.h5; save more "
                       "often", "plot", "one.h5", "--against", "one.h5")

    def leave_unfinished(self, name, trajectories):
        """As a solve that is under way has them: their space is there, and nothing written to it."""
        with h5py.File(self.path(name), "r+") as file:
            for dataset in ("state", "end_state", "end_time"):
                file[dataset][trajectories] = 0
            file["status"][trajectories] = 6

    def test_unfinished_trajectories_are_no_part_of_any_picture_and_counted(self):
        self.write("p.toml", '[rhs]\nparameters = { k = 1 }\n[rhs.equations]\nx = "k"\ny = "-k"\n[ensemble]\ntrajectories = 100\n'
                             'initial_state = [9, -9]\nparameters = { k = { linspace = [1, 2] } }\n[time]\nspan = [0, 2]\nsave = 21\n'
                             '[[resets]]\ncomponent = "x"\nvalue = 10\nto = { y = -12 }\n'
                             '[output]\nfile = "lorenz.h5"\nevents = true\n')
        self.succeed("solve", "p.toml", "--quiet")
        shutil.copy(self.path("lorenz.h5"), self.path("whole.h5"))
        self.leave_unfinished("lorenz.h5", slice(4, None))
        out = self.succeed("plot", "lorenz.h5", "--format", "svg")
        self.assertIn("note: 96 of 100 trajectories left out: not finished in lorenz.h5\n", out)
        for kind in ("series", "phase", "spread", "raster"):
            self.assertIn("4 of 100 trajectories, 4 finished", self.picture_text(f"lorenz_{kind}.svg"))
        self.assertNotIn("stopped", self.picture_text("lorenz_series.svg"))
        # From x = 9 up and from y = -9 down: a 0 is a tick of time, or the trajectory's number in the key.
        for kind, zeros in (("series", 2), ("phase", 1)):
            self.assertEqual(len(re.findall(r">\s*0\s*<", self.path(f"lorenz_{kind}.svg").read_text())), zeros)
        text = self.succeed("info", "lorenz.h5")
        self.assertRegex(text, r"\n  x +9 to 11\.\S+\n  y +-\S+ to -9\n")
        self.assertIn("4 success, 96 cancelled\n", text)
        self.assertIn("those cancelled are not finished: their states are left out", text)
        out = self.succeed("plot", "lorenz.h5", "--against", "whole.h5", "--format", "svg")
        self.assertIn("note: 96 of 100 trajectories left out: not finished in lorenz.h5\n", out)
        self.assertIn("no distance: no numbers that are finite in both and differ\n", out)
        self.assertIn("trajectory 3", self.picture_text("lorenz_overlay.svg"))
        self.leave_unfinished("lorenz.h5", slice(None))
        self.fail_with("lorenz.h5: found no trajectory that is finished, expected finite states to draw", "plot", "lorenz.h5")
        self.fail_with("no trajectory that is finished in it and in lorenz.h5", "plot", "lorenz.h5", "--against", "whole.h5")

    def test_files_without_a_finite_state_are_named(self):
        for name, components, found in (("none.h5", 0, "no components"), ("nan.h5", 3, "no finite state of u0")):
            with h5py.File(self.path(name), "w") as file:
                file.attrs["lockstep_format"] = "ensemble 1"
                file["state"] = np.full((2, 4, components), np.nan)
                file["time"] = np.linspace(0, 1, 4)
                file["initial_state"] = np.zeros((2, components))
            for kind in ("all", "series", "phase", "spread"):
                self.fail_with(f"{name}: found {found}, expected finite states to draw", "plot", name, "--kind", kind)
        with h5py.File(self.path("nan.h5"), "r+") as file:
            file["state"][:] = 1e308
        self.fail_with("nan.h5: found no state of u0 that is smaller than 4e307, expected finite states to draw", "plot",
                       "nan.h5")
        with h5py.File(self.path("nan.h5"), "r+") as file:
            file["state"][0] = [[3e307, -3e307, 0]] * 4
        self.succeed("plot", "nan.h5")

    def test_what_is_killed_leaves_no_temporary_files(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        self.path("bin").mkdir()
        self.write("bin/gnuplot", "#!/bin/sh\nexec sleep 3\n")
        self.path("bin/gnuplot").chmod(0o755)
        before = sorted(path.name for path in self.folder.iterdir())
        for number, code in ((signal.SIGTERM, -15), (signal.SIGINT, -2)):
            environment = {**os.environ, "PATH": f"{self.path('bin')}:{os.environ['PATH']}", "TMPDIR": str(self.folder)}
            process = subprocess.Popen(  # a background job of a shell ignores SIGINT, and so would what it starts
                    [TOOL, "plot", "lorenz.h5"], cwd=self.folder, env=environment,
                    preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in (signal.SIGINT, signal.SIGTERM)])
            self.addCleanup(process.kill)
            deadline = time.monotonic() + 60
            while not list(self.folder.glob("lockstep-plot-*/log.txt")):
                self.assertLess(time.monotonic(), deadline)
                self.assertIsNone(process.poll())
                time.sleep(0.02)
            self.assertEqual(len(list(self.folder.glob(".lorenz_series.png.part-*"))), 1)
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=60), code)
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)

    def test_the_key_of_many_curves_lies_beside_them(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        shutil.copy(self.path("lorenz.h5"), self.path("truth.h5"))
        for count, key in ((8, ["truth", "trajectory 0", "trajectory 99"]), (9, ["truth", "lorenz"])):
            self.succeed("plot", "lorenz.h5", "--against", "truth.h5", "--trajectories", count, "--format", "svg")
            text = self.picture_text("lorenz_overlay.svg")
            for name in key:
                self.assertIn(name, text)
            self.assertEqual("trajectory 0" in text, count == 8)

    def test_what_does_not_suit_a_figure_is_said(self):
        self.write("end.toml", LORENZ.replace("save = 21", ""))
        self.succeed("solve", "end.toml", "--quiet")
        self.fail_with("lorenz.h5: found a single save point", "plot", "lorenz.h5", "--kind", "series")
        out = self.succeed("plot", "lorenz.h5")
        self.assertIn("no series: a single save point", out)
        self.check_png("lorenz_phase.png")
        self.fail_with('--components: found "w", expected one of x, y, z', "plot", "lorenz.h5", "--components", "w")
        self.fail_with("a name ending in .png or .svg", "plot", "lorenz.h5", "--output", "x.gif")
        self.fail_with("lorenz.h5: found a single save point", "plot", "lorenz.h5", "--kind", "time_series")
        self.fail_with("no folder", "plot", "lorenz.h5", "--kind", "phase", "--output", "no/folder/x.png")

    def test_pictures_go_into_a_folder_that_is_there(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        (self.folder / "pictures.d").mkdir()
        out = self.succeed("plot", "lorenz.h5", "--output", "pictures.d")
        for kind in ("series", "phase", "spread"):
            self.assertIn(f"pictures.d/lorenz_{kind}.png\n", out)
            self.check_png(f"pictures.d/lorenz_{kind}.png")
        self.succeed("plot", "lorenz.h5", "--output", "pictures.d/", "--kind", "phase", "--format", "svg")
        self.assertTrue(self.path("pictures.d/lorenz_phase.svg").exists())
        out = self.succeed("plot", "lorenz.h5", "--output", "pictures.d", "--against", "lorenz.h5")
        self.check_png("pictures.d/lorenz_overlay.png")
        self.assertIn("no distance: no numbers that are finite in both and differ\n", out)
        self.assertEqual(len(list(self.folder.rglob("*.png"))), 4)

    def test_names_of_pictures_may_hold_anything(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        (self.folder / "two  spaces").mkdir()
        for name in ("two  spaces/it's  a", "line\nbreak", 'quo"te', "back\\slash"):
            self.succeed("plot", "lorenz.h5", "--kind", "phase", "--output", name + ".png")
            self.check_png(name + ".png")
        self.assertFalse(list(self.folder.rglob("*part*")))

    def test_a_picture_that_breaks_off_is_told(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        self.succeed("plot", "lorenz.h5", "--kind", "phase")
        (self.folder / "bin").mkdir()
        self.write("bin/gnuplot", "#!/bin/sh\noutput=$(sed -n \"s/^set output '\\(.*\\)'$/\\1/p\" \"$1\")\n"
                                  "printf '<svg>\\211PNG' >\"$output\"\n")
        self.path("bin/gnuplot").chmod(0o755)
        for kind in ("png", "svg"):
            self.fail_with(f"lorenz_phase.{kind}: found a picture that breaks off, expected all of it; free space", "plot",
                           "lorenz.h5", "--kind", "phase", "--format", kind,
                           env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        self.check_png("lorenz_phase.png")  # as it was
        self.assertFalse(self.path("lorenz_phase.svg").exists())

    def test_without_gnuplot_the_message_says_how_to_install_it(self):
        self.succeed("solve", "lorenz.toml", "--quiet")
        self.fail_with("apt install gnuplot-nox", "plot", "lorenz.h5", env={"PATH": str(self.folder)})
        self.assertFalse(list(self.folder.glob("*.png")))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
