#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs the wheels of the packages woodpecker, woodpecker_tune and onnxruntime_ep_woodpecker, each with its programs or its
# library, and the libraries that these need, into a folder:
#
#     python/make_wheel.sh BUILD FOLDER [PACKAGE...]
#
# Libraries that Python loads are compiled once more, by zig's clang for glibc 2.28, so that they load on systems that are
# older than the one that builds; programs need the glibc that their libraries were built for.
# Two runs on the same build write the same bytes. woodpecker_tune, 60 MB with Halide, takes a minute.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/.deps/wheel-venv/bin
build=$(cd "${1:?usage: python/make_wheel.sh BUILD FOLDER [PACKAGE...]}" && pwd)
out=${2:?usage: python/make_wheel.sh BUILD FOLDER [PACKAGE...]}
shift 2
wanted=" ${*:-woodpecker onnxruntime_ep_woodpecker woodpecker_tune} "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# The moment of the last commit, which zip files have as the time of their members.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 1700000000)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/python/pyproject.toml")
zig=$("$tools/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__) + "/zig")') # not by Python for each file
zig_target="-target x86_64-linux-gnu.2.28 -fno-sanitize=undefined"
libraries=/usr/lib/x86_64-linux-gnu
export SOURCE_DATE_EPOCH version PATH="$tools:$PATH"

# begin PACKAGE PROJECT PAGE: the package's folder, without what is compiled; false where it is not wanted.
begin() {
    name=$1
    case $wanted in *" $name "*) ;; *) return 1 ;; esac
    folder=$work/$name
    mkdir -p "$folder/licenses" "$folder/$name"
    cp "$root/python/$2" "$folder/pyproject.toml"
    cp "$root/docs/$3" "$folder/README.md"
    cp "$root/LICENSE" "$folder/licenses/"
    cp -r "$root/python/$name/." "$folder/$name/"
    rm -rf "$folder/$name/__pycache__"
}

# add FILE FOLDER: a compiled file, and the licences of the libraries that it needs and Debian has.
add() {
    mkdir -p "$folder/$name/$2"
    cp -L "$1" "$folder/$name/$2/"
    strip --strip-unneeded "$folder/$name/$2/$(basename "$1")"
    ldd "$1" | awk '$3 ~ /^\// { print $3 }' | while read -r path; do
        real=$(realpath "$path") # dpkg may know it without the /usr that /lib is a link into
        package=$(dpkg -S "$real" "${real#/usr}" 2>/dev/null | head -n 1 | cut -d: -f1)
        [ -z "$package" ] || cp "/usr/share/doc/$package/copyright" "$folder/licenses/$package"
    done
}

# compile TARGET FOLDERS MAP: a library of the build, from its sources there: all of FOLDERS, and of the rest those that these
# need.
compile() {
    objects=$work/objects/$(basename "$1").d
    rm -rf "$objects" && mkdir -p "$objects/own" "$objects/rest"
    (
        cd "$build"
        ninja -t inputs "$1" | sed -n 's,^\.\./\(.*\)\.c$,\1,p' | while read -r source; do
            case " $2 " in *" $(dirname "$source") "*) part=own ;; *) part=rest ;; esac
            echo "../$source.c $objects/$part/$(echo "$source" | tr / _).o"
        done | xargs -P "$(nproc)" -n 2 sh -c "'$zig' cc $zig_target"' -std=c11 -O2 -g0 -D_GNU_SOURCE \
            -DWPK_VERSION="\"$version\"" -D_FILE_OFFSET_BITS=64 -fPIC -ffunction-sections -I.. -Ischema \
            -I../.deps/onednn/include -I/usr/include/cjson -idirafter /usr/include -c "$0" -o "$1"'
        "$zig" ar rcs "$objects/rest.a" "$objects"/rest/*.o
        library=$work/objects/$(basename "$1" .1.0)
        "$zig" cc $zig_target -shared -s -o "$library" "$objects"/own/*.o "$objects/rest.a" -Wl,--gc-sections \
            -Wl,-soname,"$(basename "$library")" -Wl,-z,nodelete -Wl,--version-script="$root/$3" -lm -ldl -lpthread \
            "$libraries/libcjson.so.1" "$libraries/libsodium.a" "$(gcc -print-libgcc-file-name)" # zig's own sees no CPU's flags
    )
    add "$work/objects/$(basename "$1" .1.0)" .
    cp /usr/share/doc/libsodium-dev/copyright "$folder/licenses/libsodium"
}

finish() {
    pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --no-index \
        --config-settings=--build-option="--plat-name=linux_x86_64 --python-tag=py3" \
        --wheel-dir "$work/linux" "$folder"
    auditwheel repair --wheel-dir "$work/many" "$work/linux/$name"-*.whl >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

if begin woodpecker pyproject.toml python.md; then
    compile runtime/libwpk.so.0.1.0 "runtime runtime/gpu runtime/kernel runtime/model runtime/vendor schema" runtime/libwpk.map
    finish
fi
if begin onnxruntime_ep_woodpecker pyproject.onnxruntime.toml onnxruntime.md; then
    compile runtime/onnxruntime/libwpk-onnxruntime.so runtime/onnxruntime runtime/onnxruntime/provider.map
    finish
fi
if begin woodpecker_tune pyproject.tune.toml python.md; then
    for program in wpkctl wpkd wpk-worker wpk-builder wpk-runner wpk-evaluate; do
        add "$build/bin/$program" bin
    done
    add "$build/target/libwpk-halide.so" bin
    cp "$root/.deps/halide/share/doc/Halide/LICENSE.txt" "$folder/licenses/Halide" 2>/dev/null || true
    finish
fi
mkdir -p "$out"
mv "$work"/many/*.whl "$out/"
ls "$out"/*.whl
