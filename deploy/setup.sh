#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Brings a Debian 12 machine to the point where the project builds.
#
#     deploy/setup.sh          what building and tuning need
#     deploy/setup.sh test     and what `make test` needs on top
#     deploy/setup.sh bench    and what `make bench` does; bench/setup.sh fetches the peers
#     deploy/setup.sh wheel    and what `make wheel` does
#     deploy/setup.sh packages and what `make packages` does
#     deploy/setup.sh schedulers and what `make test-schedulers` does: Slurm, and Ray in .deps/ray-venv
#     deploy/setup.sh gpu      NVRTC, ptxas and cuda.h alone, pinned by hash, into .deps/nvrtc
#     deploy/setup.sh gpu-vendors  cuBLASLt and cuDNN alone, into .deps/gpu-vendors (1.2 GB)
#
# Two things are done, each only when something is missing: Debian packages are installed (as root
# or through sudo), and the wheels of requirements.txt, pinned by hash, are unpacked into .deps/. For
# the tests two more: the wheels of tests/requirements.txt go into .deps/test-venv, a virtual
# environment, and promtool into .deps/bin. The rest of the system is not touched. A second run
# takes a few hundredths of a second.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
who=setup
deps=$root/.deps
requirements=$root/deploy/requirements.txt

packages="gcc g++ make binutils meson ninja-build pkg-config python3
    libuv1-dev libnng-dev libsqlite3-dev libpq-dev libcjson-dev libsodium-dev libxxhash-dev libmicrohttpd-dev
    libcurl4-openssl-dev libcmocka-dev"
case ${1:-} in
# systemd brings systemd-analyze; installed, it neither starts anything nor becomes the init. Tests start servers of
# PostgreSQL of their own. Chromium looks at the pages of wpkd, which needs a font.
test) packages="$packages clang clang-format git curl openssl python3-venv systemd zsh postgresql-15 chromium
    fonts-dejavu-core" ;;
bench | wheel) packages="$packages python3-venv" ;;
# Debian starts munged, and neither slurmctld nor slurmd without a slurm.conf; the test starts its own.
schedulers) packages="$packages curl munge python3-venv slurm-wlm" ;;
packages) packages="$packages debhelper git lintian mmdebstrap piuparts" ;;
esac

. "$root/deploy/progress.sh"

# Sets as_root, by which these packages can be installed.
find_root() {
    command -v apt-get >/dev/null || fail "this is not a Debian system; install the equivalents of: $*"
    as_root=
    if [ "$(id -u)" != 0 ]; then
        as_root=sudo
        command -v sudo >/dev/null || fail "not root and no sudo; as root run: apt-get install $*"
        sudo -v || fail "sudo refuses; as root run: apt-get install $*" # its prompt comes before progress
    fi
}

install_packages() {
    find_root "$@"
    begin "installing Debian packages: $*"
    log=$(mktemp)
    if ! { $as_root apt-get -qq update &&
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get -qq -y --no-install-recommends install "$@"; } >"$log" 2>&1; then
        finished
        tail -n 15 "$log" >&2
        rm -f "$log"
        fail "apt-get failed (see above); is there a network? Needed: $*"
    fi
    finished
    rm -f "$log"
}

require_packages() {
    # One query for all; what it does not know at all it names on stderr, which is not needed here.
    present=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
        sed -n 's/^installed //p') || true
    missing=
    for package in "$@"; do
        case "
$present
" in
        *"
$package
"*) ;;
        *) missing="$missing $package" ;;
        esac
    done
    # shellcheck disable=SC2086 # a list of words
    [ -z "$missing" ] || install_packages $missing
}

# Sets python: one that has pip.
find_python() {
    python=
    for candidate in python3 /usr/bin/python3; do
        if [ -z "$python" ] && $candidate -m pip --version >/dev/null 2>&1; then
            python=$candidate
        fi
    done
    if [ -z "$python" ]; then
        require_packages python3-pip
        python=/usr/bin/python3
    fi
}

# The wheels are data here, not Python packages: any Python 3 with pip can fetch them.
fetch_wheels() {
    find_python
    begin "fetching Halide and oneDNN (108 MB)"
    if ! $python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
        --only-binary :all: --python-version 3.11 --implementation cp \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
        --platform manylinux1_x86_64 --dest "$1" -r "$requirements" >"$1/log" 2>&1; then
        finished
        tail -n 15 "$1/log" >&2
        fail "pip could not fetch the wheels of deploy/requirements.txt (see above); is there a network?"
    fi
    for wheel in "$1"/*.whl; do
        $python -m zipfile -e "$wheel" "$1/tree"
    done
    finished
}

unpack_wheels() {
    staging=$(mktemp -d "$deps/staging.XXXXXX")
    # sh leaves without the trap on EXIT when a signal ends it.
    trap 'rm -rf "$staging"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    fetch_wheels "$staging"
    mkdir "$staging/halide" "$staging/onednn" "$staging/onednn/lib"
    mv "$staging"/tree/halide/include "$staging"/tree/halide/lib64 "$staging/halide/"
    mv "$staging"/tree/onednn_devel_cpu_gomp-*.data/data/include "$staging/onednn/"
    # A zip holds no links: the wheel carries the same library three times.
    mv "$staging"/tree/onednn_cpu_gomp-*.data/data/lib/libdnnl.so.3 "$staging/onednn/lib/"
    ln -s libdnnl.so.3 "$staging/onednn/lib/libdnnl.so"
    mkdir "$staging/licenses"
    for info in "$staging"/tree/*.dist-info; do
        mv "$info" "$staging/licenses/"
    done
    rm -rf "$deps/halide" "$deps/onednn" "$deps/licenses" "$deps/stamp"
    mv "$staging/halide" "$staging/onednn" "$staging/licenses" "$deps/"
    # Last, so that an interrupted run starts again.
    cp "$requirements" "$deps/stamp"
}

# Fetches the wheels of $1 and unpacks them into $staging/tree; $2 says what, and how much it is.
unpack_gpu_wheels() {
    find_python
    begin "fetching $2"
    staging=$(mktemp -d "$deps/staging.XXXXXX")
    trap 'rm -rf "$staging"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if ! $python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
        --only-binary :all: --platform manylinux_2_12_x86_64 --platform manylinux_2_17_x86_64 \
        --platform manylinux_2_27_x86_64 --dest "$staging" -r "$1" >"$staging/log" 2>&1; then
        finished
        tail -n 15 "$staging/log" >&2
        fail "pip could not fetch the wheels of ${1#"$root/"} (see above); is there a network?"
    fi
    for wheel in "$staging"/*.whl; do
        $python -m zipfile -e "$wheel" "$staging/tree"
        rm "$wheel"
    done
    finished
}

# Moves $staging/$2, with the licenses of all wheels, to .deps; $1 are its requirements.
keep_gpu_wheels() {
    for info in "$staging"/tree/*.dist-info; do
        mkdir -p "$staging/$2/licenses/$(basename "$info" .dist-info)"
        mv "$info"/licenses/* "$staging/$2/licenses/$(basename "$info" .dist-info)/"
    done
    cp "$1" "$staging/$2/stamp"
    rm -rf "${deps:?}/$2"
    mv "$staging/$2" "$deps/"
    rm -rf "$staging"
}

unpack_nvrtc() {
    unpack_gpu_wheels "$1" "NVRTC, ptxas and cuda.h (134 MB)"
    mkdir "$staging/nvrtc" "$staging/nvrtc/bin" "$staging/nvrtc/lib" "$staging/nvrtc/include"
    mv "$staging"/tree/nvidia/cuda_nvcc/bin/ptxas "$staging/nvrtc/bin/"
    chmod +x "$staging/nvrtc/bin/ptxas"
    mv "$staging"/tree/nvidia/cuda_nvrtc/lib/libnvrtc.so.12 \
        "$staging"/tree/nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9 "$staging/nvrtc/lib/"
    mv "$staging"/tree/nvidia/cuda_runtime/include/cuda.h \
        "$staging"/tree/nvidia/nvml_dev/include/nvml.h "$staging/nvrtc/include/"
    keep_gpu_wheels "$1" nvrtc
}

# cuDNN finds its other parts, and cuBLASLt, beside itself.
unpack_gpu_vendors() {
    unpack_gpu_wheels "$1" "cuBLASLt and cuDNN (1.2 GB)"
    mkdir "$staging/gpu-vendors" "$staging/gpu-vendors/lib" "$staging/gpu-vendors/include"
    mv "$staging"/tree/nvidia/cublas/lib/libcublas*.so.12 \
        "$staging"/tree/nvidia/cudnn/lib/libcudnn*.so.9 "$staging/gpu-vendors/lib/"
    mv "$staging"/tree/nvidia/cublas/include/cublas*.h \
        "$staging"/tree/nvidia/cudnn/include/cudnn*.h "$staging/gpu-vendors/include/"
    keep_gpu_wheels "$1" gpu-vendors
}

# Make a virtual environment: make_venv NAME REQUIREMENTS WHAT. The stamp is written last, so that an
# interrupted run starts again.
make_venv() {
    venv=$deps/$1
    begin "fetching $3"
    rm -rf "$venv"
    # The system's Python, whose venv module the package brings.
    /usr/bin/python3 -m venv "$venv" || fail "python3-venv is missing"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes -r "$2" || fail "pip could not fetch the wheels of ${2#"$root/"}"
    finished
    cp "$2" "$venv/stamp"
}

# The same, unless it is there.
need_venv() {
    cmp -s "$2" "$deps/$1/stamp" && return
    mkdir -p "$deps"
    exec 9>"$deps/lock"
    flock 9
    cmp -s "$2" "$deps/$1/stamp" || make_venv "$@"
}

# One program out of a Debian package: installed, the package would start a server.
unpack_promtool() {
    begin "fetching promtool (19 MB)"
    staging=$(mktemp -d "$deps/staging.XXXXXX")
    # apt fetches as a user of its own, who has to reach the directory.
    chmod 755 "$staging"
    if ! (cd "$staging" && apt-get -qq download prometheus) >"$staging/log" 2>&1; then
        find_root prometheus
        { $as_root apt-get -qq update && (cd "$staging" && apt-get -qq download prometheus); } \
            >"$staging/log" 2>&1 || { tail -n 15 "$staging/log" >&2; fail "apt-get download failed (see above)"; }
    fi
    finished
    dpkg-deb -x "$staging"/prometheus_*.deb "$staging/tree"
    mkdir -p "$deps/bin"
    mv "$staging/tree/usr/bin/promtool" "$deps/bin/"
    rm -rf "$staging"
}

case $(uname -s)-$(uname -m) in
Linux-x86_64) ;;
*) fail "only Linux on x86-64 is supported so far" ;;
esac

case ${1:-} in
gpu | gpu-vendors)
    mkdir -p "$deps"
    exec 9>"$deps/lock"
    flock 9
    if [ "$1" = gpu ]; then
        wanted=$root/deploy/requirements-gpu.txt
        cmp -s "$wanted" "$deps/nvrtc/stamp" || unpack_nvrtc "$wanted"
    else
        wanted=$root/deploy/requirements-gpu-vendors.txt
        cmp -s "$wanted" "$deps/gpu-vendors/stamp" || unpack_gpu_vendors "$wanted"
    fi
    exit
    ;;
esac

wheels_present() {
    cmp -s "$requirements" "$deps/stamp" && [ -e "$deps/halide/lib64/libHalide.so" ]
}

# shellcheck disable=SC2086 # a list of words
require_packages $packages
if ! wheels_present; then
    mkdir -p "$deps"
    # Two makes at once: the second waits, and finds the work done.
    exec 9>"$deps/lock"
    flock 9
    wheels_present || unpack_wheels
fi

case ${1:-} in
test) need_venv test-venv "$root/tests/requirements.txt" "schemathesis and others (60 MB)" ;;
esac
case ${1:-} in
schedulers) need_venv ray-venv "$root/tests/requirements-ray.txt" "Ray (80 MB)" ;;
esac
case ${1:-} in
test | wheel) need_venv wheel-venv "$root/python/requirements.txt" "auditwheel and zig (105 MB)" ;;
esac

if [ "${1:-}" = test ] && [ ! -x "$deps/bin/promtool" ] && ! command -v promtool >/dev/null; then
    exec 9>"$deps/lock"
    flock 9
    [ -x "$deps/bin/promtool" ] || unpack_promtool
fi
