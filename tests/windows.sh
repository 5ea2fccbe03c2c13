#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vdoctl for Windows on this machine. What is missing for it is said, and is no failure.
#
#   tests/windows.sh check   lints it for Windows, as `make lint` does for Linux
#   tests/windows.sh build   builds vdoctl.exe, and what wine lacks beside it: target/x86_64-pc-windows-gnu/debug
#   tests/windows.sh cli BINARY [FILTER …]
#                            builds it and runs the tests of vdoctl (this test binary) with vdoctl.exe under wine in the place of vdoctl; those in
#                            tests/wine/not.txt cannot run there
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
triple=x86_64-pc-windows-gnu

# What is missing to compile, with the command that installs it; nothing where it is all there.
missing() {
    if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$triple/lib ]]; then
        echo "Rust's target is not installed (rustup target add $triple)"
    elif ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
        echo "a C compiler for it is not installed (Debian: gcc-mingw-w64-x86-64)"
    fi
}

# wine before 9 has no bcryptprimitives.dll, from which Rust's standard library takes one function; Windows has had it since Windows 7.
build() {
    "$CARGO" build --package vdoctl --target $triple
    target=$("$CARGO" metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
    x86_64-w64-mingw32-gcc -shared -o "$target/$triple/debug/bcryptprimitives.dll" -x c - -x none -ladvapi32 <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T length) { return SystemFunction036(to, (ULONG)length); }
C
}

# The tests look for vdoctl beside their own folder, so they run in one where wine is started instead.
cli() { # test binary, filters
    local folder=$target/wine
    mkdir -p "$folder/deps"
    ln -f "$1" "$folder/deps/cli"
    sed "2a FOLDER=$(printf '%q' "$folder")" tests/wine/vdoctl >"$folder/vdoctl"
    chmod 755 "$folder/vdoctl"
    echo "vdoctl: " >"$folder/vdoctl.d"
    [[ -d $folder/prefix ]] || WINEPREFIX=$folder/prefix WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml= wine wineboot --init
    local skip=()
    mapfile -t skip < <(sed -nE 's/^([a-z_0-9:]+)  .*$/--skip=\1/p' tests/wine/not.txt)
    RUSTC_BOOTSTRAP=1 "$folder/deps/cli" -Zunstable-options --report-time "${skip[@]}" "${@:2}"
}

why=$(missing)
case ${1:-} in
check)
    echo "== vdoctl for Windows"
    if [[ -n $why ]]; then
        echo "NOT checked: $why"
    else
        "$CARGO" clippy --package vdoctl --target $triple -- -D warnings
    fi
    ;;
build | cli)
    if [[ -n $why ]]; then
        echo "NOT built for Windows: $why" >&2
        exit 1
    fi
    [[ $1 == build ]] || command -v wine >/dev/null || { echo "wine is not installed (Debian: wine)" >&2; exit 1; }
    build
    [[ $1 == build ]] || cli "${@:2}"
    ;;
*) echo "usage: tests/windows.sh check|build|cli TEST_BINARY [FILTER …]" >&2 && exit 2 ;;
esac
