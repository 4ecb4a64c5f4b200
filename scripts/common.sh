# Sourced by the other scripts: finds the repository, names each stage, explains a failure.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=$(nproc)
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}  # else ccache refuses precompiled headers
stage_name="starting"

# stage TEXT: announces what happens next; an error is reported under this name.
stage() {
  stage_name=$1
  printf '\n== %s\n' "$1"
}

say() { printf '   %s\n' "$*"; }

fail() {
  printf '\nerror: %s\n' "$*" >&2
  trap - ERR
  exit 1
}

report_failure() {
  local code=$1 line=$2
  printf '\nerror: "%s" failed (exit code %d, %s line %d); the lines above say why\n' \
    "$stage_name" "$code" "$(basename "$0")" "$line" >&2
  exit "$code"
}
trap 'report_failure $? $LINENO' ERR

# configure FOLDER [cmake arguments...]: Ninja, with ccache where it is installed.
configure() {
  local folder=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  # A folder configured by another generator (or moved from elsewhere) cannot be reused.
  if [ -f "$folder/CMakeCache.txt" ]; then
    if ! grep -q '^CMAKE_GENERATOR:INTERNAL=Ninja$' "$folder/CMakeCache.txt"; then
      fail "$folder was configured with another generator; remove it (rm -r $folder) and start again"
    fi
    if ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
      fail "$folder belongs to another copy of the sources; remove it (rm -r $folder) and start again"
    fi
  fi
  cmake -S . -B "$folder" -G Ninja "${launcher[@]}" "$@"
}
