# Shared by the scripts in this folder; sourced, never run. Finds or installs what a build needs, and does nothing
# (and asks no network) where everything is there already.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/.deps
python=/usr/bin/python3  # Debian's own: the one that its NumPy, SciPy and scikit-learn belong to
[ -x "$python" ] || python=$(command -v python3 || true)

say() { printf '%s\n' "== $*"; }
die() { printf '%s\n' "error: $*" >&2; exit 1; }

# What to install, by purpose. Of OpenBLAS the library alone: the build links the shim to it by its soname, and needs no headers.
build_packages=(g++ meson ninja-build pkg-config python3 libopenblas0-pthread
                libcli11-dev libfmt-dev nlohmann-json3-dev)
test_packages=(libgtest-dev libboost-dev gfortran strace clang-format-14
               libblas-test libblas64-test libopenblas64-0-pthread libblas3 libblas64-3 libgslcblas0
               python3-numpy python3-scipy python3-sklearn python3-pytest python3-hypothesis)
demo_packages=(python3-numpy python3-sklearn)

# need_packages NAME...: installs those that are missing.
need_packages() {
  local missing=() name
  if ! command -v dpkg-query > /dev/null; then
    say "not a Debian system: please have these ready (Debian's names): $*"
    local tool
    for tool in g++ meson ninja pkg-config python3; do
      command -v "$tool" > /dev/null || die "$tool is missing"
    done
    return
  fi
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2> /dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo > /dev/null || die "missing packages, and neither root nor sudo: ${missing[*]}"
    as_root=(sudo)
  fi
  export DEBIAN_FRONTEND=noninteractive
  local log=$deps/apt.log
  mkdir -p "$deps"
  { "${as_root[@]}" apt-get update && "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } \
    > "$log" 2>&1 < /dev/null || { tail -5 "$log" >&2; die "apt-get could not install ${missing[*]} (whole log: $log)"; }
  python=/usr/bin/python3
}

# Toolkit of the PyPI wheels: the compiler alone, no library. Pinned, because a newer minor release may drop an
# architecture that a release of ours promises.
cuda_wheels=('nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*'
             'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*')

# find_nvcc: sets $nvcc to a compiler that works, or to nothing, saying why. GEMMHOIST_TEST_NO_NVCC=1 builds as a machine
# without one would.
find_nvcc() {
  nvcc=
  if [ -n "${GEMMHOIST_TEST_NO_NVCC:-}" ]; then
    say "GEMMHOIST_TEST_NO_NVCC is set: building without GPU code"
    return
  fi
  local candidate
  for candidate in "$(command -v nvcc || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" \
                   "$deps/cuda/nvidia/cu13/bin/nvcc"; do
    if [ -n "$candidate" ] && [ -x "$candidate" ] && "$candidate" --version > /dev/null 2>&1; then
      nvcc=$candidate
      return
    fi
  done
  if [ "$(uname -m)" != x86_64 ]; then
    say "no nvcc, and its wheels are fetched for x86_64 only: building without GPU code"
    return
  fi
  if [ -e "$deps/no-nvcc" ] && [ -z "${GEMMHOIST_TEST_RETRY_NVCC:-}" ]; then
    say "no nvcc ($(cat "$deps/no-nvcc")): building without GPU code; GEMMHOIST_TEST_RETRY_NVCC=1 tries again"
    return
  fi
  say "no nvcc here: fetching the compiler from PyPI's CUDA wheels into .deps/cuda"
  need_packages python3-pip
  mkdir -p "$deps"
  if "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$deps/cuda.new" \
       --root-user-action=ignore "${cuda_wheels[@]}" > "$deps/pip.log" 2>&1 < /dev/null; then
    rm -rf "$deps/cuda"
    mv "$deps/cuda.new" "$deps/cuda"
    chmod +x "$deps"/cuda/nvidia/cu13/bin/* "$deps"/cuda/nvidia/cu13/nvvm/bin/* 2> /dev/null || true
    candidate=$deps/cuda/nvidia/cu13/bin/nvcc
    if "$candidate" --version > /dev/null 2>&1; then
      nvcc=$candidate
      return
    fi
    echo "the wheels' nvcc does not run" > "$deps/no-nvcc"
  else
    rm -rf "$deps/cuda.new"
    echo "the wheels could not be fetched" > "$deps/no-nvcc"
    tail -2 "$deps/pip.log" >&2
  fi
  say "$(cat "$deps/no-nvcc"): building without GPU code"
}

# NumPy as PyPI ships it: its OpenBLAS has names of its own, with 64-bit integers, which the library serves too. For tests
# and the demo alone; where it cannot be fetched they skip it by name.
numpy_wheel=$deps/numpy-wheel
get_numpy_wheel() {
  [ ! -d "$numpy_wheel" ] || return 0
  need_packages python3-pip
  mkdir -p "$deps"
  say "fetching NumPy's wheel from PyPI into .deps/numpy-wheel"
  if "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$numpy_wheel.new" \
       --root-user-action=ignore 'numpy==2.2.*' > "$deps/pip.log" 2>&1 < /dev/null; then
    mv "$numpy_wheel.new" "$numpy_wheel"
  else
    rm -rf "$numpy_wheel.new"
    say "it could not be fetched; what needs it is skipped"
  fi
}

# One architecture for a quick build: the GPU of this machine, or the H200's where there is none.
developer_arch() {
  local arch=
  if command -v nvidia-smi > /dev/null; then
    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -1 | tr -d '. ')
  fi
  case $arch in
    '' | *[!0-9]* | 90) echo 90a ;;
    *) echo "$arch" ;;
  esac
}

# configure FOLDER OPTION...: a build folder with these options, made anew only where it cannot be kept.
configure() {
  local folder=$1
  shift
  local options=("$@")
  if [ -n "$nvcc" ]; then
    options+=(-Dcuda=enabled "-Dnvcc=$nvcc")
  else
    options+=(-Dcuda=disabled)
  fi
  local stamp=$root/$folder/.configured-with
  if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "${options[*]}" ]; then
    return
  fi
  rm -rf "${root:?}/$folder"
  meson setup "$root/$folder" "$root" "${options[@]}" > "$root/$folder.log" 2>&1 ||
    { tail -25 "$root/$folder.log" >&2; die "meson could not configure $folder"; }
  mv "$root/$folder.log" "$root/$folder/setup.log"
  printf '%s' "${options[*]}" > "$stamp"
}

# build FOLDER TARGET...: quiet when all goes well.
build() {
  local folder=$1
  shift
  ninja -C "$root/$folder" "$@" > "$root/$folder/build.log" 2>&1 ||
    { grep -E -A12 'FAILED|error' "$root/$folder/build.log" | head -60 >&2; die "building $folder failed"; }
}
