#!/usr/bin/env bash
# Builds the pages as a site with mdbook: `docs/site.sh FOLDER` writes FOLDER/index.html. The first page is the README, the last ones are
# the decisions, in the order of their numbers. Links to files that are not pages lead to the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "$1")
command -v mdbook >/dev/null || { echo "mdbook is missing: cargo install --locked mdbook" >&2; exit 1; }
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)/blob/main
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -R docs "$work/src"
mv "$work/src/book.toml" "$work/src/site.css" "$work/"
rm "$work/src/site.sh"
sed -e 's#](docs/decisions/)#](decisions/index.md)#g' -e 's#](docs/#](#g' -e "s#](\([A-Z][A-Za-z.]*\))#]($repository/\1)#g" README.md >"$work/src/index.md"
sed -i "s#](\.\./#]($repository/#g" "$work"/src/*.md
sed -i "s#](\.\./\.\./#]($repository/#g" "$work"/src/*/*.md

printf '# Decisions\n\nWhat was decided, what was rejected, and what would make us change it.\n\n' >"$work/src/decisions/index.md"
printf '\n- [Decisions](decisions/index.md)\n' >>"$work/src/SUMMARY.md"
for page in docs/decisions/*.md; do
	title=$(sed -n '1s/^# //p' "$page")
	printf -- '- [%s](%s)\n' "$title" "$(basename "$page")" >>"$work/src/decisions/index.md"
	printf '  - [%s](decisions/%s)\n' "$title" "$(basename "$page")" >>"$work/src/SUMMARY.md"
done

mdbook build "$work" --dest-dir "$out"
echo "$out/index.html"
