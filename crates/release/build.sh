#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what is published. `make image` and `make release` call it; docs/release.md says what comes out.
#
#   crates/release/build.sh image     target/image, an OCI image layout of the operator
#   crates/release/build.sh release   target/release-VERSION, and target/image
#   crates/release/build.sh catalog   target/bundle-image, target/catalog and target/catalog-image: bundle/ as OLM reads it
#   crates/release/build.sh matrix    target/matrix-VERSION, the matrix with its charts; VERSION is that of the matrix
#   crates/release/build.sh publish   builds these, where they are not those of this commit, and publishes them below REGISTRY
#
# REGISTRY           where to publish: a registry, with or without a path
# DRY_RUN            not empty: only say what would be published
# VDO_IMAGE          name and tag of the image (default: the one in deploy/operator.yaml)
# VDO_BUNDLES        more bundles for the catalog, as IMAGE=FOLDER, separated by spaces: those of earlier versions
# VDO_ARCHITECTURES  "amd64 arm64" of Linux, of which those are built that this machine can build
# VDO_DESKS          other systems that vdoctl is built for, of which the same is true: "darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"
# VDO_SIGNING_KEY    private key in PEM, or its path: SHA256SUMS, or the matrix, is signed
set -euo pipefail
cd "$(dirname "$0")/../.."
CARGO=${CARGO:-cargo}
target=$("$CARGO" metadata --format-version 1 --no-deps | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
version=$(sed -nE 's/^version = "([^"]+)"$/\1/p' Cargo.toml | head -n 1)
image=${VDO_IMAGE:-$(sed -nE 's/^ *image: ([^ ]+)$/\1/p' deploy/operator.yaml)}
# One time for everything: that of the commit, so that the same commit gives the same bytes.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
scratch=$(mktemp -d)
# cargo-cyclonedx writes a file of this name beside each Cargo.toml.
bill=vdo-bill
trap 'rm -rf "$scratch" "$bill.json" crates/*/"$bill.json" tests/*/"$bill.json"' EXIT

release() { "$target/debug/vdo-release" "$@"; }

triple() { # architecture of Linux, or system/architecture
    case $1 in
    amd64) echo x86_64-unknown-linux-musl ;;
    arm64) echo aarch64-unknown-linux-musl ;;
    darwin/amd64) echo x86_64-apple-darwin ;;
    darwin/arm64) echo aarch64-apple-darwin ;;
    windows/amd64) echo x86_64-pc-windows-gnu ;;
    # The one of Windows on this processor that needs no tools of Microsoft.
    windows/arm64) echo aarch64-pc-windows-gnullvm ;;
    *) echo "$1 is unknown: amd64, arm64, darwin/amd64, darwin/arm64, windows/amd64 or windows/arm64" >&2 && return 1 ;;
    esac
}

zigbuild() { command -v cargo-zigbuild >/dev/null && { command -v zig || python3 -m ziglang version; } >/dev/null 2>&1; }

# Says what is missing for a platform, or nothing. Sets `build`, the command that builds for it.
prepare() { # architecture of Linux, or system/architecture
    local triple machine
    triple=$(triple "$1") || exit 1
    if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$triple/lib ]] && ! rustup target add "$triple" >"$scratch/rustup" 2>&1; then
        echo "Rust's target $triple is missing: rustup target add $triple"
        return
    fi
    build=("$CARGO" build)
    machine=$(uname -m)
    if [[ $1 == */* ]]; then
        # zig brings what the C libraries of macOS and Windows offer, and signs programs for macOS as a Mac demands it.
        zigbuild || { echo "cargo-zigbuild is missing: pip install cargo-zigbuild ziglang"; return; }
        build=("$CARGO" zigbuild)
    elif [[ $machine == "${triple%%-*}" ]]; then
        # For ring's C and assembler. It uses nothing of a C library that differs between glibc and musl.
        local variable=CC_${triple//-/_}
        command -v musl-gcc >/dev/null || export "$variable=${!variable:-cc}"
    elif zigbuild; then
        build=("$CARGO" zigbuild)
    elif echo '#include <stdlib.h>' | "${triple%%-*}-linux-gnu-gcc" -x c -fsyntax-only - 2>/dev/null; then
        # Of this compiler, too, ring uses nothing that differs between the C libraries, and Rust's target brings the musl that is linked.
        local gcc=${triple%%-*}-linux-gnu under=${triple//-/_}
        export "CC_$under=$gcc-gcc" "AR_$under=$gcc-ar" "CARGO_TARGET_${under^^}_LINKER=$gcc-gcc"
    else
        echo "a C compiler for $triple is missing: pip install cargo-zigbuild ziglang (Debian: gcc-${triple%%-*}-linux-gnu and" \
            "libc6-dev-$1-cross)"
    fi
}

# Whether the sources are those of a commit.
is_commit() { [[ -z $(git status --porcelain 2>&1) ]]; }

# Of what a release is made: its commit, the name of its image, and the key that signs it.
built_from() { echo "$(git rev-parse HEAD) $image $(printf '%s' "${VDO_SIGNING_KEY:-}" | sha256sum | cut -d ' ' -f 1)"; }

# Whether a tool of cargo is there. Says how to install it when it is not: in the version whose output was compared.
tool() { # name
    local version
    case $1 in
    cyclonedx) version=0.5.9 ;;
    about) version="0.9.3 --features cli" ;;
    esac
    "$CARGO" "$1" --version >/dev/null 2>&1 || { echo "cargo-$1 is missing: cargo install --locked cargo-$1 --version $version"; return 1; }
}

# Writes the bills of materials of both programs: what cargo-cyclonedx finds for each package, and what is in no crate of it.
bills() { # architecture of Linux, or system/architecture
    "$CARGO" cyclonedx --quiet --format json --spec-version 1.5 --target "$(triple "$1")" --no-build-deps --override-filename "$bill"
    [[ $1 == */* ]] || release bom --bom "$bill.json" --with "webpki-root-certs=crates/release/$bill.json" --rustc "$(rustc --version)" \
        --output "$scratch/vdo-operator-$1.cdx.json"
    release bom --bom "crates/vdoctl/$bill.json" --rustc "$(rustc --version)" --output "$scratch/vdoctl-${1/\//-}.cdx.json"
    rm "$bill.json" crates/*/"$bill.json" tests/*/"$bill.json"
}

# Builds programs for a platform, or says what is missing for it.
built() { # architecture of Linux, or system/architecture; what is printed of it; arguments of cargo
    local missing options flags
    prepare "$1" >"$scratch/missing"
    missing=$(<"$scratch/missing")
    if [[ -n $missing ]]; then
        echo "== $2: NOT built, $missing"
        return 1
    fi
    echo "== $2"
    # No path of this machine in the programs; separated by 0x1f, as a path may have spaces. And no time: C compilers get an option for it.
    options=("--remap-path-prefix=$PWD=/vdo" "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo")
    if [[ $1 == darwin/* ]]; then
        # zig has the C library of macOS but no frameworks, so macos/ lists what vdoctl uses of these. -S leaves out the paths of object files, from
        # which zig would make the program's identifier (LC_UUID), too.
        options+=("-Clink-arg=-F$PWD/crates/release/macos" -Clink-arg=-Wl,-S)
        # The oldest macOS that starts the program. It is Rust's for Apple's processor; zig alone would write 15.0 into it.
        export MACOSX_DEPLOYMENT_TARGET=11.0
    fi
    flags=$(printf '%s\x1f' "${options[@]}")
    SOURCE_DATE_EPOCH=0 CARGO_ENCODED_RUSTFLAGS=${flags%$'\x1f'} "${build[@]}" --locked --release --target "$(triple "$1")" "${@:3}" ||
        { echo "$2 cannot be built" >&2; exit 1; }
}

# Builds both programs for each architecture that this machine can build; sets `architectures` to these.
programs() {
    architectures=()
    local arch
    for arch in ${VDO_ARCHITECTURES:-amd64 arm64}; do
        if built "$arch" "linux/$arch: vdo-operator and vdoctl, optimised and static" --bin vdo-operator --bin vdoctl; then
            architectures+=("$arch")
        fi
    done
    ((${#architectures[@]})) || { echo "nothing was built" >&2; exit 1; }
}

# Builds vdoctl for other systems that people sit at; sets `desks` to those that this machine can build for.
programs_for_desks() {
    desks=()
    local desk
    for desk in ${VDO_DESKS-darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}; do
        if built "$desk" "$desk: vdoctl, optimised" --package vdoctl --bin vdoctl; then
            desks+=("$desk")
        fi
    done
}

program() { # architecture of Linux or system/architecture, name
    local end=
    [[ $1 != windows/* ]] || end=.exe
    echo "$target/$(triple "$1")/release/$2$end"
}

build_image() {
    local arch arguments=()
    for arch in "${architectures[@]}"; do
        arguments+=(--program "linux/$arch=$(program "$arch" vdo-operator)")
        if tool cyclonedx >"$scratch/missing"; then
            bills "$arch"
            arguments+=(--sbom "linux/$arch=$scratch/vdo-operator-$arch.cdx.json")
        else
            echo "   linux/$arch: NO bill of materials, $(<"$scratch/missing")"
        fi
    done
    # A tree with changes is not the commit.
    if is_commit; then
        arguments+=(--revision "$(git rev-parse HEAD)")
    else
        echo "   the sources differ from the commit, so the image names none"
    fi
    release image "${arguments[@]}" --reference "$image" --output "$target/image" | tee "$scratch/image"
    digest=$(sed -nE 's/^image .* (sha256:[0-9a-f]+)$/\1/p' "$scratch/image")
    for arch in "${architectures[@]}"; do
        starts "$arch"
        compare "$arch"
    done
}

# Runs the program as the layer has it.
starts() { # architecture
    local layer emulator=()
    layer=$(sed -nE "s#^  linux/$1: .* layer sha256:([0-9a-f]+) .*#\1#p" "$scratch/image")
    mkdir "$scratch/root-$1"
    tar -xzf "$target/image/blobs/sha256/$layer" -C "$scratch/root-$1"
    if [[ $(uname -m) != "$(triple "$1" | cut -d - -f 1)" ]]; then
        emulator=("qemu-$(triple "$1" | cut -d - -f 1)")
        command -v "${emulator[0]}" >/dev/null || { echo "   linux/$1: NOT started, ${emulator[0]} is missing (Debian: qemu-user)"; return; }
    fi
    echo "   linux/$1: the image's program says: $("${emulator[@]}" "$scratch/root-$1/usr/local/bin/vdo-operator" --version)"
}

# Builds the same image with buildah and compares the layers before compression, byte for byte by their digests, and whom they start.
compare() { # architecture
    local buildah=(buildah --root "$scratch/store" --runroot "$scratch/run" --storage-driver vfs) ours theirs
    command -v buildah >/dev/null || { echo "   linux/$1: NOT compared with deploy/Containerfile, buildah is missing"; return; }
    if ! "${buildah[@]}" from --name "probe-$1" scratch >/dev/null 2>"$scratch/error"; then
        echo "   linux/$1: NOT compared with deploy/Containerfile, buildah cannot build here: $(tail -n 1 "$scratch/error")"
        return
    fi
    release context --program "$(program "$1" vdo-operator)" --output "$scratch/context-$1"
    "${buildah[@]}" bud --quiet --isolation chroot --no-cache --layers=false --timestamp "$SOURCE_DATE_EPOCH" --platform "linux/$1" \
        --tag "localhost/vdo-operator:$1" --file deploy/Containerfile "$scratch/context-$1" >/dev/null
    theirs=$("${buildah[@]}" inspect --type image --format \
        '{{range .OCIv1.RootFS.DiffIDs}}{{.}}{{end}} {{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}' "localhost/vdo-operator:$1")
    ours="$(sed -nE "s#^  linux/$1: .* unpacked (sha256:[0-9a-f]+) .*#\1#p" "$scratch/image") 65532:65532 [/usr/local/bin/vdo-operator]"
    [[ $ours == "$theirs" ]] || { printf 'linux/%s: buildah built another layer\n  ours   %s\n  buildah %s\n' "$1" "$ours" "$theirs" >&2; exit 1; }
    echo "   linux/$1: buildah builds the same layer from deploy/Containerfile"
}

# Packs a bundle, and a catalog that holds it.
build_catalog() { # folder of the bundle
    local registry=${image%/*} more=() one
    for one in ${VDO_BUNDLES:-}; do more+=(--bundle "$one"); done
    release bundle-image --bundle "$1" --output "$target/bundle-image" --reference "$registry/vdo-bundle:v$version"
    release catalog --bundle "$registry/vdo-bundle:v$version=$1" "${more[@]}" --output "$target/catalog" \
        --image "$target/catalog-image" --reference "$registry/vdo-catalog:v$version"
}

build_release() {
    local out="$scratch/release" arch desk name end tool krew=() place=$target/release-$version
    mkdir "$out"
    for arch in "${architectures[@]}"; do
        for tool in vdoctl vdo-operator; do
            release archive --platform "linux/$arch" --program "$(program "$arch" "$tool")" --file LICENSE --file "$scratch/LICENCES.txt" \
                --output "$out/$tool-v$version-linux-$arch.tar.gz"
            cp "$scratch/$tool-$arch.cdx.json" "$out/$tool-v$version-linux-$arch.cdx.json"
        done
        krew+=(--archive "linux/$arch=$out/vdoctl-v$version-linux-$arch.tar.gz")
    done
    for desk in "${desks[@]}"; do
        name=vdoctl-v$version-${desk/\//-} end=tar.gz
        [[ $desk != windows/* ]] || end=zip
        bills "$desk"
        release archive --platform "$desk" --program "$(program "$desk" vdoctl)" --file LICENSE --file "$scratch/LICENCES.txt" \
            --output "$out/$name.$end"
        cp "$scratch/vdoctl-${desk/\//-}.cdx.json" "$out/$name.cdx.json"
        krew+=(--archive "$desk=$out/$name.$end")
    done
    cp "$scratch/LICENCES.txt" "$out/"
    release install-yaml --image "$image@$digest" --output "$out/install.yaml"
    # The bundle names the image by its digest, so that it can be mirrored and cannot be replaced.
    release bundle --image "${image%:*}@$digest" --output "$scratch/bundle"
    build_catalog "$scratch/bundle"
    cp "$scratch/bundle/prerequisites.yaml" "$out/"
    if [[ -f deploy/chart/Chart.yaml ]]; then
        release chart --source deploy/chart --version "$version" --image "${image%:*}" --output "$out"
    else
        echo "  no Helm chart: deploy/chart is missing"
    fi
    release krew --version "v$version" --base "https://github.com/vdo-project/vdo/releases/download/v$version" "${krew[@]}" --output "$out/vdo.yaml"
    release notes --version "$version" --output "$out/NOTES.md"
    release sums "$out"
    if [[ -n ${VDO_SIGNING_KEY:-} ]]; then
        release sign "$out/SHA256SUMS"
    else
        echo "  NOT signed: VDO_SIGNING_KEY names no key"
    fi
    rm -rf "$place"
    mv "$out" "$place"
    is_commit && built_from >"$place.built"
    echo "== $place"
    (cd "$place" && wc -c -- * | awk '$2 != "total" {printf "%12d  %s\n", $1, $2}')
}

build_matrix() {
    matrix=$target/matrix-$(sed -nE 's/^version: ([0-9]+)$/\1/p' matrix-index/index.yaml)
    release matrix --output "$scratch/matrix"
    rm -rf "$matrix"
    mv "$scratch/matrix" "$matrix"
    echo "== $matrix"
}

build_all() {
    # Before an hour of building.
    tool cyclonedx >&2
    tool about >&2
    programs
    echo "== image"
    build_image
    programs_for_desks
    echo "== release $version"
    local platform targets=()
    for platform in "${architectures[0]}" "${desks[@]}"; do targets+=(--target "$(triple "$platform")"); done
    "$CARGO" about generate --locked --workspace --fail --config crates/release/about.toml "${targets[@]}" \
        --output-file "$scratch/LICENCES.txt" crates/release/about.hbs
    build_release
}

# What is missing to publish, before anything is built.
publishable() {
    [[ -n ${REGISTRY:-} ]] || { echo "REGISTRY is not set: make publish REGISTRY=registry.example.com/vsphere" >&2; exit 2; }
    is_commit || [[ -n ${DRY_RUN:-} ]] || { echo "The sources differ from the commit. Commit them: what is published names its commit" >&2; exit 2; }
}

publish() {
    image=$REGISTRY/vdo-project/vdo-operator:v$version
    release publish --check --registry "$REGISTRY" --version "$version"
    local place=$target/release-$version
    if is_commit && [[ -f $place.built && $(<"$place.built") == "$(built_from)" ]]; then
        echo "== $place is of this commit"
    else
        build_all
    fi
    build_matrix
    echo "== publish to $REGISTRY"
    release publish --registry "$REGISTRY" --version "$version" --image "$target/image" --bundle "$target/bundle-image" \
        --catalog "$target/catalog-image" --release "$place" --matrix "$matrix" ${DRY_RUN:+--dry-run}
}

case ${1:-} in
image | release | catalog | matrix | publish) ;;
*) echo "usage: crates/release/build.sh image|release|catalog|matrix|publish" >&2 && exit 2 ;;
esac
[[ $1 != publish ]] || publishable
# `make catalog` has built it with the workspace.
[[ $1 == catalog ]] || "$CARGO" build --quiet --locked --package vdo-release
case $1 in
image)
    programs
    echo "== image"
    build_image
    ;;
release) build_all ;;
catalog) build_catalog bundle ;;
matrix) build_matrix ;;
publish) publish ;;
esac
