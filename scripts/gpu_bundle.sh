#!/usr/bin/env bash
# Makes one folder that runs the CUDA engine and its checks on a machine with nothing but an NVIDIA driver: programs, the
# libraries they need, examples, scripts; and an archive of it beside it. The C library is that machine's: no older than
# the one here or, with a libstdc++ as new as the one here, no older than the programs ask for (glibc 2.34 from Debian
# 12). Copy the folder or the archive alone there, then run ./gpu_check.sh in it.
# Usage: scripts/gpu_bundle.sh [FOLDER], by default out/gpu_bundle. LOCKSTEP_CUDA_ARCHITECTURES=90-real is for the one
# card (compute capability 9.0), takes a third of nvcc's time and less room; without it there is code for all.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ $# -le 1 ] || fail "usage: scripts/gpu_bundle.sh [FOLDER]"
bundle=${1:-out/gpu_bundle}
build=build-gpu  # its own, whatever build/ was configured with
limit=45         # MiB of the archive: it alone need travel

stage "1/3 build into $build/"
architectures=(-U LOCKSTEP_CUDA_ARCHITECTURES)  # what an earlier run named
[ -z "${LOCKSTEP_CUDA_ARCHITECTURES:-}" ] || architectures=("-DLOCKSTEP_CUDA_ARCHITECTURES=$LOCKSTEP_CUDA_ARCHITECTURES")
mkdir -p "$build"
configure "$build" -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_CUDA=ON -DLOCKSTEP_TESTS=ON -DLOCKSTEP_TOGETHER=ON \
  -DLOCKSTEP_PYTHON=OFF -DCMAKE_EXE_LINKER_FLAGS=-Wl,--gc-sections "${architectures[@]}" >/dev/null
programs=(lockstep cuda_engine_test device_tests gpu_peak gpu_mlp gpu_bench gpu_verdict ocean_column_cuda)
ninja -C "$build" -j"$jobs" lockstep_cuda "${programs[@]}"

stage "2/3 gather into $bundle/"
case $bundle in /|.|"") fail "give a folder of its own" ;; esac
if [ -e "$bundle" ] && [ ! -f "$bundle/gpu_check.sh" ]; then
  fail "$bundle exists and is no bundle: give another folder, or remove it"
fi
rm -rf "$bundle"
mkdir -p "$bundle"/{bin,lib,examples,benchmarks}
bundle=$(realpath "$bundle")
cp "${programs[@]/#/$build/bin/}" "$bundle/bin/"
cp "$build/lib/liblockstep_cuda.so" "$bundle/lib/"
strip "$bundle"/bin/* "$bundle"/lib/*  # before the texts come
mkdir "$bundle/lib/c++"
# The C library belongs to the machine it runs on; everything else comes along.
ldd "$bundle"/bin/* "$bundle"/lib/*.so | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' | while read -r library; do
  # gpu_check.sh takes these where the machine's own are missing or too old.
  case $library in */libstdc++.so* | */libgcc_s.so*) place=$bundle/lib/c++ ;; *) place=$bundle/lib ;; esac
  cp -L "$library" "$place/"
done
cp -r examples/lorenz examples/ocean_column "$bundle/examples/"
cp lockstep/ode/cuda/testing/*.inc "$bundle/bin/"
cp benchmarks/gpu_peers*.py "$bundle/benchmarks/"
cp scripts/gpu_{check,loan,parts,report}.sh "$bundle/"
git describe --always --abbrev=40 --exclude="*" --dirty >"$bundle/commit" 2>/dev/null || echo unknown >"$bundle/commit"

stage "3/3 look at it"
# Each program finds its libraries in the bundle or, for the C library's own, in the system's place: nowhere else.
for program in "${programs[@]/#/$bundle/bin/}" "$bundle"/lib/*.so* "$bundle"/lib/c++/*.so*; do
  strangers=$(LD_LIBRARY_PATH="$bundle/lib:$bundle/lib/c++" ldd "$program" | grep '=>' | grep -vF "$bundle/lib/" |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|ld-linux[^/]*)\.so' || true)
  [ -z "$strangers" ] || fail "$program needs what the bundle lacks: $strangers"
done
LD_LIBRARY_PATH="$bundle/lib:$bundle/lib/c++" "$bundle/bin/lockstep" --version
tar -czf "$bundle.tar.gz" -C "$(dirname "$bundle")" "$(basename "$bundle")"
size=$(du -sm "$bundle.tar.gz" | cut -f1)
say "$bundle.tar.gz: $size MiB of at most $limit; unpacked $(du -sm "$bundle" | cut -f1)"
[ "$size" -le "$limit" ] ||
  fail "the archive is too large to travel: build for the one card, with LOCKSTEP_CUDA_ARCHITECTURES=90-real"
say "next: unpack it on the machine with the GPU and run ./gpu_check.sh in its folder"
