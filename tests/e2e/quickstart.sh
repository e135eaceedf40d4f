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
state=$(sed -n 's/.*export TIELINE_STATE=//p' "$dir/out")
kept=$(cat "$state/quickstart.pid") || fail "no process is named"
exports=$(sed -n 's/.*\(export [A-Z_]*=\)/\1/p' "$dir/out")
stop=$(sed -n 's/^  stop it  *//p' "$dir/out")
# The lines as a user copies them.
[ "$(cd / && bash -c "$exports"$'\n''tieline run -- echo kept' 2>/dev/null)" = kept ] || fail "no broker goes on"
TIELINE_STATE=$state "$tieline" submit --cpus 1 -- sleep 600 >/dev/null || fail "submit"
TIELINE_STATE=$state "$tieline" submit --cpus 4 -- sleep 600 >/dev/null || fail "submit"
bash -c "$stop" >"$dir/stopped" 2>&1 || fail "the stop line: $(cat "$dir/stopped")"
grep -q 'no job, no process and no file' "$dir/stopped" || fail "the stop line: $(cat "$dir/stopped")"
[ -z "$(processes)" ] || fail "processes are left: $(processes)"
[ ! -e "$state" ] || fail "files are left"
kept=
"$root/deploy/quickstart" --stop "$dir" >/dev/null 2>&1 && fail "--stop of a directory that is not its own"
[ -d "$dir" ] || fail "--stop removed what is not its own"

setsid env --default-signal=INT "$root/deploy/quickstart" --yes >"$dir/out" 2>&1 </dev/null &
kept=$!
until=$((SECONDS + 30))
while ! grep -q 'waiting here' "$dir/out"; do
    [ "$SECONDS" -lt "$until" ] || fail "it shows no progress"
    sleep 0.1
done
kill -INT "$kept"
wait "$kept"
[ $? -eq 130 ] || fail "the status of an interrupt"
kept=
shows 'interrupted, cleaning up'
grep -q 'last lines of the broker' "$dir/out" && fail "an interrupt shows the broker's log"
[ -z "$(processes)" ] || fail "processes are left after an interrupt: $(processes)"

"$root/deploy/quickstart" --help >"$dir/out" || fail "--help"
shows usage
"$root/deploy/quickstart" --nonsense >/dev/null 2>&1
[ $? -eq 2 ] || fail "an unknown option"
echo "as promised"
