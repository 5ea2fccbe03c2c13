#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds an older VDO from a copy of these sources: version 0.0.9, whose matrix is one version older and lacks the newest CSI driver.
# `make test-builds` calls it.
#
#   tests/older-build.sh TARGET_FOLDER
#
# Sources, programs and the image of the operator are in TARGET_FOLDER/older. Libraries that TARGET_FOLDER has are not compiled again.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(cd "$1" && pwd)
copy=$target/older
version=$(sed -n '/^\[workspace.package\]/,/^$/ s/^version = "\(.*\)"$/\1/p' Cargo.toml)

mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory="$copy"

# Other versions of the same numbers are of libraries, which are not named vdo.
sed -i -E "s/^(version|vdo[a-z-]* = \{ version) = \"$version\"/\1 = \"0.0.9\"/" "$copy/Cargo.toml" "$copy/tests/testbed/Cargo.toml"
sed -i -E "/^name = \"vdo/{n;s/\"$version\"/\"0.0.9\"/}" "$copy/Cargo.lock"
sed -i "s/vdo-operator:v$version/vdo-operator:v0.0.9/" "$copy/deploy/operator.yaml"
awk '
    /^version: / { $2 = $2 - 1 }
    /^  [a-z-]+:$/ { csi = /vsphere-csi/; seen = 0 }
    csi && /^    - version:/ { seen++ }
    !(csi && seen == 1)
' matrix-index/index.yaml >"$copy/matrix-index/index.yaml"

if [[ ! -d $copy/target/debug ]]; then
    mkdir -p "$copy/target/debug"
    (cd "$target/debug" && find deps build .fingerprint -not -path '*/vdo*' -not -name 'libvdo*' \
        \( -path 'deps/*.rlib' -o -path 'deps/*.rmeta' -o -path 'deps/*.so' -o -path 'deps/*.d' -o -path 'build/*' -o -path '.fingerprint/*' \) -type f -print0 |
        tar --create --null --files-from=-) | tar --extract --directory="$copy/target/debug"
fi
(cd "$copy" && "${CARGO:-cargo}" build --workspace --locked --target-dir "$copy/target")
"$copy/tests/operator-image.sh" "$copy/target"
