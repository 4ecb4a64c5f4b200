"""scripts/gpu_check.sh over programs that play a card: what its report keeps over a kill, a part of its own, another
run, another commit and no card. Usage: gpu_check_test.py GPU_CHECK.sh EXAMPLES"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCRIPT, EXAMPLES = sys.argv[1:3]
TEST = '#!/bin/sh\nsleep ${TOY_SLEEP:-0}\necho "[       OK ] a (1 ms)"\n'
PROGRAMS = {
    "cuda_engine_test": TEST, "device_graph_plan_test": TEST, "device_plan_test": TEST,
    "gpu_peak": '#!/bin/sh\n[ "$TOY_CARD" = no ] && exit 3\n[ "$1" = --device ] || echo \'{"measure": "device", "name": "Toy"}\'\n',
    "gpu_mlp": '#!/bin/sh\n[ "$TOY_CARD" = no ] && exit 3\necho \'{"workload": "mlp", "size": 1, "seconds": 1}\'\n',
    "gpu_bench": '#!/bin/sh\n[ "$TOY_CARD" = no ] && exit 3\necho \'{"workload": "lorenz", "size": 1, "seconds": 1}\'\n',
    "gpu_verdict": '#!/bin/sh\ncat "$@" | wc -l\n',  # the answers: how many rows were judged
    "lockstep": '#!/bin/sh\n[ "$1" = validate ] && echo "same bits"\n[ "$1" = explain ] && echo "engine cpu"\nexit 0\n',
    "ocean_column_cuda": '#!/bin/sh\necho "on the card checksum 1"\n',
}


def run(folder, *arguments, **environment):
    done = subprocess.run([f"{folder}/gpu_check.sh", *arguments], capture_output=True, text=True,
                          env=dict(os.environ, LOCKSTEP_GPU_PYTHON="/nonexistent", **environment))
    return done.returncode, done.stdout + done.stderr


def report(folder, name="gpu_check.json"):
    with open(f"{folder}/{name}") as file:
        return json.load(file)


def parts(found):
    return {row["part"] for row in found["rows"]}


def main():
    folder = tempfile.mkdtemp()
    os.mkdir(f"{folder}/bin")
    for name, text in PROGRAMS.items():
        with open(f"{folder}/bin/{name}", "w") as file:
            file.write(text)
        os.chmod(f"{folder}/bin/{name}", 0o755)
    for name in ("lorenz", "ocean_column"):
        shutil.copytree(f"{EXAMPLES}/{name}", f"{folder}/examples/{name}")
    shutil.copy(SCRIPT, folder)
    shutil.copy(f"{os.path.dirname(SCRIPT)}/gpu_report.sh", folder)
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
    assert [row.get("measure", row.get("workload")) for row in found["measured"]] == ["device", "mlp", "lorenz"], found

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
    assert len(found["measured"]) == 3 and found["result"] == "running" and found["questions"] == 3, found

    # The next run does what is left, and says what it had no time for.
    code, said = run(folder, LOCKSTEP_GPU_SECONDS="0")
    assert code == 2 and "left for another run: tests" in said and "another run: speed" not in said, said
    code, said = run(folder)
    found = report(folder)
    assert set(found["done"].split()) == {"tests", "bits", "speed", "peers", "texts", "certificates", "sanitizer",
                                          "counters", "choices"}, found
    names = [row["name"] for row in found["rows"]]
    assert len(names) == len(set(names)) and len(found["measured"]) == 3, names

    # A part that the end of a run cuts short is done again by the next.
    with open(f"{folder}/bin/compute-sanitizer", "w") as file:
        file.write('#!/bin/sh\nsleep 3\nprintf "ERROR SUMMARY: 0\\r\\033[0m\\n"\n')
    os.chmod(f"{folder}/bin/compute-sanitizer", 0o755)
    code, said = run(folder, "--fresh", "--part", "tests", "--part", "sanitizer", LOCKSTEP_GPU_SECONDS="32",
                     PATH=f"{folder}/bin:{os.environ['PATH']}")
    cut = report(folder)
    assert code == 2 and cut["done"] == "tests" and cut["result"] == "unfinished", (code, cut)
    assert "no time left for this part" in {row["detail"] for row in cut["rows"]}, cut

    # So is one whose program was stopped then, which is no failure.
    os.rename(f"{folder}/bin/gpu_mlp", f"{folder}/gpu_mlp")
    with open(f"{folder}/bin/gpu_mlp", "w") as file:
        file.write("#!/bin/sh\nexec sleep 60\n")
    os.chmod(f"{folder}/bin/gpu_mlp", 0o755)
    code, said = run(folder, "--fresh", "--part", "tests", "--part", "speed", LOCKSTEP_GPU_SECONDS="32")
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
    shutil.rmtree(folder)


main()
