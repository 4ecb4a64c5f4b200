#!/usr/bin/env bash
# From a bare machine to the Lorenz demo's pictures and verdict: installs what is missing, builds the command line
# tool, advances a trained net from 10,000 initial states twice (one thread with the narrower instruction set, all
# threads with the widest), draws the result and compares the two files to the bit. A second run skips what is done.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ $# -eq 0 ] || fail "unknown argument: $1; usage: scripts/demo.sh"

problem=examples/lorenz/ensemble.toml
model=examples/lorenz/lorenz_tanh_3_100_3.safetensors
results=out/lorenz
tool=build/bin/lockstep

stage "1/5 packages"
scripts/install_dependencies.sh

stage "2/5 build, Release, into build/ (a few minutes on the first run)"
# A build folder that test.sh made keeps its tests; a fresh one goes without.
if [ ! -f build/CMakeCache.txt ]; then tests=(-DLOCKSTEP_TESTS=OFF); else tests=(); fi
mkdir -p build
configure build -DCMAKE_BUILD_TYPE=Release "${tests[@]}" >build/configure.log 2>&1 ||
  { tail -n 20 build/configure.log >&2; fail "configuring failed (build/configure.log has it all)"; }
ninja -C build -j"$jobs" lockstep

# Which two instruction sets to compare. The scalar one is some 40 times slower: it gets a smaller ensemble.
trajectories=()
case $(uname -m) in
  x86_64)
    if grep -qw avx512vl /proc/cpuinfo; then
      narrow=avx2 wide=avx512
    elif grep -qw avx2 /proc/cpuinfo; then
      narrow=scalar wide=avx2 trajectories=(--trajectories 500)
      say "this processor has no AVX-512: the scalar code is compared with AVX2, on 500 trajectories"
    else
      fail "this processor has no AVX2; Lockstep needs fused multiply-add (any x86-64 processor since 2015 has it)"
    fi ;;
  aarch64) narrow=scalar wide=neon trajectories=(--trajectories 500)
    say "the scalar code is compared with NEON, on 500 trajectories" ;;
  *) fail "unsupported processor: $(uname -m); supported: x86_64 with AVX2, aarch64" ;;
esac

mkdir -p "$results"
# up_to_date FILE SOURCE...: FILE is newer than every source.
up_to_date() {
  local file=$1 source
  shift
  for source in "$@"; do [ "$file" -nt "$source" ] || return 1; done
  say "$file is up to date"
}
# solve NAME [flags...]: into $results/NAME.h5
solve() {
  local file=$results/$1.h5
  shift
  if up_to_date "$file" "$tool" "$problem" "$model"; then return; fi
  say "$tool solve $problem --output $file $*"
  "$tool" solve "$problem" --output "$file" --overwrite "$@"
}
stage "3/5 solve: the trained net from 10,000 initial states (described in $problem)"
solve "${narrow}_one_thread" --cpu-target "$narrow" --threads 1 "${trajectories[@]}"
solve "${wide}_all_threads" --cpu-target "$wide" --threads "$jobs" "${trajectories[@]}"

stage "4/5 pictures"
drawn=$results/${wide}_all_threads.h5
if ! up_to_date "${drawn%.h5}_spread.png" "$tool" "$drawn"; then
  say "$tool plot $drawn"
  "$tool" plot "$drawn"
fi

stage "5/5 verdict: do the two runs agree to the bit?"
say "$tool validate $results/${narrow}_one_thread.h5 $drawn"
"$tool" validate "$results/${narrow}_one_thread.h5" "$drawn"

stage "done; results lie in $results/"
for file in "$results"/*; do say "$(du -h "$file" | cut -f1)  $file"; done
