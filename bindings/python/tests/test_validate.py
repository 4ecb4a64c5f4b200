"""Verdicts from Python, over memory and files."""

import copy
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest

import lockstep

U0 = np.random.default_rng(5).normal([1, 0, 0], 0.3, (64, 3))


def solve(**changes):
    return lockstep.solve("lorenz", U0, (0, 10), 51, **{"method": "dop853", "precision": "f64", "rtol": 1e-10,
                                                       "atol": 1e-10, **changes})


def test_the_same_problem_has_the_same_bits_in_memory_and_file(tmp_path):
    a, b = solve(), solve(output=tmp_path / "b.h5", threads=1)
    for first, second in ((a, b), (b, a), (tmp_path / "b.h5", a)):
        verdict = lockstep.validate(first, second)
        assert verdict and verdict.same_bits and verdict.outcome == "agree"


@pytest.mark.parametrize("changes, field", [({"method": "tsit5"}, "method"), ({"rtol": 1e-8}, "rtol"),
                                            ({"max_step": 0.01}, "max_step")])
def test_another_method_gets_distances_and_no_verdict_from_memory_as_from_files(changes, field, tmp_path):
    a, b = solve(max_step=0.1), solve(**{"max_step": 0.1, **changes})
    a.save(tmp_path / "a.h5")
    b.save(tmp_path / "b.h5")
    judged = [lockstep.validate(*pair) for pair in ((a, b), (tmp_path / "a.h5", tmp_path / "b.h5"),
                                                    (a, tmp_path / "b.h5"))]
    for verdict in judged:
        assert not verdict and verdict.outcome == "undecided" and not verdict.same_bits
        assert f"not solved alike ({field} differs" in verdict.sentence
        assert any("the median trajectory comes to be" in reason for reason in verdict.reasons)
        assert verdict.evidence["differences"][0]["field"] == field
        assert verdict.evidence["evidence"] == judged[0].evidence["evidence"]


def test_what_does_not_forbid_is_told_from_memory_too():
    verdict = lockstep.validate(solve(rtol=1e-6, atol=1e-6), solve(rtol=1e-6, atol=1e-6, precision="f32"))
    told = {difference["field"]: difference for difference in verdict.evidence["differences"]}
    assert told["precision"]["a"] == "f64" and not told["precision"]["forbids"]


def changed(path, change):
    """The file of a solution whose states are changed."""
    solve().save(path)
    with h5py.File(path, "r+") as file:
        file["state"][...] = change(file["state"][...])
    return path


def rounded_up(state):
    return np.nextafter(state, np.inf)


def test_single_trajectories_are_examined_in_memory_too(tmp_path):
    a, b = solve(), changed(tmp_path / "b.h5", rounded_up)
    verdict = lockstep.validate(a, b)
    assert verdict and "not examined" not in verdict.sentence
    assert verdict.evidence["evidence"]["spread"]["examined"]["trajectories"] > 0
    # b is not to the bit what its problem gives, but as near as rounding.
    reverse = lockstep.validate(b, a)
    assert reverse and any("gives other bits than the file holds" in reason for reason in reverse.reasons)


def test_a_reference_that_was_changed_gets_no_verdict(tmp_path):
    def change(state):
        state[63, -1] *= -1
        return state

    a, b = changed(tmp_path / "a.h5", change), solve()
    verdict = lockstep.validate(a, b)
    assert verdict.outcome in ("undecided", "disagree") and not verdict
    assert "trajectory 63 of a.h5 is not what its own problem gives" in verdict.sentence
    assert lockstep.validate(b, a).outcome == "disagree"


def test_two_precisions_are_judged_alike_in_either_order():
    wide, narrow = solve(rtol=1e-4, atol=1e-4), solve(rtol=1e-4, atol=1e-4, precision="f32")
    for first, second in ((wide, narrow), (narrow, wide)):
        verdict = lockstep.validate(first, second)
        assert verdict.outcome == "agree", verdict.sentence
        assert verdict.evidence["evidence"]["spread"]["source"].startswith("8 members")


def test_another_problem_cannot_be_judged():
    verdict = lockstep.validate(solve(), solve(parameters={"rho": 28.001}))
    assert not verdict and verdict.outcome == "undecided" and "28.001" in verdict.sentence


def test_rounding_alone_is_a_port(tmp_path):
    a, b = solve(), changed(tmp_path / "b.h5", rounded_up)
    verdict = lockstep.validate(a, b, report=tmp_path / "report")
    assert verdict and not verdict.same_bits and "rounding" in verdict.sentence
    assert verdict.page.read_text().lstrip().lower().startswith("<!doctype")
    with h5py.File(b, "r+") as file:
        file["state"][0, 3, 1] += 1e-3
    assert lockstep.validate(a, b).outcome == "disagree"


def test_files_that_are_no_results_are_errors(tmp_path):
    (tmp_path / "a.h5").write_text("nothing")
    with pytest.raises(lockstep.FileError):
        lockstep.validate(tmp_path / "a.h5", tmp_path / "a.h5")


def test_the_evidence_is_made_when_asked_for(tmp_path):
    a, b = solve(), changed(tmp_path / "b.h5", rounded_up)
    verdict, other = lockstep.validate(a, b), lockstep.validate(a, b)
    assert "evidence" not in vars(verdict)
    (tmp_path / "b.h5").unlink()  # what was found needs no file
    assert len(verdict.evidence["evidence"]["over_time"]["time"]) == 51 and verdict.evidence["b"] == "b.h5"
    assert verdict.evidence is verdict.evidence
    for kept in (copy.copy(other), copy.deepcopy(other), pickle.loads(pickle.dumps(other))):
        assert kept.evidence == verdict.evidence and kept.sentence == verdict.sentence and bool(kept) == bool(verdict)


def test_many_save_points_take_no_kilobytes_each():
    program = """
import resource
import lockstep
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
points = 300_001
solution = lockstep.solve("lorenz", [1, 0, 0], (0, 1), points, precision="f64", threads=1)
before = peak()
assert lockstep.validate(solution, solution).same_bits
print((peak() - before) / points)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1000
