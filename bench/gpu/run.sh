#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The bench on a GPU: what `make bench-gpu` does.
#
#     bench/gpu/run.sh [options of bench.py] DIR     measure, and report; again: go on
#     bench/gpu/run.sh pack FOLDER                   put all that it needs into FOLDER and FOLDER.tar.xz,
#                                                    for a machine without a compiler or a network
#     bench/gpu/run.sh check [which GPU]             is there a GPU, and what compiles for it
#
# FOLDER/run.sh is this script; FOLDER has programs, libraries, a linker and the operators, but no
# NVRTC: that is the machine's, 12 or 13, among Python's packages, of /usr/local/cuda, or in
# LD_LIBRARY_PATH. So are cuBLASLt and cuDNN, if they are to compete. libc is the machine's own.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..

# The libraries of a program, but for libc's.
libraries() {
    ldd "$1" | awk '$3 ~ /^\// { print $3 }' |
        grep -Ev '/(ld-linux|libc|libm|libdl|librt|libpthread|libresolv)[.-]' || true
}

pack() {
    mkdir -p "$1/bin" "$1/lib" "$1/tools"
    for program in wpkctl wpkd wpk-worker wpk-builder wpk-runner wpk-evaluate; do
        strip -o "$1/bin/$program" "$root/build/bin/$program"
        libraries "$root/build/bin/$program"
    done >"$1/needed"
    cp -L "$(command -v ld)" "$1/tools/ld.bin"
    libraries "$1/tools/ld.bin" >>"$1/needed"
    sort -u "$1/needed" | while read -r library; do
        cp -L "$library" "$1/lib/"
    done
    rm "$1/needed"
    strip -o "$1/lib/libwpk-cuda-emulated.so" "$root/build/tests/gpu/libwpk-cuda-emulated.so"
    cp "$here"/*.py "$here/run.sh" "$root/bench/ops.json" "$1/"
    cat >"$1/tools/ld" <<'END'
#!/bin/sh
tools=${0%/*}
LD_LIBRARY_PATH=$tools/../lib exec "$tools/ld.bin" "$@"
END
    chmod +x "$1/tools/ld"
    XZ_OPT=-2 tar -C "$(dirname "$1")" -cJf "$1.tar.xz" "$(basename "$1")"
}

if [ "${1:-}" = pack ]; then
    pack "$2"
    exit
fi
programs=$here/bin
[ -d "$programs" ] || programs=$root/build/bin
found=$(python3 "$here/libraries.py")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[ -d "$here/bin" ] || found=$root/.deps/gpu-vendors/lib:$found
export LD_LIBRARY_PATH="$found" PATH="$PATH:$here/tools"
if [ "${1:-}" = check ]; then
    exec "$programs/wpk-worker" --gpu "${2:-0}" --check
fi
exec python3 "$here/bench.py" "$@"
