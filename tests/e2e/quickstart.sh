#!/usr/bin/env bash
#
# quickstart.sh TIELINE - deploy/quickstart with a program that is built already: it ends well within two
# minutes, shows what it promises, and leaves neither process nor file behind; --keep leaves a broker.
set -uo pipefail

tieline=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d "${TMPDIR:-/tmp}/tieline-test.XXXXXX")
kept=

cleanup() {
    [ -z "$kept" ] || kill -TERM "$kept" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

fail() {
    echo "FAIL: $*"
    tail -n 60 "$dir/out"
    exit 1
}

shows() {
    grep -qE -- "$1" "$dir/out" || fail "it does not show: $1"
}

processes() {
    local file
    for file in /proc/[0-9]*/cmdline; do
        tr '\0' ' ' <"$file" 2>/dev/null | grep -F -- "$dir/tieline-quickstart" || true
    done 2>/dev/null
}

export TIELINE_PROGRAM=$tieline TMPDIR=$dir
begun=$SECONDS
"$root/deploy/quickstart" --yes >"$dir/out" 2>&1 </dev/null || fail "status $?"
[ $((SECONDS - begun)) -lt 120 ] || fail "it took $((SECONDS - begun)) s"
shows 'burst open'
shows 'kill -9 of the broker'
shows 'burst closed'
shows '^  cloud +[0-9]'
shows '^> cloud +2 chosen'
shows '80 ids were given, 80 lines were written, each id exactly once'
[ -z "$(processes)" ] || fail "processes are left: $(processes)"
[ -z "$(ls -d "$dir"/tieline-quickstart.* 2>/dev/null)" ] || fail "files are left"

"$root/deploy/quickstart" --yes --keep >"$dir/out" 2>&1 </dev/null || fail "--keep: status $?"
shows 'address +http://127.0.0.1:[0-9]+'
kept=$(sed -n 's/^  stop it  *kill \([0-9]*\);.*/\1/p' "$dir/out")
state=$(sed -n 's/.*export TIELINE_STATE=//p' "$dir/out")
[ "$(TIELINE_STATE=$state "$tieline" run -- echo kept 2>/dev/null)" = kept ] || fail "no broker goes on"
kill -TERM "$kept" || fail "the process that it names is not there"
until=$((SECONDS + 15))
while [ -n "$(processes)" ]; do
    [ "$SECONDS" -lt "$until" ] || fail "it does not stop as it says: $(processes)"
    sleep 0.2
done
kept=

"$root/deploy/quickstart" --help >"$dir/out" || fail "--help"
shows usage
"$root/deploy/quickstart" --nonsense >/dev/null 2>&1
[ $? -eq 2 ] || fail "an unknown option"
echo "as promised"
