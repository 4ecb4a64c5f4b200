"""The example's command, what its page says of it, and Runge and Kutta's steps by hand.

usage: neurons_test.py LOCKSTEP [unittest arguments]
Exit code 77 without h5py: skipped, not passed.
"""
import pathlib
import shutil
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from tool_test import ToolTest, h5py, np


def spikes_by_hand(current, end, h, a=0.02, b=0.2, c=-65.0, d=8.0):
    """Times of all spikes: RK4 in t, and from the step that would pass 30 mV on RK4 in v, which ends there exactly."""

    def slopes(v, u):
        return 0.04 * v * v + 5 * v + 140 - u + current, a * (b * v - u)

    def by_potential(v, u):
        dv, du = slopes(v, u)
        return 1 / dv, du / dv

    v, u, t, times = -70.0, -14.0, 0.0, []
    while t < end:
        v1, u1 = slopes(v, u)
        v2, u2 = slopes(v + h / 2 * v1, u + h / 2 * u1)
        v3, u3 = slopes(v + h / 2 * v2, u + h / 2 * u2)
        v4, u4 = slopes(v + h * v3, u + h * u3)
        next_v = v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        if next_v < 30:
            v, u, t = next_v, u + h / 6 * (u1 + 2 * u2 + 2 * u3 + u4), t + h
            continue
        s = 30 - v
        t1, u1 = by_potential(v, u)
        t2, u2 = by_potential(v + s / 2, u + s / 2 * u1)
        t3, u3 = by_potential(v + s / 2, u + s / 2 * u2)
        t4, u4 = by_potential(v + s, u + s * u3)
        t += s / 6 * (t1 + 2 * t2 + 2 * t3 + t4)
        v, u = c, u + s / 6 * (u1 + 2 * u2 + 2 * u3 + u4) + d
        times.append(t)
    return np.array(times)


class Neurons(ToolTest):
    silent = False

    def setUp(self):
        super().setUp()
        shutil.copy(HERE / "neurons.toml", self.folder)

    def solve(self, *flags):
        """Times of each neuron's spikes, and the currents."""
        self.succeed("solve", "neurons.toml", "--quiet", "--overwrite", *flags)
        with h5py.File(self.path("neurons.h5")) as file:
            self.assertTrue((file["status"][:] == 0).all())
            self.assertEqual(set(file["event_reset"][:]), {0})
            ends = np.searchsorted(file["event_trajectory"][:], file["trajectory"][:], side="right")
            return np.split(file["event_time"][:], ends)[:-1], file["parameters"][:, 4]

    def test_spikes_are_those_of_steps_by_hand(self):
        spikes, currents = self.solve("--trajectories", "5", "--precision", "f64", "--rtol", "1e-10", "--atol", "1e-10")
        for row in (0, 1, 2):  # currents of 0, 5 and 10
            coarse, fine = (spikes_by_hand(currents[row], 1000, h) for h in (0.02, 0.01))
            solved = spikes[row][spikes[row] < 1000]
            self.assertEqual((len(coarse), len(fine)), (len(solved),) * 2)
            # Of order 4: the finer steps err by a fifteenth of what halving changed. Solved errors are those of a few
            # hundred steps of 1e-10 of 100 mV and more, over slopes of at least 0.1 mV/ms.
            errors = np.abs(coarse - fine) / 15
            self.assertTrue((errors < 1e-6).all())
            self.assertTrue((np.abs(solved - fine) < 2 * errors + 1e-6).all())

    def test_rates_are_those_of_the_page(self):
        page = " ".join((HERE / "README.md").read_text().split())
        spikes, currents = self.solve()
        rates = np.array([(times >= 1000).sum() for times in spikes])
        fires = rates > 0
        first = currents[fires][0]
        self.assertTrue((fires == (currents >= first)).all())
        self.assertIn(f"{sum(map(len, spikes)) / 1e6:.2f} million spikes", page)
        self.assertIn(f"From {first:.2f} on", page)
        # Rest at (v, b v) with a v' of 0 becomes unstable where 0.08 v + 5 = a: v = -62.25 mV.
        rest = -62.25
        unstable = 0.2 * rest - 0.04 * rest**2 - 5 * rest - 140
        self.assertIn(f"at {unstable:.2f}", page)
        for current in (5, 10, 20):
            row = np.searchsorted(currents, current)
            by_interval = 1000 / np.diff(spikes[row])[-1]
            self.assertIn(f"| {current} | {by_interval:.1f} |", page)
            self.assertAlmostEqual(rates[row], by_interval, delta=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
