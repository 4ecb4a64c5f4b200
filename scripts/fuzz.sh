#!/usr/bin/env bash
# Feeds damaged input to everything that reads files: builds fuzz/ with Clang (libFuzzer, AddressSanitizer,
# UndefinedBehaviorSanitizer) into build-fuzz/ and runs each target, starting from fuzz/corpus/.
#   usage: scripts/fuzz.sh [SECONDS | --same]     per target, 60 by default. Where Clang cannot be had, skipped with a message.
# --same: the same inputs in every run (a fixed seed and number, none kept), so that the verdict depends on the sources alone:
# what scripts/test.sh --all does. SECONDS explores, from another seed each time, and keeps what it learns in build-fuzz/found/.
# A finding stops the run; its input stays in build-fuzz/findings/. Once it is fixed, keep it in fuzz/corpus/TARGET/, which
# scripts/test.sh replays under the sanitizers.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=${1:-60}
[[ $seconds =~ ^([1-9][0-9]*|--same)$ ]] ||
  fail "found \"$seconds\", expected a number of seconds or --same; usage: scripts/fuzz.sh [SECONDS | --same]"
# Numbers of inputs that take each target 8 to 15 s on one core.
declare -A same=([safetensors]=40000 [problem_file]=16000 [hdf5_model]=2000 [keras]=1000 [plan]=40000 [result_file]=2000
  [onnx]=14000)
(scripts/install_dependencies.sh clang) || say "the packages clang and libclang-rt-dev could not be installed"
if ! command -v clang++ >/dev/null || ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }' |
  clang++ -x c++ -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null; then
  say "skipped: no Clang with libFuzzer here (packages clang and libclang-rt-dev)"
  exit 0
fi

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S fuzz -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang "${launcher[@]}" \
  -DLOCKSTEP_FUZZ_BRIEFLY="$([ "$seconds" = --same ] && echo ON || echo OFF)" >/dev/null
ninja -C build-fuzz -j"$jobs"

mkdir -p build-fuzz/findings
# HDF5 handles an allocation that is refused. It keeps memory for later, which looks like a leak to libFuzzer.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0:max_allocation_size_mb=1000
run_target() {
  local found=build-fuzz/found/$1
  local extent=(-max_total_time="$seconds")
  if [ "$seconds" = --same ]; then
    found=build-fuzz/same/$1
    rm -rf "$found"
    extent=(-seed=1 -runs="${same[$1]}" -reload=0)
  fi
  mkdir -p "$found"
  build-fuzz/"$1"_fuzz "${extent[@]}" -max_len=8192 -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix=build-fuzz/findings/"$1"- "$found" fuzz/corpus/"$1" >build-fuzz/"$1".log 2>&1
}
targets=(hdf5_model result_file keras safetensors problem_file plan)
if [ -e build-fuzz/onnx_fuzz ]; then targets+=(onnx); fi
# As many at a time as there are processors: where one ends the next begins.
running=0
failed=0
for target in "${targets[@]}"; do
  if [ $running -eq "$jobs" ]; then
    wait -n || failed=$((failed + 1))
    running=$((running - 1))
  fi
  run_target "$target" &
  running=$((running + 1))
done
while [ $running -gt 0 ]; do
  wait -n || failed=$((failed + 1))
  running=$((running - 1))
done
for target in "${targets[@]}"; do
  if grep -q '^SUMMARY' build-fuzz/"$target".log; then
    say "$target: a finding"
    grep -E 'ERROR|SUMMARY|runtime error|artifact_prefix|#[0-9]+ .*lockstep' build-fuzz/"$target".log | head -n 20
  else
    say "$target: $(grep -oE 'number_of_executed_units: [0-9]+' build-fuzz/"$target".log | grep -oE '[0-9]+$') inputs, nothing found"
  fi
done
[ $failed -eq 0 ] || fail "$failed targets did not end well: see build-fuzz/*.log and build-fuzz/findings/"
