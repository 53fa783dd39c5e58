#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The bench on a GPU: what `make bench-gpu` does.
#
#     bench/gpu/run.sh [options of bench.py] DIR     measure, and report; again: go on
#     bench/gpu/run.sh pack FOLDER                   put all that it needs into FOLDER, for a machine
#                                                    without a compiler or a network
#
# FOLDER/run.sh is this script; FOLDER has programs, libraries, NVRTC and the operators. libc is the
# machine's own.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

pack() {
    root=$here/../..
    mkdir -p "$1/bin" "$1/lib"
    for program in wpkctl wpkd wpk-worker wpk-builder wpk-runner wpk-evaluate; do
        cp -L "$root/build/bin/$program" "$1/bin/"
        strip "$1/bin/$program"
        ldd "$root/build/bin/$program" | awk '$3 ~ /^\// { print $3 }'
    done | sort -u | grep -Ev '/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv)[.-]' | while read -r library; do
        cp -L "$library" "$1/lib/"
    done
    cp -L "$root"/build/tests/gpu/libwpk-cuda-emulated.so "$root"/.deps/nvrtc/lib/libnvrtc* "$1/lib/"
    cp "$here"/*.py "$here/run.sh" "$root/bench/ops.json" "$1/"
}

if [ "${1:-}" = pack ]; then
    pack "$2"
    exit
fi
libraries=$here/lib
[ -d "$libraries" ] || libraries=$here/../../build/tests/gpu:$here/../../.deps/gpu-vendors/lib
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec python3 "$here/bench.py" "$@"
