#!/usr/bin/env bash
# Builds the operator as a static program and packs it into an image for the test bed, where that is out of date. `make operator-image`
# calls it, after `cargo build --workspace`.
#
#   tests/operator-image.sh TARGET_FOLDER
#
# The image layout is TARGET_FOLDER/testbed-image; the reference is that of deploy/operator.yaml. TARGET_FOLDER/testbed-image.d lists the
# files that it was made from.
set -euo pipefail
cd "$(dirname "$0")/.."
target_folder=$1
CARGO=${CARGO:-cargo}
image=$target_folder/testbed-image

machine=$(uname -m)
case $machine in
    x86_64) platform=linux/amd64 ;;
    aarch64) platform=linux/arm64 ;;
    *)
        echo "operator-image: there is no image of the operator for $machine" >&2
        exit 1
        ;;
esac

installed() { [[ -d $(rustc --print target-libdir --target "$1" 2>/dev/null) ]]; }
musl=$machine-unknown-linux-musl gnu=$machine-unknown-linux-gnu
if installed "$musl"; then
    triple=$musl
    # Without musl's own compiler the machine's does it: what is compiled of C needs no C library.
    command -v musl-gcc >/dev/null || export "CC_${musl//-/_}=${CC:-cc}"
elif installed "$gnu"; then
    triple=$gnu
    echo "operator-image: with the C library of this machine, because $musl is not installed (rustup target add $musl)"
    export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static"
else
    echo "operator-image: neither $musl nor $gnu is installed: rustup target add $musl" >&2
    exit 1
fi

# Without debug information: it is not debugged there, and it would take longer to link and to pack.
CARGO_PROFILE_DEV_DEBUG=0 "$CARGO" build --bin vdo-operator --target "$triple" --target-dir "$target_folder"
program=$target_folder/$triple/debug/vdo-operator
if [[ $image/index.json -nt $program && -e $image.d ]]; then
    exit 0
fi
reference=$(sed -nE 's/^ *image: (.*vdo-operator:.*)$/\1/p' deploy/operator.yaml)
"$target_folder/debug/vdo-release" image --program "$platform=$program" --output "$image" --reference "$reference"
cp "$program.d" "$image.d"
