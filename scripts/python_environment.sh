#!/usr/bin/env bash
# Makes a virtual environment with what building and testing the Python package needs beside Debian's packages. Touches
# nothing outside the folder, and no network when it is complete. Exit code 77: PyPI cannot be reached.
#   usage: scripts/python_environment.sh [FOLDER]      FOLDER: build/python-environment
folder=${1:-build/python-environment}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Debian's NumPy, h5py, xarray and matplotlib serve; the system's Python is the one that has them.
packages=("nanobind>=2.4" "scikit-build-core>=0.10" pytest tqdm mypy)
python=/usr/bin/python3
[ -x "$python" ] || python=python3
if [ -f "$folder/complete" ]; then
  say "$folder is complete"
  exit 0
fi
rm -rf "$folder"
"$python" -m venv --system-site-packages "$folder" ||
  fail "no virtual environment can be made with $python; install python3-venv (scripts/install_dependencies.sh test)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! timeout 300 "$folder/bin/python" -m pip --disable-pip-version-check install -q --retries 1 --timeout 20 \
  "${packages[@]}" >"$log" 2>&1; then
  tail -n 5 "$log"
  rm -rf "$folder"
  say "${packages[*]} cannot be installed from PyPI: the Python package is left out"
  exit 77
fi
touch "$folder/complete"
say "made $folder"
