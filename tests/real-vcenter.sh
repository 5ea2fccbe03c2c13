#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that need a real vCenter, as far as the environment has what they need, and lists the others. `make real-vcenter` calls it;
# docs/testing-real-vcenter.md lists the variables.
#
#   tests/real-vcenter.sh              compiles the tests first
#   tests/real-vcenter.sh TEST_BINARY  runs those of this binary
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -n ${VDO_TEST_VCENTER:-} ]] || {
    echo "real-vcenter: VDO_TEST_VCENTER names no vCenter; docs/testing-real-vcenter.md lists what to prepare" >&2
    exit 2
}
for name in $(compgen -v VDO_TEST_); do
    [[ $name != *_FILE || -z ${!name} || -r ${!name} ]] || { echo "real-vcenter: $name: file ${!name} cannot be read" >&2; exit 2; }
done

program=${1:-}
[[ -n $program ]] || program=$("${CARGO:-cargo}" test --workspace --test vcenter --no-run 2>&1 | tee /dev/stderr |
    sed -nE 's|^ *Executable tests/vcenter/main\.rs \((.*)\)$|\1|p')
[[ -x $program ]] || { echo "real-vcenter: the tests were not compiled" >&2; exit 1; }

# Each test says itself what it needs, in lines such as: test m::t ... ignored, needs a real vCenter: VDO_TEST_A and VDO_TEST_B
listed=$("$program" real_vcenter:: | sed -nE 's/^test (.*) \.\.\. ignored, needs (.*)$/\1 \2/p')
tests=() skipped=()
while read -r name needs; do
    absent=()
    for variable in $(grep -oE 'VDO_TEST_[A-Z_]+' <<<"$needs"); do
        [[ -n ${!variable:-} ]] || absent+=("$variable")
    done
    if ((${#absent[@]})); then skipped+=("SKIPPED: needs ${absent[*]} ($name)"); else tests+=("$name"); fi
done <<<"$listed"

status=0
if ((${#tests[@]})); then
    # One after the other: a vCenter counts wrong passwords.
    "$program" --ignored --exact --nocapture --test-threads=1 "${tests[@]}" || status=1
fi
((${#skipped[@]} == 0)) || printf '%s\n' "${skipped[@]}"
((${#tests[@]})) || { echo "real-vcenter: no test has all that it needs" >&2; exit 2; }
exit $status
