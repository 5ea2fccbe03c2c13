#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vdoctl for Windows on this machine. What is missing for it is said, and is no failure.
#
#   tests/windows.sh check   lints it for Windows, as `make lint` does for Linux
#   tests/windows.sh build   builds vdoctl.exe, and what wine lacks beside it: target/x86_64-pc-windows-gnu/debug
#   tests/windows.sh run …   builds it and runs the tests under wine with this test binary, as tests/run.sh does
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
    local folder
    folder=$("$CARGO" metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')/$triple/debug
    x86_64-w64-mingw32-gcc -shared -o "$folder/bcryptprimitives.dll" -x c - -x none -ladvapi32 <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T length) { return SystemFunction036(to, (ULONG)length); }
C
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
build | run)
    if [[ -n $why ]]; then
        echo "NOT built for Windows: $why" >&2
        exit 1
    fi
    build
    [[ $1 == build ]] || RUSTC_BOOTSTRAP=1 "${@:2}" --ignored under_wine
    ;;
*) echo "usage: tests/windows.sh check|build|run TEST_BINARY" >&2 && exit 2 ;;
esac
