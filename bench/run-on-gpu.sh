#!/bin/sh
# Measures a build on a machine with a GPU: run-on-gpu.sh BUILD OUT SECONDS
#
# BUILD is a Meson build folder with -Dbench=true (its binaries need libc alone, so it may have been carried here);
# OUT receives CSV files and a Markdown page; the whole ends within SECONDS, the most valuable measurements first.
# OPENBLAS names OpenBLAS where the loader does not know it, and CUDA_LIBS a folder with libcudart, libcublas and
# libnvblas. Status 1 when a result was wrong or a check failed, whatever the times were.
set -u

if [ $# -ne 3 ]; then
  echo "usage: $0 BUILD OUT SECONDS" >&2
  exit 2
fi
build=$1
out=$2
deadline=$(($(date +%s) + $3))
day=$(date +%Y-%m-%d)
mkdir -p "$out" || exit 2
page=$out/$day-gpu.md
failed=0

left() { # seconds until the deadline, less what the rest still needs ($1)
  echo $((deadline - $(date +%s) - ${1:-0}))
}

first_of() { # the first path that exists
  for path in "$@"; do
    if [ -e "$path" ]; then
      echo "$path"
      return
    fi
  done
}

library=$(first_of "$build"/libgemmhoist.so "$build"/src/abi/libgemmhoist.so "$build"/src/abi/libgemmhoist.so.0)
kernels=$(first_of "$build"/tests/gpu_kernels/check_kernels "$build"/tests/check_kernels)
cuda_libs=${CUDA_LIBS:-}
if [ -z "$cuda_libs" ]; then # a toolkit's folder, else that of the wheels that PyTorch brings
  found=$(find /usr/local/cuda/lib64/ /usr/lib/x86_64-linux-gnu /opt /usr/local/lib/python3* \
    -name 'libcublas.so.1[23]' 2>/dev/null | head -n 1)
  cuda_libs=${found:+$(dirname "$found")}
fi
for folder in "$cuda_libs" "$(dirname "${OPENBLAS:-}")"; do
  case $folder in
  '' | .) ;;
  *) LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ;;
  esac
done
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
openblas=${OPENBLAS:-libopenblas.so.0}

machine() {
  echo "| what | is |"
  echo "| --- | --- |"
  echo "| date | $(date -u '+%Y-%m-%d %H:%M UTC') |"
  echo "| commit | $(git rev-parse --short HEAD 2>/dev/null || echo unknown) |"
  nvidia-smi -L 2>/dev/null | sed 's/ (UUID.*//; s/.*/| GPU | & |/'
  echo "| driver | $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) |"
  echo "| PCIe | $(nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv,noheader 2>/dev/null | head -n 1) |"
  echo "| toolkit | $( (nvcc --version || /usr/local/cuda/bin/nvcc --version) 2>/dev/null | sed -n 's/.*release //p') |"
  echo "| CPU | $(lscpu 2>/dev/null | sed -n 's/^Model name: *//p' | head -n 1), $(nproc) processors |"
  echo "| memory | $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo) |"
  echo "| huge pages | $(cat /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null) |"
  echo "| kernel | $(uname -sr) |"
  echo "| OpenBLAS | $(openblas_version) |"
}

openblas_version() {
  python3 - "$openblas" <<'PY' 2>/dev/null || echo "$openblas"
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.openblas_get_config.restype = ctypes.c_char_p
print(library.openblas_get_config().decode(), "at", sys.argv[1])
PY
}

# step NAME SECONDS COMMAND...: runs it within SECONDS, shows and keeps its output; a status other than 0 is kept.
step() {
  name=$1
  span=$2
  shift 2
  if [ "$span" -lt 3 ]; then
    echo "== $name: left out, the time is up" | tee -a "$out/$day-$name.txt"
    return
  fi
  echo "== $name: $*"
  timeout -k 5 "$span" "$@" >"$out/$day-$name.txt" 2>&1
  status=$?
  cat "$out/$day-$name.txt"
  if [ $status -ne 0 ]; then
    echo "== $name: status $status" | tee -a "$out/$day-$name.txt"
    failed=1
  fi
}

e2e() { # e2e NAME SECONDS ARGUMENTS...
  name=$1
  span=$2
  shift 2
  # A shape begun at the end of the budget may take as long again as its own share: hence the margin.
  step "$name" "$span" "$build/bench/bench_e2e" --csv "$out/$day-$name.csv" --budget $((span > 40 ? span - 30 : span / 2)) \
    ${library:+--library "$library"} ${OPENBLAS:+--openblas "$OPENBLAS"} "$@"
}

machine >"$out/$day-machine.md"
[ -n "$library" ] || echo "no libgemmhoist.so in $build: peers only"

total=$3
if [ -n "$kernels" ]; then
  step kernels $((total / 5 < 120 ? total / 5 : 120)) "$kernels"
else
  echo "== kernels: no check_kernels in $build"
fi
e2e e2e-large "$(left $((total / 3)))" --sizes 4096,8192 --pinned --seconds $((total / 20 > 3 ? total / 20 : 3))
e2e e2e-small "$(left $((total / 4)))" --sizes 2048,1024,512 --pinned --seconds $((total / 40 > 2 ? total / 40 : 2))
if [ -n "$library" ]; then
  step preload-cost "$(left)" "$build/bench/preload_cost" --library "$library" --pairs 200
  # 8 cases of 2 processes a pair, each a third longer than its timed part, and their start-up
  pairs=$((total > 400 ? 7 : 3))
  step case36 "$(left)" "$build/bench/case36" --library "$library" --openblas "$openblas" --pairs $pairs --seconds 0.2 \
    --csv "$out/$day-case36.csv"
fi
e2e e2e-16384 "$(left)" --sizes 16384 --seconds $((total / 20 > 5 ? total / 20 : 5)) \
  --peers gemmhoist,cublas-kernel,cublas,cublasxt,nvblas
e2e e2e-real "$(left)" --shapes real --seconds 2 --peers gemmhoist,cublas-kernel,openblas

{
  echo "# gemmhoist on $(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sort | uniq -c | sed 's/^ *//' | head -n 1)"
  echo
  cat "$out/$day-machine.md"
  for name in e2e-large e2e-small e2e-16384 e2e-real; do
    [ -s "$out/$day-$name.txt" ] || continue
    echo
    sed -n '/^Rates of this run/p' "$out/$day-$name.txt"
    if grep -q '^End to end, medians' "$out/$day-$name.txt"; then
      sed -n '/^End to end, medians/,$p' "$out/$day-$name.txt"
    else # cut short: what there is, shape by shape
      sed '/^Rates of this run/d; s/^/    /' "$out/$day-$name.txt"
    fi
  done
  for name in preload-cost case36; do
    [ -s "$out/$day-$name.txt" ] || continue
    echo
    cat "$out/$day-$name.txt"
  done
  if [ -s "$out/$day-kernels.txt" ]; then
    echo
    echo "Kernels checked against the reference (last lines):"
    echo
    tail -n 12 "$out/$day-kernels.txt" | sed 's/^/    /'
  fi
} >"$page"
echo
cat "$page"
exit $failed
