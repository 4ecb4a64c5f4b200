#!/usr/bin/env bash
# From a bare machine to the Lorenz demo's pictures and verdict: installs what is missing, builds the command line
# tool, makes trajectories of the Lorenz equations, trains nets on them, advances one from 10,000 initial states twice
# (one thread with the narrower instruction set, all threads with the widest), draws where it may be trusted and
# compares the two files to the bit. A second run skips what is done.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ $# -eq 0 ] || fail "unknown argument: $1; usage: scripts/demo.sh"

examples=examples/lorenz
results=out/lorenz
tool=build/bin/lockstep

stage "1/6 packages"
scripts/install_dependencies.sh

stage "2/6 build, Release, into build/ (a few minutes on the first run)"
# A build folder that test.sh made keeps its tests; a fresh one goes without.
if [ ! -f build/CMakeCache.txt ]; then tests=(-DLOCKSTEP_TESTS=OFF); else tests=(); fi
mkdir -p build
configure build -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_TOGETHER=ON "${tests[@]}" >build/configure.log 2>&1 ||
  { tail -n 20 build/configure.log >&2; fail "configuring failed (build/configure.log has it all)"; }
ninja -C build -j"$jobs" lockstep

# Which two instruction sets to compare: the narrowest and the widest that are fast here.
case $(uname -m) in
  x86_64)
    if grep -qw avx512vl /proc/cpuinfo; then
      narrow=avx2 wide=avx512
    elif grep -qw avx2 /proc/cpuinfo; then
      narrow=scalar wide=avx2
      say "this processor has no AVX-512: scalar code (the slow one, on one thread) is compared with AVX2"
    else
      fail "this processor has no AVX2; Lockstep needs fused multiply-add (any x86-64 processor since 2015 has it)"
    fi ;;
  aarch64) narrow=scalar wide=neon
    say "scalar code (the slow one, on one thread) is compared with NEON" ;;
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
# solve PROBLEM OUTPUT SOURCE [flags...]: unless the output is newer than tool, problem file and source.
solve() {
  local problem=$examples/$1.toml file=$results/$2.h5 source=$3
  shift 3
  if up_to_date "$file" "$tool" "$problem" "$source"; then return; fi
  say "$tool solve $problem --output $file $*"
  "$tool" solve "$problem" --output "$file" --overwrite "$@"
}
# train TRAINING OUTPUT DATA
train() {
  if up_to_date "$results/$2.h5" "$tool" "$examples/$1.toml" "$results/$3.h5"; then return; fi
  say "$tool train $examples/$1.toml"
  "$tool" train "$examples/$1.toml" --output "$results/$2" --overwrite
}
# plot FILE PICTURE [flags...]
plot() {
  if up_to_date "$results/$2" "$tool" "$results/$1.h5"; then return; fi
  local file=$results/$1.h5
  shift 2
  say "$tool plot $file $*"
  "$tool" plot "$file" "$@"
}

stage "3/6 data and training: 3-100-3 tanh nets learn du/dt from trajectories of the Lorenz equations"
solve data data "$tool"
say "1,000 iterations of Adam, for the clock:"
train adam adam data
say "the training that counts (a loss of 92 is what 30,000 iterations of Adam reach):"
train train net data
say "the same on twenty trajectories, for a net that knows its neighbourhood:"
solve neighbours neighbours "$tool"
train train_neighbours neighbours_net neighbours

stage "4/6 solve: the first net along its trajectory, the second from 10,000 initial states around it"
solve net_alone net_alone "$results/net.h5"
solve net_ensemble "${narrow}_one_thread" "$results/neighbours_net.h5" --cpu-target "$narrow" --threads 1
solve net_ensemble "${wide}_all_threads" "$results/neighbours_net.h5" --cpu-target "$wide" --threads "$jobs"
solve truth_ensemble truth_ensemble "$tool"

stage "5/6 pictures: net over truth, the ensemble, and how far from the truth it is"
wide_file=${wide}_all_threads
plot net_alone net_alone_overlay.png --against "$results/data.h5"
plot "$wide_file" "${wide_file}_spread.png"
plot "$wide_file" "${wide_file}_distance.png" --against "$results/truth_ensemble.h5"

stage "6/6 verdict: do the two runs agree to the bit?"
say "$tool validate $results/${narrow}_one_thread.h5 $results/$wide_file.h5"
"$tool" validate "$results/${narrow}_one_thread.h5" "$results/$wide_file.h5"

stage "done; results lie in $results/"
for file in "$results"/*; do say "$(du -h "$file" | cut -f1)  $file"; done
