#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the operator that `cargo build --workspace` has built into an image for the test bed, where that is out of date.
# `make operator-image` calls it.
#
#   tests/operator-image.sh TARGET_FOLDER
#
# The image layout is TARGET_FOLDER/testbed-image; the reference is that of deploy/operator.yaml. TARGET_FOLDER/testbed-image.d lists the
# files that it was made from.
set -euo pipefail
cd "$(dirname "$0")/.."
target_folder=$1
image=$target_folder/testbed-image
program=$target_folder/debug/vdo-operator

machine=$(uname -m)
case $machine in
    x86_64) platform=linux/amd64 ;;
    aarch64) platform=linux/arm64 ;;
    *)
        echo "operator-image: there is no image of the operator for $machine" >&2
        exit 1
        ;;
esac

if [[ $image/index.json -nt $program && -e $image.d ]]; then
    exit 0
fi

# The program is linked dynamically, so that it need not be compiled a second time, for a static target. Lines of ldd such as:
#   libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f8692f1e000)
#   /lib64/ld-linux-x86-64.so.2 (0x00007f8695c1c000)
libraries=()
while read -r file; do
    libraries+=(--file "$file=$file")
done < <(ldd "$program" | sed -nE 's|^.*[[:space:]](/[^ ]+) \(.*$|\1|p')

# Without debug information: it is not debugged there, and it would take longer to pack and to unpack.
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$program"

reference=$(sed -nE 's/^ *image: (.*vdo-operator:.*)$/\1/p' deploy/operator.yaml)
"$target_folder/debug/vdo-release" image --program "$platform=$stripped" "${libraries[@]}" --output "$image" --reference "$reference"
cp "$program.d" "$image.d"
