#!/usr/bin/env bash
# All of gpu_check.sh in one command of SECONDS, for a machine with a GPU that is lent for minutes: first what is timed,
# alone; then where warps wait, instruction by instruction; then every other part side by side, each with a report of its
# own. Run it in a bundle (scripts/gpu_bundle.sh), and scripts/gpu_results.py on what it leaves in FOLDER.
# Usage: gpu_loan.sh SECONDS FOLDER [PART...]: parts other than these, say those that an earlier loan did not reach.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 2 ] && [ "$1" -gt 0 ] 2>/dev/null || { echo "error: usage: gpu_loan.sh SECONDS FOLDER [PART...]"; exit 1; }
seconds=$1 folder=$2
shift 2
[ $# -gt 0 ] || set -- first speed peers tests bits certificates texts memory races
mkdir -p "$folder" || exit 1
folder=$(cd "$folder" && pwd)
say() { printf '%3d s  %s\n' "$SECONDS" "$*"; }
left() { echo $((seconds - SECONDS > 1 ? seconds - SECONDS : 1)); }
# part NAME...: of gpu_check.sh, into the report of the first
part() {
  local name=$1 asked=() code
  for each in "$@"; do asked+=(--part "$each"); done
  LOCKSTEP_GPU_SECONDS=$(left) timeout -k 5 "$(($(left) + 5))" "$here/gpu_check.sh" "${asked[@]}" "$folder/$name.json" \
    >"$folder/$name.txt" 2>&1
  code=$?
  say "$*: $code"
  [ $code = 0 ] || [ $code = 3 ] || failed=1
}
# stalls NAME SKIPPED COMMAND...: a launch of ours, with samples of what its warps wait for, as two tables
stalls() {
  local name=$1 skipped=$2 section sections=()
  shift 2
  for section in SpeedOfLight SchedulerStats WarpStateStats MemoryWorkloadAnalysis Occupancy SourceCounters; do
    sections+=(--section "$section")
  done
  # The card's clocks are left as they are.
  timeout 25 "$ncu" --clock-control none --force-overwrite --export "$folder/$name" --kill yes --launch-skip "$skipped" \
    --launch-count 1 --kernel-name 'regex:advance_kernel|evaluate' "${sections[@]}" "$@" >/dev/null 2>&1
  timeout 20 "$ncu" --import "$folder/$name.ncu-rep" --page details >"$folder/$name.details.txt" 2>&1
  timeout 20 "$ncu" --import "$folder/$name.ncu-rep" --page source --csv 2>&1 | gzip >"$folder/$name.source.csv.gz"
  rm -f "$folder/$name.ncu-rep"
  say "stalls of $name"
}

failed=0 timed=() rest=()
for each in "$@"; do
  case $each in first | speed | peers | more_peers | counters | choices) timed+=("$each") ;; *) rest+=("$each") ;; esac
done
[ ${#timed[@]} = 0 ] || part "${timed[@]}"
ncu=$(PATH=$PATH:/usr/local/cuda/bin command -v ncu || ls /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | tail -n 1)
if [ -n "$ncu" ] && [[ " $* " == *" speed "* ]]; then
  (
    export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    bench=("$here/bin/gpu_bench" --budget 0 --scale 0.25 --model "$here/examples/lorenz/lorenz_tanh_3_100_3.safetensors")
    stalls mlp_f32 0 "$here/bin/gpu_mlp" --once
    stalls mlp_bf16 4 "$here/bin/gpu_mlp" --once
    stalls neural 0 "${bench[@]}" --only neural
    stalls lorenz 2 "${bench[@]}" --only lorenz
    stalls lorenz_rk4 0 "${bench[@]}" --only lorenz_rk4
  )
fi
running=()
for each in ${rest[@]+"${rest[@]}"}; do
  (part "$each"; exit $failed) &
  running+=($!)
done
for each in ${running[@]+"${running[@]}"}; do wait "$each" || failed=1; done
exit $failed
