"""The problem file of README.md, as it stands there, and the commands beside it that read what it makes.
Usage: readme_problem_test.py LOCKSTEP README.md NET.onnx"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

tool, page, net = sys.argv[1], pathlib.Path(sys.argv[2]).read_text(), sys.argv[3]
problem = re.search(r"```toml\n(.*?)```", page, re.DOTALL).group(1)
commands = re.findall(r"^    lockstep ((?:solve problem|explain problem|plot result|import net|info net)[^#\n]*?) *(?:#.*)?$",
                      page, re.MULTILINE)
assert len(commands) == 6, commands
with tempfile.TemporaryDirectory() as folder:
    shutil.copy(net, f"{folder}/net.onnx")
    pathlib.Path(folder, "problem.toml").write_text(problem)
    for command in commands:
        arguments = command.split() + (["--trajectories", "99"] if command.startswith("solve") else [])
        if "--shard" in arguments:
            arguments += ["--output", "part-3.h5"]
        done = subprocess.run([tool, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    made = {path.name for path in pathlib.Path(folder).iterdir()}
    assert {"result.h5", "part-3.h5", "net.h5", "result_spread.png"} <= made, made
