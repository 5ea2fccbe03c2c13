#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds the declared Rust versions against what is used. `make lint` calls it.
#
#   - every package of the workspace declares one and the same rust-version
#   - no dependency declares a newer one
#   - the compiler is the one that rust-toolchain.toml names
#   - the workspace's programs build with rust-version itself, where that toolchain is installed
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}

least=$(sed -nE '/^\[workspace.package\]/,/^\[/ s/^rust-version = "([0-9.]+)"$/\1/p' Cargo.toml)
[[ -n $least ]] || { echo "Cargo.toml declares no rust-version in [workspace.package]" >&2; exit 1; }
for package in Cargo.toml crates/*/Cargo.toml tests/testbed/Cargo.toml; do
    grep -q '^rust-version.workspace = true$' "$package" || { echo "$package does not take the workspace's rust-version" >&2; exit 1; }
done

highest=$("$CARGO" metadata --format-version 1 --locked | grep -oE '"rust_version":"[0-9.]+"' | grep -oE '[0-9.]+' | sort -V | tail -n 1)
if [[ $(printf '%s\n' "$least" "${highest%.0}" | sort -V | tail -n 1) != "$least" ]]; then
    echo "a dependency needs Rust $highest and rust-version in Cargo.toml is $least: raise it, or take an older version of the dependency" >&2
    exit 1
fi

pinned=$(sed -nE 's/^channel = "([0-9.]+)"$/\1/p' rust-toolchain.toml)
used=$(rustc --version | cut -d ' ' -f 2)
if [[ $used == "$pinned" ]]; then
    echo "Rust $used, as rust-toolchain.toml says"
elif [[ $(printf '%s\n' "$least" "$used" | sort -V | head -n 1) == "$least" ]]; then
    echo "Rust $used; lints are defined by $pinned (rust-toolchain.toml)"
else
    echo "Rust $used is older than rust-version in Cargo.toml, $least" >&2
    exit 1
fi

if installed=$(rustup toolchain list 2>/dev/null | grep -oE "^$least(\.[0-9]+)?-[^ ]+" | head -n 1) && [[ -n $installed ]]; then
    echo "building with $installed"
    RUSTUP_TOOLCHAIN=$installed "$CARGO" check --quiet --bins --target-dir "${CARGO_TARGET_DIR:-target}/rust-$least"
else
    echo "NOT built with Rust $least, the oldest that is promised: it is not installed (rustup toolchain install $least)"
fi
