#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the pages as a site with mdbook: `docs/site.sh FOLDER` writes FOLDER/index.html. The first page is the README. Links to decisions
# and to other files that are not pages lead to the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "$1")
command -v mdbook >/dev/null || { echo "mdbook is missing: cargo install --locked mdbook" >&2; exit 1; }
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)/blob/main
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -R docs "$work/src"
mv "$work/src/book.toml" "$work/src/site.css" "$work/"
rm -r "$work/src/site.sh" "$work/src/decisions"
sed -e 's#](docs/#](#g' -e "s#](\([A-Z][A-Za-z.]*\))#]($repository/\1)#g" README.md >"$work/src/index.md"
sed -i "s#](\.\./#]($repository/#g" "$work"/src/*.md
sed -i "s#](\.\./\.\./#]($repository/#g" "$work"/src/*/*.md
sed -i "s#](decisions/#]($repository/docs/decisions/#g" "$work"/src/*.md
sed -i "s#](\.\./decisions/#]($repository/docs/decisions/#g" "$work"/src/*/*.md

mdbook build "$work" --dest-dir "$out"
echo "$out/index.html"
