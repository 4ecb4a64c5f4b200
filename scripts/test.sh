#!/usr/bin/env bash
# Builds and runs the tests. As it stands, each test once: those of texts, files and memory under AddressSanitizer and
# UndefinedBehaviorSanitizer, by Clang, then the release build with all others, the header check and the install test.
# Exit code 0: all passed.
#   usage: scripts/test.sh [--fast | --all]
#     --fast  the release build alone, with every test
#     --all   every test under the sanitizers and in the release build (by one compiler), threads under ThreadSanitizer,
#             the same bits on aarch64, and the fuzz targets: for a change that is done
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

extent=once
case ${1:-} in
  "") ;;
  --fast | --all) extent=${1#--} ;;
  *) fail "unknown argument: $1; usage: scripts/test.sh [--fast | --all]" ;;
esac
# Warnings stop the project's own checks, not a reader who has a newer compiler. CI compiles the kernels for one GPU
# architecture, and as PTX: three take minutes longer and differ in machine code alone.
options=(-DLOCKSTEP_TESTS=ON)
if [ "${CI:-}" = true ]; then options+=(-DLOCKSTEP_WERROR=ON -DLOCKSTEP_CUDA_ARCHITECTURES=90); fi
started=$SECONDS

# The same groups of files on every machine, whether it has a compiler cache or not: names that clash in one show anywhere.
options+=(-DLOCKSTEP_TOGETHER=ON)

# Some tests wait longer than they compute: for ranks that start, for what a killed run left, for a program's end.
tests_at_once=$((jobs + 1))

stage "packages"
scripts/install_dependencies.sh test
if [ $extent != fast ]; then
  (scripts/install_dependencies.sh clang) || say "without Clang: the sanitizers are those of the C++ compiler"
fi
# What PyPI has, and what later stages need: fetched while the first build keeps the processors busy.
fetch() {
  # nanobind and pytest, in an environment of their own; without it the Python package is left out.
  scripts/python_environment.sh build/python-environment || [ $? -eq 77 ]
  if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
    scripts/cuda_tools.sh build/cuda_tools || say "without cuobjdump: the machine code of the kernels is not looked at"
  fi
  # The cross compiler: what fails here is told by the stage that wants it.
  if [ $extent = all ]; then scripts/install_dependencies.sh aarch64 || true; fi
  # The programs whose exports are read, 0.8 GB to download: for CI, or once made, for whoever wants them.
  if [ "${CI:-}" = true ] && [ $extent != fast ]; then
    # Ubuntu's Chromium is no Debian package: their tests then skip.
    scripts/install_dependencies.sh witness || say "tests that ask other programs are left out"
    scripts/exporter_environment.sh build/exporter-environment || [ $? -eq 77 ]
  fi
}
mkdir -p build
fetch >build/fetch.log 2>&1 &
fetching=$!
fetched() {
  stage "what came from the network meanwhile"
  wait $fetching || { cat build/fetch.log; fail "packages cannot be made ready; the lines above say why"; }
  cat build/fetch.log
}

# Whether Clang is whole here: its sanitizers, its OpenMP and its linker.
has_clang() {
  echo 'int main() {}' | clang++ -x c++ -fsanitize=address,undefined -fopenmp -fuse-ld=lld -o /dev/null - 2>/dev/null
}

if [ $extent != fast ]; then
  # Every instruction set is made from the same sources: AVX2 and the fallback show what the sanitizers look for. Programs
  # of a hundred megabytes start in half the time without addresses to move.
  folder=build-sanitize target=all flags="-Og -g1" linking="-no-pie" compilers=() tests=(-LE 'install|slow')
  if command -v ld.gold >/dev/null; then linking+=" -fuse-ld=gold"; fi  # links them sooner
  if [ $extent = once ]; then
    target=lockstep_memory_tests tests=(-L 'files|memory')
    options+=(-DLOCKSTEP_FILE_TESTS=OFF)
    if has_clang; then
      # In half the time of GCC; and the sources have to please a second compiler.
      folder=build-clang flags="-O0 -g1" linking="-no-pie -fuse-ld=lld"
      compilers=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
    fi
  fi
  stage "sanitizer build (address, undefined), into $folder/"
  configure $folder -DCMAKE_BUILD_TYPE=Sanitize "-DCMAKE_CXX_FLAGS=$flags" -DLOCKSTEP_TESTS=ON "${compilers[@]}" \
    "-DCMAKE_EXE_LINKER_FLAGS=$linking" -DLOCKSTEP_SANITIZE=address,undefined -DLOCKSTEP_AVX512=OFF -DLOCKSTEP_TOGETHER=ON >/dev/null
  ninja -C $folder -j"$jobs" $target
  say "built after $((SECONDS - started)) s"
  fetched
  stage "tests under the sanitizers"
  LSAN_OPTIONS=suppressions=$root/tests/leaks_of_libraries.txt \
    ctest --test-dir $folder -j"$tests_at_once" --output-on-failure --no-tests=error "${tests[@]}"
  say "$((SECONDS - started)) s so far"
else
  fetched
fi

stage "release build, into build/"
configure build -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_FILE_TESTS=ON "${options[@]}" >/dev/null
ninja -C build -j"$jobs"
say "built after $((SECONDS - started)) s"

stage "every public header compiles alone"
ninja -C build -j"$jobs" all_verify_interface_header_sets

stage "every test of the release build, the install test among them"
ctest --test-dir build -j"$tests_at_once" --output-on-failure --no-tests=error

if [ $extent = all ]; then
  # Beside each other: qemu and the threads' program run on one processor, and each build ends with a single link.
  scripts/thread_check.sh >build/thread_check.log 2>&1 &
  threads=$!
  scripts/fuzz.sh --same >build/fuzz.log 2>&1 &
  fuzzing=$!
  ended() {  # ended PROCESS LOG WHAT
    local code=0
    wait "$1" || code=$?
    cat "$2"
    [ $code -eq 0 ] || fail "$3 did not end well; the lines above say why"
  }
  stage "the same bits on aarch64, under qemu"
  require=()
  if [ "${CI:-}" = true ]; then require=(--require); fi
  scripts/check_aarch64.sh "${require[@]}"
  ended $threads build/thread_check.log "the check of threads"
  stage "damaged input, the same in every run"
  ended $fuzzing build/fuzz.log "a fuzz target"
fi
