#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the test binaries and says at the end what took long and what was skipped. `make test`, `make test-all` and `make check` call it.
#
#   tests/run.sh check    unit tests and the binary `pure`
#   tests/run.sh          everything, and of the long tests some that the seed draws
#   tests/run.sh long     the long tests that the other with the same VDO_SEED does not draw
#   tests/run.sh olm      the tests with OLM and OpenShift's admission code
#   tests/run.sh skipped  only what the other skips where a program is missing that this machine has now
set -euo pipefail
cd "$(dirname "$0")/.."
export VDO_SEED=${VDO_SEED:-$((RANDOM * 32768 + RANDOM))}
CARGO=${CARGO:-cargo}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

step() { printf '== %s\n' "$1"; step_name=$1; step_start=$SECONDS; }
steps=()
step_done() { steps+=("$(printf '%5d s  %s' $((SECONDS - step_start)) "$step_name")"); }

step "compile the tests"
packages=(--workspace) targets=()
[[ ${1:-} == check ]] && packages+=(--exclude vdo-testbed --exclude vdo-release) targets=(--lib --test pure)
"$CARGO" test "${packages[@]}" "${targets[@]}" --no-run 2>&1 | tee "$logs/compile" | grep -E '^(warning|error)|Compiling vdo' || true
grep -q 'Finished' "$logs/compile" || { cat "$logs/compile"; exit 1; }
step_done

# cosign and sops are built for minutes, so their tests run where the program is there already, and where VDO_COSIGN or VDO_SOPS asks for it.
[[ -z ${VDO_COSIGN:-} ]] || "$CARGO" run --quiet --package vdo-testbed -- build cosign
[[ -z ${VDO_SOPS:-} ]] || "$CARGO" run --quiet --package vdo-testbed -- build sops
for file in "${VDO_TESTBED_DIR:-.testbed}"/{cosign-*/cosign,sops-*/sops}; do
    [[ ! -x $file ]] || PATH=$(cd "$(dirname "$file")" && pwd):$PATH
done

# Lines such as: Executable tests/pure/main.rs (target/debug/deps/pure-0123456789abcdef)
# The unit tests of all crates are one step.
declare -A program
units=()
while read -r name file; do
    if [[ $name == unit ]]; then units+=("$file"); else program[$name]=$file; fi
done < <(
    sed -nE 's|^ *Executable (unittests )?(.*) \((.*)\)$|\2 \3|p' "$logs/compile" |
        sed -E 's|^tests/([a-z]+)/main\.rs |\1 |; s|^src/lib\.rs (.*/vdo_testbed-)|unit-testbed \1|; s|^src/main\.rs (.*/vdo_release-)|unit-release \1|; s|^src/main\.rs (.*/vdo_load-)|unit \1|; s|^src/lib\.rs |unit |; s|^src/.* |main-\0|')

# Time per test is shown by an unstable flag of the test harness; only the harness gets leave to use it.
run() { # name, more arguments
    local name=$1 file status=0 files=("${program[$1]:-}")
    shift
    [[ $name != unit ]] || files=("${units[@]}")
    [[ -n ${files[*]} ]] || { echo "test binary $name was not built" >&2; return 1; }
    for file in "${files[@]}"; do
        printf '   Running %s (%s)\n' "$name" "${file##*/}"
        RUSTC_BOOTSTRAP=1 "$file" -Zunstable-options --report-time "$@" || status=1
    done
    return $status
}

also() { # name, more arguments
    local name=$1
    run "$@" 2>&1 | tee "$logs/also-$name-$3.log" || failed+=("$name $3")
}

failed=()
whole() { # name, more arguments
    step "$1"
    run "$@" 2>&1 | tee "$logs/$1.log" | sed -u -e '/^took /d' -e '/ has been running for over 60 seconds$/d' || failed+=("$1")
    step_done
}

declare -A background
beside() { # name, more arguments
    run "$@" >"$logs/$1.log" 2>&1 &
    background[$1]=$!
}

ended() { # name
    step "$1, beside others"
    wait "${background[$1]}" || failed+=("$1")
    cat "$logs/$1.log"
    step_done
}

# Tests of a binary that are ignored for a reason, with the reason: lines such as `module::test needs nginx`.
ignored() { # name
    RUSTC_BOOTSTRAP=1 "${program[$1]}" --list -Zunstable-options --format json |
        sed -nE 's/^.*"name": "([^"]*)", "ignore": true, "ignore_message": "([^"]*)".*$/\1 \2/p'
}

# A long test takes more than ten seconds beside the others. Of those of `cluster` a run takes as many as VDO_LONG says, drawn by the seed, and
# of those of `olm` a quarter as many.
long=${VDO_LONG:-4}
[[ $long != all ]] || long=9999 # more than there are
long_tests() { ignored "$1" | sed -n 's/ long$//p' | shuf --random-source=<(yes "$VDO_SEED"); } # name
count() { # name
    if [[ $1 == olm ]]; then echo $(((long + 3) / 4)); else echo "$long"; fi
}
drawn() { long_tests "$1" | awk -v count="$(count "$1")" 'NR <= count'; }     # name
not_drawn() { long_tests "$1" | awk -v count="$(count "$1")" 'NR > count'; } # name

# Runs a binary with the long tests that are drawn.
with_long() { # name, more arguments
    local name=$1 skip=()
    shift
    mapfile -t skip < <(ignored "$name" | sed 's/ .*//' | grep -vxFf <(drawn "$name") | sed 's/^/--skip=/')
    ignored "$name" | sed -nE 's/^(\S+) (needs .*)$/test \1 ... ignored, \2/p' >"$logs/ignored-$name.log"
    whole "$name" "$@" --include-ignored --exact "${skip[@]}"
    echo "long tests of $name: $(drawn "$name" | wc -l) of $(long_tests "$name" | wc -l), VDO_SEED=$VDO_SEED (make test-all runs all)" >>"$logs/ignored-$name.log"
}

# Runs the long tests that another run with the same seed has not drawn.
left_out() { # name, more arguments
    local name=$1 names=()
    shift
    mapfile -t names < <(not_drawn "$name")
    # Without a name the harness would run every test.
    ((${#names[@]} == 0)) || whole "$name" "$@" --include-ignored --exact "${names[@]}"
}

# In `cluster` every test has a thread, in which most wait for a control plane, so that none is idle while there is a test for it. Each test of
# `olm` has a control plane of its own.
in_cluster=(cluster --test-threads=1000)
with_olm=(olm --test-threads=3)

installed() { # programs
    local program
    for program in "$@"; do PATH=$PATH:/usr/sbin type -P "$program" >/dev/null || return 1; done
}

# vdoctl.exe takes some minutes to build the first time.
windows() {
    tests/windows.sh build >"$logs/windows" 2>&1 || { tail -n 20 "$logs/windows"; echo "SKIPPED: needs vdoctl.exe (tests/windows.sh build)" >"$logs/windows.log"; return 0; }
    also cli --ignored under_wine
    # Each test of vdoctl with vdoctl.exe: a quarter of an hour.
    [[ -z ${VDO_WINE:-} ]] || tests/windows.sh cli "${program[cli]}" 2>&1 | tee "$logs/also-wine.log" || failed+=("cli under wine")
}

# What needs more than the README asks for, where the machine or the environment has it.
extra() {
    step "with further programs"
    # Those of one binary run together, because they wait for much of their time.
    local of_cluster=() of_cli=()
    ! installed nginx squid htpasswd || of_cluster+=(matrix_behind)
    ! installed squid htpasswd || of_cluster+=(behind_a_real_squid)
    ! installed microsocks || of_cluster+=(behind_a_real_microsocks)
    ! installed chromium || of_cluster+=(in_chromium)
    ! installed zsh || of_cli+=(of_zsh)
    ! installed fish || of_cli+=(of_fish)
    ! installed skopeo || of_cli+=(of_skopeo)
    ! installed sops || of_cli+=(of_sops)
    ((${#of_cluster[@]} == 0)) || also cluster --ignored "${of_cluster[@]}"
    ((${#of_cli[@]} == 0)) || also cli --ignored "${of_cli[@]}"
    ! installed wine || windows
    ! installed cosign || also charts --ignored of_cosign
    [[ -z ${VDO_UPSTREAM_DIR:-} ]] || also charts --ignored of_upstream
    [[ -z ${VDO_UPSTREAM_DIR:-} ]] || also cluster --ignored adoption_of_upstream
    [[ -z ${VDO_UPSTREAM_DIR:-} ]] || also cluster --ignored adoption_pictures_each_installer
    [[ -z ${VDO_UPSTREAM_DIR:-} ]] || also pure --ignored adopted_installers
    [[ -z ${VDO_TEST_VCENTER:-} ]] || tests/real-vcenter.sh "${program[vcenter]}" 2>&1 | tee "$logs/also-vcenter-real.log" || failed+=("real-vcenter")
    [[ -z ${VDO_RELEASE:-} ]] || also release --ignored release_built_twice
    [[ -z ${VDO_RELEASE:-} ]] || also cluster --ignored publish_with_make
    step_done
}

case ${1:-} in
olm) with_long "${with_olm[@]}" ;;
long)
    left_out "${in_cluster[@]}"
    [[ -n ${VDO_WITHOUT_OLM:-} ]] || left_out "${with_olm[@]}"
    ;;
skipped)
    # These say themselves which program they miss.
    [[ -z $(type -P skopeo) ]] || whole release
    ! installed cosign || also cli --show-output cosign
    extra
    ;;
check)
    beside unit
    whole pure
    ended unit
    ;;
*)
    # These wait for much of their time, so they run beside others; what they say is shown when the others are done. Two tests wait for the
    # operator's next look at the nodes, and have a control plane of their own.
    program[faults-nodes]=${program[faults]:-}
    waiting=(crash_while_node lost_answers)
    beside faults-nodes --test-threads=1 "${waiting[@]}"
    beside faults --test-threads=1 "${waiting[@]/#/--skip=}"
    beside vcenter
    for name in unit pure unit-testbed unit-release release charts cli; do whole "$name"; done
    for name in vcenter faults-nodes faults; do ended "$name"; done
    with_long "${in_cluster[@]}"
    # VDO_WITHOUT_OLM: its programs take ten minutes to build, and `tests/run.sh olm` is for later.
    [[ -n ${VDO_WITHOUT_OLM:-} ]] || with_long "${with_olm[@]}"
    extra
    ;;
esac

echo
echo "== steps"
printf '%s\n' "${steps[@]}"
echo "== ten slowest tests"
{
    # In `cluster` a test may wait for its control plane; it says itself how long it took.
    sed -nE 's/^.*took ([0-9.]+ s  cluster .*)$/\1/p' "$logs"/*.log
    for log in "$logs"/*.log; do
        name=$(basename "$log" .log)
        [[ $name == *cluster* ]] || sed -nE "s/^test (.*) \.\.\. (ok|FAILED) <([0-9.]+)s>\$/\3 s  $name \1/p" "$log"
    done
} | sort -rn | sed -n 1,10p # not head: it ends before sort has written all, and the pipe fails
echo "== seed of the samples: VDO_SEED=$VDO_SEED"
echo "== skipped"
# What ran with a further program is not skipped.
ran=$(find "$logs" -name 'also-*.log' -exec sed -nE 's/^test (.*) \.\.\. (ok|FAILED).*/(\1)/p' {} +)
skipped=$(sed -nE -e 's/^test (.*) \.\.\. ignored, (needs .*[^>])( <[0-9.]+s>)?$/SKIPPED: \2 (\1)/p' \
    -e 's/^.*(SKIPPED: needs .*)$/\1/p' "$logs"/*.log | awk '!seen[$0]++' | { grep -vFf <(printf '%s' "$ran") || (($? == 1)); }) # 1: no line is left
printf '%s\n' "${skipped:-none}"
sed -n '/^long tests of/p' "$logs"/*.log
sed -nE 's/^test bed: (containers of images run without .*)$/NOT CONFINED: \1/p' "$logs"/*.log | sort -u
passed=$(sed -nE 's/^test result: .* ([0-9]+) passed.*/\1/p' "$logs"/*.log | awk '{n += $1} END {print n + 0}')
broken=$(sed -nE 's/^test result: .* ([0-9]+) failed.*/\1/p' "$logs"/*.log | awk '{n += $1} END {print n + 0}')
printf '%d passed, %d failed\n' "$passed" "$broken"
if ((${#failed[@]})); then
    # Once more at the end, where a log that was cut still has it: the messages, without the frames of backtraces.
    for log in "$logs"/*.log; do
        sed -nE '/^failures:$/,/^failures:$/ p' "$log" | sed -E -e '/^failures:$/d' -e '/^ *[0-9]+: /d' -e '/^ +at /d' | tail -n 60
    done
    sed -nE '/^failures:$/,/^test result/ s/^    ([a-z_:0-9]+)$/FAILED: \1/p' "$logs"/*.log | sort -u
    echo "failed: ${failed[*]}" >&2
    exit 1
fi
