"""`mpirun -n N lockstep solve` from outside: the same bits as one run, and one message whatever fails.

usage: mpi_test.py LOCKSTEP MPIEXEC [unittest arguments]
Exit code 77 without h5py or where MPI cannot start two processes here: skipped, not passed.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests"))
from tool_test import LORENZ, ToolTest, TOOL, h5py

MPIEXEC = sys.argv[2]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl="self,vader,tcp",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_plm_rsh_agent="false",
                   PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe", PRTE_MCA_plm_ssh_agent="false")  # Open MPI 5

PROBLEM = LORENZ.replace("trajectories = 100", "trajectories = 101").replace("save = 21", "save = 5")
# Minutes on any machine, in trajectories of some milliseconds.
LONG = """
[rhs]
system = "lorenz"
[ensemble]
trajectories = 1000000
initial_state = { normal = { mean = [1, 0, 0], std = 0.1 } }
[time]
span = [0, 200]
[method]
precision = "f64"
rtol = 1e-10
atol = 1e-10
max_steps = 1000000000
[output]
file = "long.h5"
"""


def mpirun(count, *arguments, **options):
    return subprocess.run([MPIEXEC, "-n", str(count), TOOL, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, env=ENVIRONMENT, **options)


def descendants(pid):
    """Open MPI's launcher starts ranks itself, MPICH's by way of another process."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return children + [below for child in children for below in descendants(child)]


class MpiTest(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        (self.folder / "p.toml").write_text(PROBLEM)
        (self.folder / "long.toml").write_text(LONG)

    def names(self):
        return sorted(path.name for path in self.folder.glob("*.h5*"))

    def on_ranks(self, count, *arguments):
        return mpirun(count, "solve", *arguments, cwd=self.folder)

    def succeed(self, count, *arguments):
        done = self.on_ranks(count, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def fail_once(self, message, count, *arguments):
        done = self.on_ranks(count, *arguments)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        said = [line for line in (done.stdout + done.stderr).splitlines() if "lockstep: " in line]
        self.assertEqual(len(said), 1, done.stdout + done.stderr)
        self.assertIn(message, said[0])

    def expect_same_bits(self, a, b):
        done = self.run_tool("validate", "--bits", a, b)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\Asame bits: all")

    def test_ranks_give_the_bits_of_one_run_and_an_index(self):
        self.assertEqual(self.run_tool("solve", "p.toml", "--output", "whole.h5", "--certificate").returncode, 0)
        for count in (2, 3):
            text = self.succeed(count, "p.toml", "--certificate")
            self.assertEqual(text.count("101 trajectories: 101 success"), 1, text)
            self.assertIn(f"an index of {count} files", text)
            self.assertEqual(self.names(), ["lorenz.h5"] + [f"lorenz.shard-{i}-of-{count}.h5"
                                                             for i in range(1, count + 1)] + ["whole.h5"])
            self.expect_same_bits("whole.h5", "lorenz.h5")
            with h5py.File(self.folder / "lorenz.h5") as index, h5py.File(self.folder / "whole.h5") as whole:
                self.assertEqual(sorted(index), sorted(whole))
                for name in ("certificate_state", "certificate_trajectory", "state", "accepted"):
                    self.assertEqual(index[name][()].tobytes(), whole[name][()].tobytes(), name)
            for path in self.folder.glob("lorenz*"):
                path.unlink()

    def test_ranks_share_the_machines_processors(self):
        online = os.sysconf("SC_NPROCESSORS_ONLN")
        ranks = max(3, online)  # Open MPI binds no more than two ranks to processors of their own

        def threads(*flags):
            self.succeed(ranks, "p.toml", "--trajectories", 100 * ranks, "--overwrite", *flags)
            found = set()
            for path in self.folder.glob("lorenz.shard-*.h5"):
                with h5py.File(path) as file:
                    found.add(int(file.attrs["threads"]))
            return found
        self.assertEqual(threads(), {1})
        self.assertEqual(threads("--threads", 2), {2})

    def test_an_output_that_is_named_is_the_index(self):
        self.succeed(2, "p.toml", "--output", "mine.h5", "--quiet")
        self.assertEqual(self.names(), ["mine.h5", "mine.shard-1-of-2.h5", "mine.shard-2-of-2.h5"])

    def test_a_failure_of_all_ranks_is_told_once(self):
        self.fail_once("missing.toml: found", 3, "missing.toml")
        self.fail_once('--method: found "rk5"', 3, "p.toml", "--method", "rk5")
        self.fail_once("--shard: found", 3, "p.toml", "--trajectories", "2")
        self.assertEqual(self.names(), [])

    def test_a_failure_of_one_rank_ends_all_and_is_told_once(self):
        (self.folder / "lorenz.shard-2-of-3.h5").write_text("precious")
        self.fail_once("lorenz.shard-2-of-3.h5: found a file of that name", 3, "p.toml")
        self.assertEqual(self.names(), ["lorenz.shard-2-of-3.h5"])
        (self.folder / "lorenz.shard-2-of-3.h5").unlink()
        (self.folder / "lorenz.h5").write_text("precious")
        self.fail_once("lorenz.h5: found a file of that name", 3, "p.toml")
        self.assertEqual(self.names(), ["lorenz.h5"])
        self.assertEqual((self.folder / "lorenz.h5").read_text(), "precious")
        self.succeed(3, "p.toml", "--overwrite")

    def test_a_rank_that_cannot_write_ends_the_run_with_its_message(self):
        locked = self.folder / "lorenz.shard-1-of-2.h5.part"
        locked.mkdir()
        self.fail_once("lorenz.shard-1-of-2.h5", 2, "p.toml")

    def test_resume_finishes_what_is_missing_and_finds_the_work_done(self):
        self.succeed(3, "p.toml")
        shutil.move(self.folder / "lorenz.h5", self.folder / "first.h5")
        with h5py.File(self.folder / "lorenz.shard-1-of-3.h5", "r+") as file:  # as a stopped run leaves it
            file["status"][5:20] = 6
            file["state"][5:20] = float("nan")
            file["committed"][()] = file["committed"][()] - 15
        (self.folder / "lorenz.shard-2-of-3.h5").unlink()
        self.succeed(3, "p.toml", "--resume")
        self.assertEqual(self.run_tool("solve", "p.toml", "--output", "whole.h5").returncode, 0)
        self.expect_same_bits("whole.h5", "lorenz.h5")
        self.assertIn("101 success", self.succeed(3, "p.toml", "--resume"))
        # The rank that tells has found its share done: the time is that of the one that had something to do.
        (self.folder / "lorenz.shard-2-of-3.h5").unlink()
        self.assertRegex(self.succeed(3, "p.toml", "--resume"),
                         r"\n[1-9][\d.,]* \w+, [1-9][\d.,]* trajectories/s: \w+, .* on cpu \(\w+\), \d+ threads?\n")

    def test_a_shard_that_is_asked_for_needs_no_other_rank(self):
        script = f"exec {TOOL} solve p.toml --quiet --shard $((${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} + 1))/2"
        done = subprocess.run([MPIEXEC, "-n", "2", "sh", "-c", script], capture_output=True, text=True, timeout=120,
                              env=ENVIRONMENT, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.names(), ["lorenz.shard-1-of-2.h5", "lorenz.shard-2-of-2.h5"])

    def start_long_run(self):
        """A run of three ranks, some trajectories of each solved."""
        running = subprocess.Popen([MPIEXEC, "-n", "3", TOOL, "solve", "long.toml"], cwd=self.folder, env=ENVIRONMENT,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun = time.monotonic()
        while time.monotonic() - begun < 60 and len(list(self.folder.glob("*.part"))) < 3:
            time.sleep(0.1)
        time.sleep(3)
        self.assertIsNone(running.poll(), "the problem is too short for this test")
        return running

    def stored(self):
        """Trajectories that are whole, over the files of all ranks."""
        total = 0
        for index in (1, 2, 3):
            name = self.folder / f"long.shard-{index}-of-3.h5"
            path = name if name.exists() else pathlib.Path(f"{name}.part")
            with h5py.File(path) as file:
                count = int((file["status"][:] != 6).sum())
                self.assertLessEqual(int(file["committed"][()]), count)
                total += count
        return total

    def test_ctrl_c_keeps_what_is_finished(self):
        running = self.start_long_run()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        self.assertNotEqual(running.returncode, 0, out + err)
        self.assertGreater(self.stored(), 0)
        self.assertFalse((self.folder / "long.h5").exists())

    def test_a_killed_rank_ends_the_run_and_loses_nothing_stored(self):
        running = self.start_long_run()
        ranks = [pid for pid in descendants(running.pid) if pathlib.Path(f"/proc/{pid}/exe").resolve() == TOOL]
        self.assertEqual(len(ranks), 3)
        os.kill(int(ranks[1]), signal.SIGKILL)
        out, err = running.communicate(timeout=60)
        self.assertNotEqual(running.returncode, 0, out + err)
        self.assertGreater(self.stored(), 0)
        self.assertFalse((self.folder / "long.h5").exists())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        if subprocess.run([MPIEXEC, "-n", "2", "true"], env=ENVIRONMENT, cwd=place, capture_output=True).returncode != 0:
            print(f"skipped: {MPIEXEC} cannot start two processes here", file=sys.stderr)
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
