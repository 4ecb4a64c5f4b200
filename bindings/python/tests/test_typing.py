"""What a type checker says of the package, and of the lines that its manuals show."""

import ast
import builtins
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lockstep

pytest.importorskip("mypy")
ROOT = Path(__file__).parents[3]
TYPES = {"net": "lockstep.Model", "drag": "lockstep.Model", "model": "lockstep.Model", "solution": "lockstep.Solution",
         "training": "lockstep.Training", "verdict": "lockstep.Verdict", "solver": "lockstep.Solver"}
HEAD = "from typing import Any\nimport lockstep\nimport numpy as np\n"


def mypy(tmp_path, *arguments):
    """What it says, a line each; nothing where all is well. Strict, by pyproject.toml."""
    run = subprocess.run([sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--no-error-summary",
                          "--cache-dir", tmp_path / "cache", *arguments], capture_output=True, text=True, cwd=tmp_path,
                         env={**os.environ, "MYPYPATH": str(Path(lockstep.__file__).parents[1])})
    assert run.stderr == ""
    return run.stdout.splitlines()


def as_function(number, block):
    """The lines as a function of the names that they take from elsewhere."""
    names = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(re.findall(r"(?:import|as|def|class) (\w+)", block))
    taken = sorted({node.id for node in names} - own - set(dir(builtins)) - {"lockstep", "np"})
    parameters = ", ".join(f"{name}: {TYPES.get(name, 'Any')}" for name in taken)
    return f"def block_{number}({parameters}) -> None:\n" + "".join(f"    {line}\n" for line in block.splitlines())


def test_the_package_is_typed(tmp_path):
    assert mypy(tmp_path, "-p", "lockstep") == []


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_lines_of_the_manuals_are(tmp_path, page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    script = tmp_path / "lines.py"
    script.write_text(HEAD + "\n".join(as_function(number, block) for number, block in enumerate(blocks)))
    # The readers' own functions there have no annotations.
    assert mypy(tmp_path, "--allow-untyped-defs", "--allow-untyped-calls", "--allow-subclassing-any", "--allow-untyped-decorators",
                script) == []


def test_results_have_types(tmp_path):
    script = tmp_path / "results.py"
    script.write_text(HEAD + """
x = np.zeros((4, 2), np.float32)
net = lockstep.train(t=[0.0], u=[[0.0]], hidden=[3]).model
reveal_type(net)
reveal_type(x)
reveal_type(net(x))
reveal_type(net.jvp(x, x))
reveal_type(net.weights)
reveal_type(net.inputs)
reveal_type(lockstep.__version__)
reveal_type(lockstep.solve(net, [1.0], (0, 1)).state)
net.weights.no_such_thing
""")
    said = mypy(tmp_path, script)
    types = [line.partition("Revealed type is ")[2].replace("builtins.", "").replace("lockstep._lockstep.", "") for line in said]
    assert types[0] == '"Model"'
    assert "ndarray" in types[1] and types[2] == types[3] == types[1] and "ndarray" in types[4]
    assert types[5] == '"list[dict[str, Any]]"' and types[6] == '"str"' and "ndarray" in types[7]
    assert "no_such_thing" in said[8] and len(said) == 9
