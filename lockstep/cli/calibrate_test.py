#!/usr/bin/env python3
"""`lockstep calibrate` from outside, with a cache folder of its own: measures, shows, and what explain makes of it."""
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, ToolTest


class Calibrate(ToolTest):
    silent = False  # progress

    def setUp(self):
        super().setUp()
        self.write("lorenz.toml", LORENZ)
        self.environment = os.environ | {"XDG_CACHE_HOME": str(self.path("cache")), "LOCKSTEP_CUDA_LIBRARY": "/nowhere"}
        self.file = self.path("cache") / "lockstep" / "calibration.json"

    def tell(self, *arguments):
        return self.succeed(*arguments, env=self.environment)

    def test_a_machine_is_measured_once_and_explain_says_so(self):
        self.assertIn("was not measured", self.tell("calibrate", "--show"))
        self.assertIn("figures built in", self.tell("explain", "lorenz.toml"))
        text = self.tell("calibrate")
        for part in ("one thread, ", "f32", "f64", "no GPU measured", "kept in", str(self.file)):
            self.assertIn(part, text)
        kept = json.loads(self.file.read_text())
        self.assertEqual(kept["version"], 1)
        self.assertGreaterEqual(len(kept["machines"][0]["cpu"]), 2)
        self.assertIn("one thread, ", self.tell("calibrate", "--show"))
        self.assertIn("on the CPU (figures measured 2", self.tell("explain", "lorenz.toml"))

    def test_a_damaged_file_is_told_and_built_in_figures_serve(self):
        self.file.parent.mkdir(parents=True)
        self.file.write_text('{"version": 1, "machines": [')
        text = self.tell("explain", "lorenz.toml")
        self.assertIn("figures built in", text)
        self.assertIn("a damaged file", text)
        done = self.run_tool("calibrate", "--show", env=self.environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("lockstep calibrate", done.stderr)

    def test_without_a_home_the_error_says_what_to_set(self):
        environment = {k: v for k, v in self.environment.items() if k not in ("HOME", "XDG_CACHE_HOME")}
        done = self.run_tool("calibrate", env=environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("set XDG_CACHE_HOME", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
