"""scripts/gpu_check.sh over programs that play a card: what its report keeps over a kill, a part of its own, another
run, another commit, another card and no card; what it calls a failure. Usage: gpu_check_test.py GPU_CHECK.sh EXAMPLES"""
import fnmatch
import glob
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCRIPT, EXAMPLES = sys.argv[1:3]
TEST = '#!/bin/sh\nsleep ${TOY_SLEEP:-0}\necho "[       OK ] a (1 ms)"\n'
PROGRAMS = {
    "cuda_engine_test": TEST, "device_tests": TEST,
    "gpu_peak": '#!/bin/sh\n[ "$TOY_CARD" = no ] && exit 3\n[ "$1" = --device ] || echo \'{"measure": "device", "name": "Toy"}\'\n',
    "gpu_mlp": '#!/bin/sh\n[ "$TOY_CARD" = no ] && exit 3\n'
               'echo "{\\"workload\\": \\"mlp\\", \\"failed\\": ${TOY_WRONG:-0}}"\nexit ${TOY_WRONG:-0}\n',
    "gpu_bench": '#!/bin/sh\n[ "$TOY_CARD" = no ] && exit 3\necho "{\\"workload\\": \\"$2\\"}"\n',
    "gpu_verdict": '#!/bin/sh\ncat "$@" | wc -l\n',  # the answers: how many rows were judged
    "lockstep": '#!/bin/sh\n[ "$1" = validate ] && echo "comparing 32 %" && echo "same bits"\n[ "$1" = explain ] && echo "engine cpu"\nexit 0\n',
    "ocean_column_cuda": '#!/bin/sh\necho "on the card checksum 1"\n',
}


# Each workload by itself, after the peaks and the net.
MEASURED = ["device", "mlp", "lorenz", "neural", "lorenz_rk4", "wide_net", "stiff", "file"]
# A Python that takes other libraries' times: one row, and never ends; one that ends has read what was kept.
PEERS = """#!/bin/sh
[ "$1" != -c ] || exit 0
while [ "$1" != --kept ]; do shift; done
echo "{\\"peer\\": \\"after $(wc -l <"$2")\\", \\"best\\": 1}"
[ "$TOY_PEERS" != hang ] || exec sleep 600
echo '{"workload": "summary", "note": "all rows were tried"}'
"""
# Tests of which one always fails, and one where the other ran before it in the same process.
SPREADING = """#!/bin/sh
case "$*" in
*list_tests*) printf 'Running main()\nA/0.  # TypeParam = float\n  ok\n  bad  # GetParam() = 1\nB.\n  after\n'; exit ;;
*filter=A/0.bad) ;;
*filter=B.after) echo "[       OK ] B.after (1 ms)"; exit ;;
*) echo "[       OK ] A/0.ok (1 ms)" ;;
esac
echo "[ RUN      ] A/0.bad"
kill -SEGV $$
"""
# The card's name; its clocks until it is ended.
NVIDIA_SMI = """#!/bin/sh
case "$*" in
*clocks*) echo 345 MHz; echo $$ >"$(dirname "$0")/pid"; exec sleep 600 ;;
*) echo "${TOY_NAME:-Toy}, 580" ;;
esac
"""


def run(folder, *arguments, **environment):
    done = subprocess.run([f"{folder}/gpu_check.sh", *arguments], capture_output=True, text=True,
                          env=dict(os.environ, **dict(dict(LOCKSTEP_GPU_PYTHON="/nonexistent"), **environment)))
    return done.returncode, done.stdout + done.stderr


def program(folder, name, text):
    with open(f"{folder}/bin/{name}", "w") as file:
        file.write(text)
    os.chmod(f"{folder}/bin/{name}", 0o755)


def row(found, name):
    rows = [row for row in found["rows"] if row["name"] == name]
    assert len(rows) == 1, (name, found)
    return rows[0]


def report(folder, name="gpu_check.json"):
    with open(f"{folder}/{name}") as file:
        return json.load(file)


def parts(found):
    return {row["part"] for row in found["rows"]}


def every_suite_is_named():
    """A suite that nobody names would run on no card."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(SCRIPT)))
    with open(f"{root}/scripts/gpu_parts.sh") as file:
        script = file.read()
    filters = re.findall(r"^  run_tests \"[^\"]*\" (\w+) \d+ '([^']*)'", script, re.M)
    assert len(filters) == script.count("\n  run_tests "), filters
    # Minutes of compiling that need no card.
    for name in ("Compiling.makes_code_once", "TextInModes.texts_are_compiled_by_nvrtc",
                 "SumsWithText.are_compiled_by_nvrtc", "SumsWithText.with_events_that_are_graphs_are_compiled_by_nvrtc",
                 "ResetsOnDevice.texts_are_compiled_by_nvrtc"):
        assert not any(takes(f, name) for _, f in filters), name
    for name in ("CudaSource.has_the_bits_of_the_same_text_on_the_cpu", "TextInModes.cuda_gemm_names_what_it_compiled",
                 "OnACard.code_that_was_compiled_by_nvrtc_has_the_bits_of_the_cpu",
                 "SumsWithText.stop_at_events_that_come_as_text", "ResetsOnDevice.balls_bounce_as_on_the_cpu"):
        assert any(takes(f, name) for _, f in filters), name
    # These run on the host alone.
    here = {"ChoiceOfEngine", "QueuedGemm", "QueuedByName", "GemmEngine", "GemmErrors", "GemmModes", "Compaction",
            "Compiling", "ResetObstacles"}
    for path in glob.glob(f"{root}/lockstep/ode/cuda/*_test.cpp") + glob.glob(f"{root}/lockstep/ode/cuda/gemm/*_test.cpp"):
        if os.path.basename(path).startswith(("advance", "bank_conflicts", "plugin", "gemm_plugin", "solve_race")):
            continue  # programs of their own
        with open(path) as file:
            for suite in re.findall(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),", file.read(), re.M):
                assert suite in here or f"{suite}." in script or f"{suite}/" in script, (path, suite)


def takes(gtest_filter, name):
    wanted, _, unwanted = gtest_filter.partition("-")
    def among(patterns):
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split(":"))
    return among(wanted) and not among(unwanted)


def other_libraries_leave_out_what_was_kept():
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(SCRIPT))), "benchmarks", "gpu_peers.py")
    with tempfile.NamedTemporaryFile("w") as kept:
        def listed():
            return subprocess.run([sys.executable, script, "--list", "--kept", kept.name], capture_output=True,
                                  text=True, check=True).stdout.splitlines()
        rows = listed()
        # What a question of gpu_questions.cpp cannot do without comes first.
        assert {row.split(" ")[0] + "/" + row.split(" ")[1].split("-")[0] for row in rows[:6]} >= {
            "neural/diffrax", "lorenz/triton", "lorenz/jax"}, rows[:6]
        workload, peer, size, case = rows[3].split(" ", 3)
        line = dict(json.loads(case), workload=workload, peer=peer, size=int(size), error="no result")
        kept.write(json.dumps(line) + "\n" + json.dumps(dict(workload="summary")) + "\n")
        kept.flush()
        assert listed() == rows[:3] + rows[4:] and len(set(rows)) == len(rows), rows


def a_loan_does_all_of_it_at_once(folder):
    """After what is timed the other parts side by side, and one table of all."""
    program(folder, "cuda_engine_test", "#!/bin/sh\nexit 5\n")
    program(folder, "device_tests", TEST)
    program(folder, "gpu_verdict", "#!/bin/sh\necho []\n")
    done = subprocess.run([f"{folder}/gpu_loan.sh", "60", f"{folder}/loan", "speed", "counters", "tests", "memory"],
                          capture_output=True, text=True, env=dict(os.environ, LOCKSTEP_GPU_PYTHON="/nonexistent"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert parts(report(folder, "loan/speed.json")) == {"speed", "counters"}, done.stdout
    assert report(folder, "loan/tests.json")["result"] == "failed" and report(folder, "loan/memory.json")["result"] == "passed"
    script = f"{os.path.dirname(os.path.abspath(SCRIPT))}/gpu_results.py"
    reports = [f"{folder}/loan/{name}.json" for name in ("tests", "speed", "memory")]
    found = json.loads(subprocess.run([sys.executable, script, *reports], check=True, capture_output=True).stdout)
    assert parts(found) == {"speed", "counters", "tests", "memory"}, found
    assert [row.get("measure", row.get("workload")) for row in found["measured"]] == MEASURED, found
    with open(reports[0]) as file:
        other = file.read().replace("\"commit\": \"", "\"commit\": \"x")
    with open(reports[0], "w") as file:
        file.write(other)
    done = subprocess.run([sys.executable, script, *reports], capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout and "more than one card or commit" in done.stderr, done


def main():
    every_suite_is_named()
    if importlib.util.find_spec("numpy"):
        other_libraries_leave_out_what_was_kept()
    folder = tempfile.mkdtemp()
    os.mkdir(f"{folder}/bin")
    for name, text in PROGRAMS.items():
        program(folder, name, text)
    for name in ("lorenz", "ocean_column"):
        shutil.copytree(f"{EXAMPLES}/{name}", f"{folder}/examples/{name}")
    shutil.copy(SCRIPT, folder)
    for name in ("gpu_loan.sh", "gpu_parts.sh", "gpu_report.sh"):
        shutil.copy(f"{os.path.dirname(SCRIPT)}/{name}", folder)
    with open(f"{folder}/commit", "w") as file:
        file.write("abc\n")

    # What was said without a card is not said of one.
    assert run(folder, "--part", "speed", TOY_CARD="no")[0] == 3 and "device" in parts(report(folder))
    code, said = run(folder, "--part", "speed")
    assert code == 0, said
    assert "device" not in parts(report(folder)), report(folder)
    code, said = run(folder, "--part", "speed", "--fresh")
    assert code == 0, said
    found = report(folder)
    assert found["done"] == "speed" and parts(found) == {"speed"} and found["result"] == "passed", found
    assert [row.get("measure", row.get("workload")) for row in found["measured"]] == MEASURED, found

    # A kill in the middle of another part keeps its first row and the other part's.
    process = subprocess.Popen([f"{folder}/gpu_check.sh", "--part", "tests"], stdout=subprocess.DEVNULL,
                               start_new_session=True, env=dict(os.environ, TOY_SLEEP="2"))
    until = time.monotonic() + 60
    while "tests" not in parts(report(folder)) and time.monotonic() < until:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    found = report(folder)
    assert found["done"] == "speed" and parts(found) == {"speed", "tests"}, found
    assert len(found["measured"]) == len(MEASURED) and found["result"] == "running" and found["questions"] == len(MEASURED), found

    # A kill in the middle of a program keeps the rows that it has printed.
    shutil.copy(f"{folder}/gpu_check.json", f"{folder}/before.json")
    os.rename(f"{folder}/bin/gpu_mlp", f"{folder}/gpu_mlp")
    program(folder, "gpu_mlp", '#!/bin/sh\necho \'{"workload": "first"}\'\nexec sleep 60\n')
    process = subprocess.Popen([f"{folder}/gpu_check.sh", "--part", "speed"], stdout=subprocess.DEVNULL,
                               start_new_session=True)
    until = time.monotonic() + 60
    while "first" not in {row.get("workload") for row in report(folder)["measured"]} and time.monotonic() < until:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert report(folder)["measured"][-1] == {"workload": "first"}, report(folder)
    os.rename(f"{folder}/gpu_mlp", f"{folder}/bin/gpu_mlp")
    os.rename(f"{folder}/before.json", f"{folder}/gpu_check.json")

    # The next run does what is left, and says what it had no time for.
    code, said = run(folder, LOCKSTEP_GPU_SECONDS="0")
    assert code == 2 and "left for another run: first" in said and "left for another run: tests" in said and "another run: speed" not in said, said
    code, said = run(folder)
    found = report(folder)
    assert set(found["done"].split()) == {"first", "tests", "bits", "speed", "certificates", "texts", "memory", "peers",
                                          "races", "counters", "choices", "more_peers"}, found
    assert row(found, "same bits: lorenz net, f32")["status"] == "passed", found
    names = [row["name"] for row in found["rows"]]
    assert len(names) == len(set(names)) and len(found["measured"]) == len(MEASURED), names

    # A part that the end of a run cuts short is done again by the next.
    path = f"{folder}/bin:{os.environ['PATH']}"
    program(folder, "compute-sanitizer", '#!/bin/sh\nsleep 12\nprintf "ERROR SUMMARY: 0\\r\\033[0m\\n"\n')
    code, said = run(folder, "--fresh", "--part", "tests", "--part", "memory", LOCKSTEP_GPU_SECONDS="40", PATH=path)
    cut = report(folder)
    assert code == 2 and cut["done"] == "tests" and cut["result"] == "unfinished", (code, cut)
    assert "no time left for this part" in {row["detail"] for row in cut["rows"]}, cut

    # So is one whose program was stopped then, which is no failure.
    os.rename(f"{folder}/bin/gpu_mlp", f"{folder}/gpu_mlp")
    program(folder, "gpu_mlp", "#!/bin/sh\nexec sleep 60\n")
    code, said = run(folder, "--fresh", "--part", "tests", "--part", "speed", LOCKSTEP_GPU_SECONDS="40")
    cut = report(folder)
    assert code == 2 and cut["done"] == "tests" and cut["result"] == "unfinished", (code, cut)
    assert "failed" not in {row["status"] for row in cut["rows"]}, cut
    os.rename(f"{folder}/gpu_mlp", f"{folder}/bin/gpu_mlp")
    shutil.copy(f"{folder}/gpu_check.old.json", f"{folder}/gpu_check.json")
    code, said = run(folder)  # all of it, as before
    found = report(folder)

    # Another commit begins anew and keeps the old report aside; without a card nothing of a card's is overwritten.
    code, said = run(folder, "--part", "speed", TOY_CARD="no")
    assert code == 3 and report(folder) == found, said
    assert report(folder, "gpu_check.no_device.json")["result"] == "no_device"
    with open(f"{folder}/commit", "w") as file:
        file.write("abd\n")
    assert run(folder, "--part", "speed")[0] == 0
    assert report(folder)["done"] == "speed" and report(folder, "gpu_check.old.json") == found
    assert run(folder, "--part", "nothing")[0] == 1

    # Wrong results are a failure, and are told.
    code, said = run(folder, "--part", "speed", TOY_WRONG="1")
    found = report(folder)
    assert code == 1 and found["result"] == "failed", said
    wrong = row(found, "timings of a net")
    assert wrong["status"] == "failed" and '"failed": 1' in wrong["detail"], wrong
    assert run(folder, "--part", "speed")[0] == 0

    # What the sanitizer finds is one; that it cannot run a program is none. The long log keeps its two ends.
    for ends, status in ((9, "failed"), (1, "skipped")):
        program(folder, "compute-sanitizer",
                f"#!/bin/sh\necho '========= the first'\nhead -c 3000000 /dev/zero | tr '\\0' x\necho\n"
                f"echo '========= Error: the last'\nexit {ends}\n")
        if os.path.exists(f"{folder}/gpu_check.log"):
            os.remove(f"{folder}/gpu_check.log")
        code, said = run(folder, "--part", "memory", PATH=path)
        assert code == (1 if ends == 9 else 0), said
        assert row(report(folder), "compute-sanitizer: memcheck of nets")["status"] == status, said
        with open(f"{folder}/gpu_check.log") as file:
            log = file.read()
        assert "the first" in log and "the last" in log and len(log) < 4e6, len(log)

    # Programs that crash, and tests that fail, say where.
    program(folder, "device_tests", '#!/bin/sh\necho "[ RUN      ] A.b"\nkill -SEGV $$\n')
    program(folder, "cuda_engine_test", '#!/bin/sh\necho "a.cpp:1: Failure"\necho "bits differ"\n'
                                        'echo "[  FAILED  ] A.c (1 ms)"\nexit 1\n')
    assert run(folder, "--part", "tests")[0] == 1
    assert "ended with 139: [ RUN      ] A.b" in row(report(folder), "tests of nets on the device")["detail"]
    assert "bits differ" in row(report(folder), "kernel tests")["detail"]
    # Those that pass alone are told from those that do not, which the sanitizer sees.
    program(folder, "device_tests", SPREADING)
    program(folder, "compute-sanitizer", '#!/bin/sh\necho "========= Error: out of bounds"\nexit 9\n')
    run(folder, "--part", "tests", PATH=path)
    rows = report(folder)["rows"]
    assert [row["detail"] for row in rows if row["name"] == "alone: A/0.bad"] == ["ended with 139: [ RUN      ] A/0.bad "] * 2
    assert {row["detail"] for row in rows if row["name"].endswith("the device, one by one")} == {"1 of 2 pass alone"}, rows
    seen = [row["detail"] for row in rows if row["name"] == "compute-sanitizer: memcheck of A/0.bad"]
    assert "out of bounds" in seen[0], rows
    for name in ("device_tests", "cuda_engine_test"):
        program(folder, name, TEST)

    # Who asks for a device may fail itself: that is a failure, and not taken for a device.
    os.rename(f"{folder}/bin/gpu_peak", f"{folder}/gpu_peak")
    program(folder, "gpu_peak", "#!/bin/sh\necho no such library\nexit 127\n")
    assert run(folder, "--part", "speed")[0] == 1
    asked = row(report(folder, "gpu_check.no_device.json"), "device")
    assert asked["status"] == "failed" and asked["detail"].endswith("ended with 127: no such library"), asked
    os.rename(f"{folder}/gpu_peak", f"{folder}/bin/gpu_peak")

    # Another card begins anew. The clocks are watched, and no longer than that.
    program(folder, "nvidia-smi", NVIDIA_SMI)
    assert run(folder, "--part", "tests", PATH=path)[0] == 0
    assert report(folder)["device"] == "Toy, 580" and report(folder)["done"] == "tests"
    with open(f"{folder}/gpu_check.clocks.csv") as file:
        assert file.read() == "345 MHz\n"
    with open(f"{folder}/bin/pid") as file:
        watcher = f"/proc/{file.read().strip()}"
    until = time.monotonic() + 20
    while os.path.exists(watcher):
        assert time.monotonic() < until, "somebody still watches the clocks"
        time.sleep(0.1)
    assert run(folder, "--part", "speed", PATH=path, TOY_NAME="Toy 2")[0] == 0
    assert report(folder)["done"] == "speed" and report(folder, "gpu_check.old.json")["done"] == "tests"
    os.remove(f"{folder}/bin/nvidia-smi")

    # Other libraries that never end leave their rows to the next run, which asks for the rest.
    program(folder, "peers", PEERS)
    code, said = run(folder, "--fresh", "--part", "tests", "--part", "peers", LOCKSTEP_GPU_SECONDS="45",
                     LOCKSTEP_GPU_PYTHON=f"{folder}/bin/peers", TOY_PEERS="hang")
    found = report(folder)
    assert code == 2 and found["done"] == "tests", (said, found)
    assert [line["peer"] for line in found["measured"]] == ["after 0"], found
    assert run(folder, "--part", "peers", LOCKSTEP_GPU_PYTHON=f"{folder}/bin/peers")[0] == 0
    found = report(folder)
    assert found["done"] == "tests peers", found
    assert [line.get("peer") for line in found["measured"]] == ["after 0", "after 1", None], found
    # What their own part had no time for goes on at the end, with the rows that there are.
    assert run(folder, "--part", "more_peers", LOCKSTEP_GPU_PYTHON=f"{folder}/bin/peers")[0] == 0
    found = report(folder)
    assert found["done"] == "tests peers more_peers", found
    assert [line.get("peer") for line in found["measured"]] == ["after 0", "after 1", "after 2", None], found
    assert run(folder, "--part", "first")[0] == 0
    assert report(folder)["done"] == "tests peers more_peers first", report(folder)
    # Done again, it begins with no rows, and the rest of them is still to come.
    assert run(folder, "--part", "peers", LOCKSTEP_GPU_PYTHON=f"{folder}/bin/peers")[0] == 0
    found = report(folder)
    assert found["done"] == "tests first peers", found
    assert not any(row["part"] == "more_peers" for row in found["rows"]), found
    a_loan_does_all_of_it_at_once(folder)
    shutil.rmtree(folder)


main()
