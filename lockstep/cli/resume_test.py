"""Runs that are killed, stopped, or out of room: what their files hold, and that --resume gives the same bits.

usage: resume_test.py LOCKSTEP [unittest arguments]
LOCKSTEP_KILLS in the environment sets the number of kills, LOCKSTEP_SEED their moments.
Exit code 77 without h5py: skipped, not passed.
"""
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import ToolTest, TOOL, h5py, np

KILLS = int(os.environ.get("LOCKSTEP_KILLS", 25))
SEED = int(os.environ.get("LOCKSTEP_SEED", 1))
CANCELLED = 6
COLUMNS = ("state", "end_state", "status", "accepted", "rejected", "evaluations", "end_time")

# Tight tolerances: much work for few numbers, so that there are many moments to be killed at.
SLOW = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = {trajectories}
initial_state = {{ normal = {{ mean = [1, 0, 0], std = 0.1 }} }}
[time]
span = [0, 60]
save = 6
[method]
precision = "f64"
rtol = 1e-10
atol = 1e-10
[output]
file = "slow.h5"
"""
# Never done in time, in a file of 40 MB.
ENDLESS = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = 200000
[time]
span = [0, 10000]
save = 11
[method]
precision = "f32"
max_steps = 1000000000
[output]
file = "endless.h5"
"""


# One that never ends among many that end at once.
STRAGGLER = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = 400
initial_state = {{ normal = {{ mean = [1, 0, 0], std = 0.1 }} }}
[time]
span = [{spans}]
[method]
precision = "f64"
max_steps = 1000000000
[output]
file = "straggler.h5"
"""


class ResumeTest(ToolTest):
    silent = False
    one_line = False
    timeout = 300

    def setUp(self):
        super().setUp()
        self.write("slow.toml", SLOW.format(trajectories=4000))
        self.write("endless.toml", ENDLESS)

    def succeed(self, *arguments):
        done = self.run_tool(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def start(self, *arguments):
        process = subprocess.Popen([TOOL, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stderr.close()))
        return process

    def wait_until(self, condition, process=None):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            if process is not None:
                self.assertIsNone(process.poll(), "ended too early")
            time.sleep(0.01)

    def begun(self, name):
        return self.path(name).exists() and self.path(name).stat().st_size > 0

    def stored(self, name):
        with h5py.File(self.path(name), "r") as file:
            return int(np.count_nonzero(file["status"][:] != CANCELLED))

    def kill_with_some_stored(self, *arguments):
        """A run of slow.toml killed when a part of its trajectories is in slow.h5.part; how many."""
        process = self.start("solve", "slow.toml", "--threads", "1", *arguments)
        self.wait_until(lambda: self.begun("slow.h5.part") and self.stored("slow.h5.part") > 0, process)
        process.kill()
        process.wait()
        return self.stored("slow.h5.part")

    def columns(self, name):
        with h5py.File(self.path(name), "r") as file:
            return {column: file[column][:] for column in COLUMNS}

    def assert_same(self, name, whole, rows=slice(None)):
        found = self.columns(name)
        for column in COLUMNS:
            self.assertEqual(found[column][rows].tobytes(), whole[column][rows].tobytes(), f"{column} of {name}")

    def nothing_left(self):
        left = [path.name for path in self.folder.iterdir() if "part" in path.name]
        self.assertFalse(left)


class Killed(ResumeTest):
    def test_every_committed_trajectory_survives_kills_at_any_moment(self):
        random.seed(SEED)
        print(f"seed {SEED}, {KILLS} kills", file=sys.stderr)
        # As long as some kills take, on any machine.
        trajectories = 500
        while True:
            self.write("slow.toml", SLOW.format(trajectories=trajectories))
            begin = time.monotonic()
            self.succeed("solve", "slow.toml", "--output", "whole.h5", "--overwrite", "--quiet")
            whole_seconds = time.monotonic() - begin
            if whole_seconds > 1 or trajectories > 200_000:
                break
            trajectories *= 2
        whole = self.columns("whole.h5")
        kills = finished = longest_chain = chain = 0
        deadline = time.monotonic() + 90
        while kills < KILLS and time.monotonic() < deadline:
            process = self.start("solve", "slow.toml", "--resume", "--quiet")
            time.sleep(random.uniform(0, min(0.6 * whole_seconds, 0.8)))
            process.kill()
            if process.wait() == 0:
                self.assert_same("slow.h5", whole)
                self.path("slow.h5").unlink()
                finished += 1
                chain = 0
                continue
            self.assertEqual(process.returncode, -signal.SIGKILL, process.stderr.read())
            kills += 1
            chain += 1
            longest_chain = max(longest_chain, chain)
            if self.path("slow.h5").exists():  # killed after it was done
                self.assert_same("slow.h5", whole)
            elif self.begun("slow.h5.part"):
                with h5py.File(self.path("slow.h5.part"), "r") as file:
                    rows = np.flatnonzero(file["status"][:] != CANCELLED)
                    # The counter is written after the statuses it counts.
                    self.assertLessEqual(file["committed"][()], len(rows))
                self.assert_same("slow.h5.part", whole, rows)
        self.succeed("solve", "slow.toml", "--resume", "--quiet")
        self.assert_same("slow.h5", whole)
        self.nothing_left()
        print(f"{kills} kills, {finished} runs finished meanwhile, up to {longest_chain} kills of one", file=sys.stderr)
        self.assertGreater(kills, KILLS // 2, "the machine is too slow for this test")

    def test_a_slow_trajectory_loses_none_of_its_neighbours(self):
        spans = ["[0, 1]"] * 400
        spans[200] = "[0, 1e9]"
        self.write("straggler.toml", STRAGGLER.format(spans=", ".join(spans)))
        process = self.start("solve", "straggler.toml", "--threads", "1")
        self.wait_until(lambda: self.begun("straggler.h5.part") and self.stored("straggler.h5.part") == 399, process)
        process.kill()
        process.wait()
        with h5py.File(self.path("straggler.h5.part"), "r") as file:
            self.assertEqual(np.flatnonzero(file["status"][:] == CANCELLED).tolist(), [200])
            self.assertEqual(file["committed"][()], 399)
            self.assertTrue(np.isfinite(file["end_state"][:200]).all() and np.isfinite(file["end_state"][201:]).all())

    def test_resume_says_what_it_does(self):
        done = self.succeed("solve", "slow.toml", "--output", "whole.h5", "--resume")
        self.assertIn("lockstep: nothing of whole.h5 to continue: beginning", done.stderr)
        self.write("slow.toml", SLOW.format(trajectories=20000))
        count = self.kill_with_some_stored()
        self.fail_with(f"slow.h5: found slow.h5.part of an earlier run, where {count:,} of 20,000 trajectories are finished, "
                       "expected none; continue that run with --resume, or begin anew with --overwrite",
                       "solve", "slow.toml")
        self.assertIn(f"{count:,} success, {20000 - count:,} cancelled", self.succeed("info", "slow.h5.part").stdout)
        done = self.succeed("solve", "slow.toml", "--resume")
        self.assertIn(f"lockstep: continuing slow.h5.part: {count:,} of 20,000 trajectories are finished", done.stderr)
        self.assertIn("20,000 trajectories: 20,000 success", done.stdout)
        self.nothing_left()
        done = self.succeed("solve", "slow.toml", "--resume")
        self.assertEqual(done.stdout, "slow.h5: 20,000 of 20,000 trajectories are finished: nothing to do\n")
        self.succeed("solve", "slow.toml", "--output", "whole.h5", "--overwrite")
        self.assertIn("same bits", self.succeed("validate", "whole.h5", "slow.h5").stdout)
        with h5py.File(self.path("slow.h5")) as parts, h5py.File(self.path("whole.h5")) as whole:
            self.assertEqual(parts.attrs["resumed"], 1)
            for total in ("accepted_steps", "rejected_steps", "rhs_evaluations"):
                self.assertEqual(parts.attrs[total], whole.attrs[total])

    def test_overwrite_begins_anew(self):
        self.write("slow.toml", SLOW.format(trajectories=20000))
        self.kill_with_some_stored()
        self.succeed("solve", "slow.toml", "--overwrite", "--trajectories", 100)
        self.assertEqual(self.stored("slow.h5"), 100)
        self.nothing_left()

    def test_another_run_is_not_continued(self):
        self.write("slow.toml", SLOW.format(trajectories=20000))
        self.kill_with_some_stored()
        for change, found, expected in (
                (("--rtol", "1e-9"), "rtol 1e-10", "rtol 1e-09"),
                (("--method", "rk4", "--dt", "0.1"), "method tsit5, control per_trajectory, rtol 1e-10, atol 1e-10, dt none",
                 "method rk4, control fixed, rtol none, atol none, dt 0.1"),
                (("--trajectories", "30"), "trajectories 20000", "trajectories 30"),
                (("--seed", "4"), "initial x of trajectory 0 ", "initial x of trajectory 0 ")):
            with self.subTest(change):
                self.fail_with(f"slow.h5.part: found results of another run: {found}", "solve", "slow.toml", "--resume", *change)
                self.fail_with(f", expected {expected}", "solve", "slow.toml", "--resume", *change)
        text = self.path("slow.toml").read_text()
        for change, found in ((("[0, 60]", "[0, 61]"), "save point 1 12, expected save point 1 12.2"),
                              (("[time]", "parameters = { rho = 28.5 }\n[time]"), "rho 28, expected rho 28.5"),
                              (('"lorenz"', '"rossler"'), "rhs lorenz")):
            with self.subTest(change):
                self.write("changed.toml", text.replace(*change))
                self.fail_with(found, "solve", "changed.toml", "--resume")
        with h5py.File(self.path("slow.h5.part"), "r+") as file:
            file.attrs["version"] = "0.0.9"
        self.fail_with("version 0.0.9, expected version", "solve", "slow.toml", "--resume")

    def test_other_equations_are_not_continued(self):
        text = SLOW.format(trajectories=1)
        text = text.replace('system = "lorenz"', '[rhs.equations]\nx = "y"\ny = "z"\nz = "-x"')
        self.write("slow.toml", text)
        self.succeed("solve", "slow.toml")
        self.write("spaced.toml", text.replace('"-x"', '" - x"'))
        self.assertIn("nothing to do", self.succeed("solve", "spaced.toml", "--resume").stdout)
        self.write("changed.toml", text.replace('"-x"', '"-y"'))
        self.fail_with("slow.h5: found results of another run: rhs net equations", "solve", "changed.toml", "--resume")
        self.fail_with(", dz/dt = -x, expected rhs net equations", "solve", "changed.toml", "--resume")
        self.fail_with(", dz/dt = -y; undo the change", "solve", "changed.toml", "--resume")
        self.succeed("solve", "changed.toml", "--output", "changed.h5")
        verdict = self.run_tool("validate", "slow.h5", "changed.h5")
        self.assertEqual(verdict.returncode, 2)
        self.assertIn("dx/dt = y, dy/dt = z, dz/dt = -x and dx/dt = y, dy/dt = z, dz/dt = -y", verdict.stdout)

    def test_one_step_for_all_begins_anew(self):
        self.write("slow.toml", SLOW.format(trajectories=64).replace('rtol', 'control = "common"\nrtol', 1))
        self.succeed("solve", "slow.toml", "--output", "whole.h5")
        shutil.copy(self.path("whole.h5"), self.path("slow.h5.part"))
        with h5py.File(self.path("slow.h5.part"), "r+") as file:
            file["status"][3] = CANCELLED
        done = self.succeed("solve", "slow.toml", "--resume")
        self.assertIn('one step size for all (control = "common") cannot be continued: beginning anew', done.stderr)
        self.assert_same("slow.h5", self.columns("whole.h5"))
        # A run that was stopped, and one that began anew in its place and was killed.
        for name in ("slow.h5", "slow.h5.part"):
            shutil.copy(self.path("whole.h5"), self.path(name))
            with h5py.File(self.path(name), "r+") as file:
                file["status"][:] = CANCELLED
        self.succeed("solve", "slow.toml", "--resume")
        self.assert_same("slow.h5", self.columns("whole.h5"))
        self.nothing_left()
        # A complete one is nobody's to replace.
        shutil.copy(self.path("whole.h5"), self.path("slow.h5.part"))
        with h5py.File(self.path("slow.h5.part"), "r+") as file:
            file["status"][:] = CANCELLED
        self.fail_with("slow.h5: found a file of that name", "solve", "slow.toml", "--resume")
        self.assertTrue(self.path("slow.h5.part").exists())

    def test_a_damaged_file_is_not_taken_for_nothing(self):
        self.write("slow.h5.part", "not HDF5")
        self.fail_with("slow.h5.part: found no HDF5 signature, expected a file that can be continued; remove slow.h5.part",
                       "solve", "slow.toml", "--resume")
        self.path("slow.h5.part").unlink()
        self.succeed("solve", "slow.toml")
        os.truncate(self.path("slow.h5"), 20000)
        done = self.fail_with("slow.h5: found a file that is damaged, or no result: ", "solve", "slow.toml", "--resume")
        self.assertIn("or begin anew with --overwrite instead of --resume", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.succeed("solve", "slow.toml", "--overwrite")


class Stopped(ResumeTest):
    def stop(self, number, *arguments):
        process = self.start("solve", "slow.toml", "--threads", "1", *arguments)
        self.wait_until(lambda: self.begun("slow.h5.part") and self.stored("slow.h5.part") > 0, process)
        process.send_signal(number)
        out, errors = process.communicate(timeout=60)
        return process.returncode, errors

    def test_signals_commit_and_the_run_goes_on_from_there(self):
        self.write("slow.toml", SLOW.format(trajectories=20000))
        self.succeed("solve", "slow.toml", "--output", "whole.h5")
        whole = self.columns("whole.h5")
        arguments = ()
        for number, code in ((signal.SIGTERM, 143), (signal.SIGUSR1, 138)):
            found, errors = self.stop(number, *arguments)
            if found == 0:
                break  # was quicker
            self.assertEqual(found, code, errors)
            self.assertRegex(errors, r"lockstep: stopped: [\d,]+ of 20,000 trajectories are finished and in slow.h5; "
                                     r"continue with --resume")
            rows = np.flatnonzero(self.columns("slow.h5")["status"] != CANCELLED)
            self.assertGreater(len(rows), 0)
            self.assert_same("slow.h5", whole, rows)
            self.assertTrue(np.isnan(self.columns("slow.h5")["end_state"]).any())
            self.fail_with(f"slow.h5: found slow.h5 of an earlier run, where {len(rows):,} of 20,000", "solve", "slow.toml")
            arguments = ("--resume",)
        self.succeed("solve", "slow.toml", "--resume")
        self.assert_same("slow.h5", whole)
        self.nothing_left()

    def test_a_finished_file_is_replaced_by_a_finished_one_alone(self):
        self.write("slow.toml", SLOW.format(trajectories=20000))
        self.succeed("solve", "slow.toml", "--output", "whole.h5")
        self.succeed("solve", "slow.toml", "--trajectories", 100)
        before = self.path("slow.h5").read_bytes()
        # The flag has to be given again, the key is there.
        self.write("keyed.toml", SLOW.format(trajectories=20000) + "overwrite = true\n")
        for problem, flags, again in (("slow.toml", ("--overwrite",), ("--resume", "--overwrite")),
                                      ("keyed.toml", (), ("--resume",))):
            with self.subTest(problem):
                self.path("slow.h5").write_bytes(before)
                process = self.start("solve", problem, "--threads", "1", *flags)
                self.wait_until(lambda: self.begun("slow.h5.part") and self.stored("slow.h5.part") > 0, process)
                process.send_signal(signal.SIGINT)
                out, errors = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 130, errors)
                count = self.stored("slow.h5.part")
                self.assertEqual(errors.splitlines()[-1],
                                 f"lockstep: stopped: {count:,} of 20,000 trajectories are finished and in slow.h5.part; "
                                 f"slow.h5 is the earlier file still; continue with {' '.join(again)}")
                self.assertEqual(self.path("slow.h5").read_bytes(), before)
                for resume in ((), ("--resume",)):
                    self.fail_with("slow.h5: found a file of that name, and beside it slow.h5.part of an earlier run, where "
                                   f"{count:,} of 20,000 trajectories are finished, expected one of the two; continue that "
                                   "run with --resume --overwrite", "solve", "slow.toml", *resume)
                self.succeed("solve", problem, *again)
                self.assert_same("slow.h5", self.columns("whole.h5"))
                self.nothing_left()

    def test_a_time_limit_keeps_an_earlier_file(self):
        self.succeed("solve", "slow.toml", "--output", "endless.h5")
        before = self.path("endless.h5").read_bytes()
        done = self.run_tool("solve", "endless.toml", "--overwrite", "--time-limit", "1")
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertEqual(self.path("endless.h5").read_bytes(), before)
        self.assertTrue(self.begun("endless.h5.part"))

    def test_a_time_limit_commits_and_exits_with_124(self):
        done = self.run_tool("solve", "endless.toml", "--time-limit", "1")
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertRegex(done.stderr, r"lockstep: stopped: [\d,]+ of 200,000 trajectories are finished and in endless.h5")
        for text in ("0", "soon", "1:2:3:4", "-5", "1:", "2-3", ""):
            if text:
                self.fail_with(f'--time-limit: found "{text}", expected whole seconds, or MM:SS, HH:MM:SS, D-HH:MM:SS',
                               "solve", "endless.toml", f"--time-limit={text}")
        self.succeed("solve", "slow.toml", "--time-limit", "1-00:00:00")

    def test_a_large_file_is_left_unfinished_rather_than_filled(self):
        if shutil.disk_usage(self.folder).free < 4e9:
            self.skipTest("needs room for a file of 1.3 GB")
        self.write("endless.toml", ENDLESS.replace("200000", "1000000").replace("save = 11", "save = 101"))
        process = self.start("solve", "endless.toml")
        self.wait_until(lambda: self.begun("endless.h5.part"), process)
        process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        out, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, errors)
        self.assertIn("of 1,000,000 trajectories are finished and in endless.h5.part; continue with --resume", errors)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertFalse(self.path("endless.h5").exists())
        self.assertEqual(self.run_tool("solve", "endless.toml", "--resume", "--time-limit", "1").returncode, 124)

    def test_a_second_run_is_refused(self):
        process = self.start("solve", "endless.toml")
        self.wait_until(lambda: self.begun("endless.h5.part"), process)
        for flags in ((), ("--resume",), ("--overwrite",)):
            with self.subTest(flags):
                done = self.fail_with("endless.h5: found another run that is writing it, as endless.h5.part, expected one run "
                                      "at a time; wait until it has ended, or choose another name",
                                      "solve", "endless.toml", *flags)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIsNone(process.poll(), "the first goes on")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)


class OutOfRoom(ResumeTest):
    def test_a_limit_reached_during_the_run_keeps_what_is_committed(self):
        self.write("slow.toml", SLOW.format(trajectories=20000))
        self.succeed("solve", "slow.toml", "--output", "whole.h5")
        whole = self.columns("whole.h5")
        process = self.start("solve", "slow.toml", "--threads", "1")
        self.wait_until(lambda: self.begun("slow.h5.part") and self.stored("slow.h5.part") > 0, process)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        out, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 2, errors)
        self.assertRegex(errors, r"\Alockstep: error: slow.h5: found File too large, with \d+ bytes available on the disk, "
                                 r"expected to write \d+ more bytes; the \d+ trajectories stored so far stay in "
                                 r"slow.h5.part: make room there and continue with --resume\n\Z")
        self.assertFalse(self.path("slow.h5").exists(), "nothing half-written under the final name")
        columns = self.columns("slow.h5.part")
        rows = np.flatnonzero(columns["status"] != CANCELLED)
        self.assertIn(f"the {len(rows)} trajectories stored", errors)
        self.assert_same("slow.h5.part", whole, rows)
        self.succeed("solve", "slow.toml", "--resume")
        self.assert_same("slow.h5", whole)

    def test_a_limit_reached_at_the_beginning_leaves_nothing(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
        self.fail_with("endless.h5: found a limit of 1000000 bytes on the size of files (ulimit -f), expected room for",
                       "solve", "endless.toml", preexec_fn=limit)
        self.assertEqual([path.name for path in self.folder.iterdir() if "h5" in path.name], [])

    def small_disk(self, size):
        disk = self.path("disk")
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"needs to mount a small tmpfs: {mounted.stderr.strip()}")
        self.addCleanup(lambda: subprocess.run(["umount", disk], check=True))
        return disk

    def test_a_full_disk_is_an_error_before_the_solve(self):
        disk = self.small_disk("4m")
        self.fail_with("disk/a.h5: found room for 4,194,304 bytes on the disk, expected room for ", "solve", "endless.toml",
                       "--output", "disk/a.h5")
        self.assertEqual(list(disk.iterdir()), [])
        self.succeed("solve", "slow.toml", "--output", "disk/a.h5")
        self.assertEqual([path.name for path in disk.iterdir()], ["a.h5"])

    def test_a_disk_that_events_fill_is_told_with_what_is_kept(self):
        disk = self.small_disk("8m")
        self.write("bounce.toml", '[rhs]\nparameters = { g = 9.81 }\n[rhs.equations]\nx = "v"\nv = "-g"\n[ensemble]\n'
                                  'trajectories = 20000\ninitial_state = { x = { box = [1, 2] }, v = 0 }\n[time]\nspan = [0, 200]\n'
                                  'save = 2\n[[resets]]\ncomponent = "x"\ndirection = "falling"\nto = { x = 0, v = "-v" }\n'
                                  '[output]\nfile = "disk/ev.h5"\nevents = true\n')
        done = self.run_tool("solve", "bounce.toml")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("disk/ev.h5.part.events: found No space left on device, expected to write ", done.stderr)
        kept = (disk / "ev.h5.part").exists()  # by when the disk filled
        self.assertEqual("continue with --resume" in done.stderr, kept, done.stderr)
        self.assertEqual("no trajectory was stored yet, so that nothing is kept: make room" in done.stderr, not kept, done.stderr)
        self.assertEqual(list(disk.iterdir()) == [], not kept)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
