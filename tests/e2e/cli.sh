#!/usr/bin/env bash
#
# cli.sh TIELINE - the command line against a real broker with members on this machine: exit statuses,
# output byte for byte over a killed broker, keys, interrupts, policies, tokens, drains.
#
# shellcheck disable=SC2016 # the jobs' own shells expand these
set -uo pipefail

tieline=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/tieline-cli.XXXXXX")
export TIELINE_STATE=$dir/state
unset TIELINE_URL TIELINE_TOKEN TIELINE_CA
broker=
failures=0

fail() {
    printf 'FAIL line %s: %s\n' "${BASH_LINENO[-2]}" "$*"
    failures=$((failures + 1))
}

# is WANTED GOT WHAT
is() {
    [ "$1" = "$2" ] || fail "$3: wanted '$1', got '$2'"
}

# has TEXT FILE: a line of FILE holds TEXT
has() {
    grep -qF -- "$1" "$2" || fail "'$1' is not in $(basename "$2"): $(head -c 600 "$2")"
}

wait_until() {
    local until=$((SECONDS + $1))
    shift
    while ! "$@"; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.1
    done
}

processes() {
    local file id
    for file in /proc/[0-9]*/cmdline; do
        id=${file#/proc/}
        id=${id%/cmdline}
        if [ "$id" != $$ ] && tr '\0' ' ' <"$file" 2>/dev/null | grep -qF -- "$dir"; then
            echo "$id"
        fi
    done 2>/dev/null
}

nothing_runs() {
    [ -z "$(processes)" ]
}

cleanup() {
    local id
    [ -z "$broker" ] || kill -TERM "$broker" 2>/dev/null
    wait_until 5 nothing_runs || for id in $(processes); do
        kill -KILL "$id" 2>/dev/null
    done
    rm -rf "$dir"
}
trap cleanup EXIT

members_answer() {
    [ "$("$tieline" places --patience 1ms --json 2>/dev/null | jq -r .state | grep -c '^ok$')" = 2 ]
}

serve() {
    "$tieline" serve --config "$dir/tieline.yaml" --state "$TIELINE_STATE" --listen 127.0.0.1:0 \
        >>"$dir/broker.log" 2>&1 &
    broker=$!
    wait_until 20 members_answer || {
        cat "$dir/broker.log"
        echo "FAIL: the broker does not answer"
        exit 1
    }
}

# run ARGUMENT...: output in out and err, status in rc
run() {
    "$tieline" run "$@" >"$dir/out" 2>"$dir/err"
    rc=$?
}

id_of_run() {
    sed -n 's/^tieline: \(submitted \)\{0,1\}\(j[0-9a-z]*\).*/\2/p' "$dir/err" | head -n 1
}

state_of() {
    "$tieline" show "$1" --json | jq -r .state
}

is_state() {
    [ "$(state_of "$1")" = "$2" ]
}

cat >"$dir/policy.yaml" <<'YAML'
budgets:
  cloud: {limit: 5 EUR, per: month}
bursts:
  overflow: {open: [{pending: 20}], close: {pending: 3, for: 5s}, budget: cloud}
routes:
  - name: own-first
    tiers:
      - {places: own}
      - {places: cloud, burst: overflow}
YAML
cat >"$dir/tieline.yaml" <<YAML
policy: $dir/policy.yaml
clusters:
  own: {adapter: local, shared: true, capacity: {cpus: 4, memory: 4GiB}}
  cloud:
    adapter: local
    kind: on-demand
    capacity: {cpus: 4, memory: 4GiB}
    nodes: {vm: {cpus: 2, memory: 2GiB, price: 1 EUR/h, at_most: 2}}
YAML

# ------------------------------------------------------------------------------- without a broker
"$tieline" help >"$dir/out" && has "policy check" "$dir/out"
"$tieline" lsit 2>"$dir/err"
is 2 $? "an unknown command"
has "did you mean 'list'?" "$dir/err"
"$tieline" policy 2>"$dir/err"
is 2 $? "half a command"
has "policy check" "$dir/err"
has "policy show" "$dir/err"
"$tieline" help token >"$dir/out"
is 0 $? "help for a group"
has "token revoke" "$dir/out"
"$tieline" docs clii 2>"$dir/err"
is 2 $? "an unknown page"
has "did you mean 'cli'?" "$dir/err"
"$tieline" help list >"$dir/out"
grep -q ' $' "$dir/out" && fail "a blank at the end of a line"
"$tieline" list --clas x 2>"$dir/err"
is 2 $? "an unknown option"
has "did you mean '--class'?" "$dir/err"
"$tieline" list 2>"$dir/err"
is 1 $? "no broker"
has "tieline serve" "$dir/err"
run --patience 1ms -- true
is 125 "$rc" "run without a broker"
TIELINE_TOKEN=x "$tieline" list --url http://192.0.2.1:7410 2>"$dir/err"
is 1 $? "a token over plain http"
has "https" "$dir/err"
"$tieline" policy check "$dir/policy.yaml" --config "$dir/tieline.yaml" >"$dir/out"
is 0 $? "a good policy"
sed 's/places: cloud/places: clowd/; s/for: 5s/for: 5/' "$dir/policy.yaml" >"$dir/bad.yaml"
"$tieline" policy check "$dir/bad.yaml" --config "$dir/tieline.yaml" >"$dir/out"
is 1 $? "a bad policy"
has "did you mean 'cloud'?" "$dir/out"
has "2 errors" "$dir/out"
"$tieline" docs cli >"$dir/out"
has "## tieline run" "$dir/out"
"$tieline" docs man >"$dir/out"
has ".TH TIELINE" "$dir/out"
"$tieline" docs cli 2>"$dir/err" | head -n 1 >/dev/null
is 0 "$(wc -c <"$dir/err")" "a reader that leaves early is no error to speak of"
"$tieline" help >/dev/full 2>"$dir/err"
is 1 $? "output that could not be written"

serve

# ---------------------------------------------------------------------------------- exit statuses
run -- sh -c 'echo out; echo err >&2'
is 0 "$rc" "success"
has out "$dir/out"
has err "$dir/out" # one log: the job's, on standard output
has SUCCEEDED "$dir/err"
run -- sh -c 'exit 3'
is 3 "$rc" "the program's own status"
run -- sh -c 'exit 126'
is 126 "$rc" "a status that means something else here"
run -- sh -c 'kill -9 $$'
is 137 "$rc" "a signal"
has "FAILED: signal 9" "$dir/err"
grep -q 'died of' "$dir/err" && fail "the signal is said twice"
run --limit 1s -- sleep 30
is 124 "$rc" "the time limit"
is 1 "$(grep -c 'FAILED: time limit after 1.*s at own$' "$dir/err")" "said once: $(tail -n 1 "$dir/err")"
run --run 'echo one' -- echo two
is 126 "$rc" "--run and a command"
has "both say what is run" "$dir/err"
run --cpus 100 -- true
is 126 "$rc" "impossible needs"
has "the nearest is" "$dir/err"
run --limit 10 -- true
is 126 "$rc" "a bad value"
has "tieline: --limit: " "$dir/err"
printf 'name: x\nrun: "true"\nneeds:\n  cpus: 1\n  memory: 8G\n' >"$dir/wrong.yaml"
run --job "$dir/wrong.yaml"
is 126 "$rc" "a bad value in a file"
has "wrong.yaml:5:" "$dir/err"
"$tieline" explain --job "$dir/wrong.yaml" 2>"$dir/err"
has "wrong.yaml:5:" "$dir/err"
"$tieline" submit "$dir/wrong.yaml" 2>"$dir/err"
has "wrong.yaml:5:" "$dir/err"
run --cpuss 1 -- true
is 126 "$rc" "an unknown option of run"
run --result "$dir/result" -- sh -c 'exit 9'
is 9 "$(jq .exit_code "$dir/result")" "the result file"
FROM_HERE=value run --env FROM_HERE --env OTHER=1 -- sh -c 'echo "$FROM_HERE $OTHER"'
is "value 1" "$(cat "$dir/out")" "variables"
run -- printf '\377\000\001x'
is "ff000178" "$(od -An -tx1 "$dir/out" | tr -d ' \n')" "bytes that are no text"

# ------------------------------------------------------------------------------------------ keys
run --key once -- sh -c "echo x >>$dir/once"
is 0 "$rc" "a first run"
run --key once -- sh -c "echo x >>$dir/once"
is 0 "$rc" "a second run with the key"
has "has succeeded" "$dir/err"
is 1 "$(wc -l <"$dir/once")" "a key that succeeded is not run again"
run --key once --fresh -- sh -c "echo x >>$dir/once"
is 2 "$(wc -l <"$dir/once")" "--fresh runs it again"
fresh=$(id_of_run)
run --key once -- sh -c "echo x >>$dir/once"
is 0 "$rc" "the plain key after --fresh"
is "$fresh" "$(id_of_run)" "it gives the newest result"
has "has succeeded" "$dir/err"
is 2 "$(wc -l <"$dir/once")" "and runs nothing"
run --key other -- sh -c 'exit 1'
first=$(id_of_run)
run --key other -- sh -c 'exit 1'
[ "$(id_of_run)" != "$first" ] || fail "a red job is run again"
is other.2 "$("$tieline" show "$(id_of_run)" --json | jq -r .key)" "its key"
"$tieline" run --key both -- sh -c 'sleep 3; echo shared' >"$dir/out1" 2>"$dir/err1" &
first=$!
wait_until 10 grep -q running "$dir/err1" || fail "the first of two does not run"
run --key both -- sh -c 'sleep 3; echo shared'
is 0 "$rc" "attached"
has "attached to it" "$dir/err"
is shared "$(cat "$dir/out")" "the output of a job that was attached to"
wait "$first"
is shared "$(cat "$dir/out1")" "and of the first"
run --key once -- sh -c 'echo another body'
is 126 "$rc" "a key with another body"

# ---------------------------------------------------------------------------------- interrupts
for pair in INT:130 TERM:143; do
    # A shell lets what it starts in the background ignore SIGINT; env puts that right.
    env --default-signal=INT "$tieline" run -- sleep 60 >"$dir/out" 2>"$dir/err" &
    first=$!
    wait_until 10 grep -q running "$dir/err" || fail "it does not run"
    kill "-${pair%:*}" "$first"
    wait "$first"
    is "${pair#*:}" $? "SIG${pair%:*}"
    wait_until 10 is_state "$(id_of_run)" cancelled || fail "the job is not cancelled"
done

# ------------------------------------------------- a broker that is killed while a job writes
"$tieline" run -- sh -c 'i=0; while [ $i -lt 40 ]; do seq $((i * 500)) $((i * 500 + 499)); i=$((i + 1)); sleep 0.1; done; exit 5' \
    >"$dir/out" 2>"$dir/err" &
first=$!
wait_until 10 test -s "$dir/out" || fail "no output comes"
kill -KILL "$broker"
wait "$broker" 2>/dev/null
sleep 1
serve
wait "$first"
is 5 $? "the status of a job that outlived its broker"
has "no answer from" "$dir/err"
has "the broker is back" "$dir/err"
seq 0 19999 >"$dir/wanted"
cmp "$dir/out" "$dir/wanted" || fail "the output is not the same byte for byte"

# ---------------------------------------------------------------------- submit, wait, logs, ...
cat >"$dir/jobs.yaml" <<'YAML'
- {name: one, run: echo one, class: batch}
- {name: two, run: echo two; exit 2, class: training, team: media, labels: {a: b}}
YAML
"$tieline" submit "$dir/jobs.yaml" --memory 64MiB >"$dir/ids"
is 0 $? "submit"
is 2 "$(wc -l <"$dir/ids")" "ids"
# shellcheck disable=SC2046
"$tieline" wait $(cat "$dir/ids") >"$dir/out"
is 2 $? "wait gives the first status that is not 0"
two=$(sed -n 2p "$dir/ids")
is two "$("$tieline" logs "$two")" "logs"
is two "$("$tieline" logs -f "${two: -5}")" "logs -f, by the end of the id"
"$tieline" submit --key twice "$dir/jobs.yaml" >"$dir/ids"
"$tieline" submit --key twice "$dir/jobs.yaml" >"$dir/ids2"
cmp "$dir/ids" "$dir/ids2" || fail "a bulk that is sent again gives the same jobs"
printf '{"run":"true"}\n{"run":"true"}\n' | "$tieline" submit - >"$dir/ids"
is 2 "$(wc -l <"$dir/ids")" "NDJSON on standard input"
printf '{"run":"true"}\n{"run":"true","needs":{"cpus":1000}}\n{"run":"true"}\n' >"$dir/three.ndjson"
"$tieline" submit "$dir/three.ndjson" >"$dir/ids" 2>"$dir/err"
is 1 $? "some of several jobs are refused"
has "2 of 3 submitted" "$dir/err"
has "three.ndjson:2:" "$dir/err"
is 2 "$(wc -l <"$dir/ids")" "the ids of those that were taken"
for command in show wait logs cancel explain; do
    "$tieline" "$command" '' >"$dir/out" 2>"$dir/err" && fail "$command of an empty id"
    has "an empty id" "$dir/err"
done
"$tieline" submit - <<<'{"run": "true", "nedes": {}}' 2>"$dir/err"
is 126 $? "a job with an unknown key"
has "did you mean 'needs'?" "$dir/err"
"$tieline" submit --render own -- echo rendered >"$dir/out" 2>"$dir/err"
has rendered "$dir/out"
is 0 "$(wc -l <"$dir/err")" "a place that can take it needs no warning"
"$tieline" submit --render own --forbid places=own -- echo rendered >"$dir/out" 2>"$dir/err"
has "it would not go to own: " "$dir/err"
is 0 "$("$tieline" list --name echo --json | wc -l)" "--render submits nothing"
"$tieline" list --team media --json | jq -e 'select(.team != "media")' >/dev/null && fail "list --team"
"$tieline" list >"$dir/out"
has "WHY" "$dir/out"
grep -q $'\033' "$dir/out" && fail "colour where there is no terminal"
"$tieline" list -n 5 --json | jq -es 'length == 5' >/dev/null || fail "list --json -n 5"
"$tieline" explain "$two" >"$dir/out"
has "FAILED at own, attempt 1, exit 2" "$dir/out"
has "> own" "$dir/out"
"$tieline" explain --job "$dir/jobs.yaml" >"$dir/out"
has "WOULD GO to own now" "$dir/out"
"$tieline" explain --cpus 3 -- sleep 1 >"$dir/out"
has "WOULD GO to own now" "$dir/out"
id=$("$tieline" submit -- sleep 60)
wait_until 10 is_state "$id" running || fail "it does not run"
is "$id" "$("$tieline" list -s running --json | jq -r .id)" "list by the word that is shown"
is "" "$("$tieline" list -s placed --json | jq -r .id)" "and nothing else"
"$tieline" list >"$dir/out"
is 0 "$(awk 'length($0) > 104' "$dir/out" | wc -l)" "lines that fit"
"$tieline" cancel "$id" >/dev/null || fail "cancel"
"$tieline" wait "$id" >"$dir/out"
is 125 $? "wait for a job that was cancelled"
"$tieline" show zzzz9999 2>"$dir/err"
is 1 $? "a job that is not there"

# ---------------------------------------------------------------------------- drain and policies
"$tieline" drain own --note firmware >/dev/null || fail "drain"
"$tieline" explain -- true >"$dir/out"
has "WOULD WAIT" "$dir/out"
has firmware "$dir/out"
"$tieline" places >"$dir/out"
has firmware "$dir/out"
"$tieline" drain onw 2>"$dir/err"
is 1 $? "a place that is not there"
has "did you mean 'own'?" "$dir/err"
"$tieline" undrain own >/dev/null || fail "undrain"
hash=$("$tieline" policy show --json | jq -r .hash)
"$tieline" policy set "$dir/bad.yaml" 2>"$dir/err"
is 1 $? "a bad policy over the API"
is "$hash" "$("$tieline" policy show --json | jq -r .hash)" "it changes nothing"
{
    cat "$dir/policy.yaml"
    echo "expect:"
    echo "  - {job: {class: batch}, goes_to: cloud}"
} >"$dir/unmet.yaml"
for option in --dry-run --json; do # --json: as it is, but for the answer
    "$tieline" policy set "$option" "$dir/unmet.yaml" >/dev/null 2>"$dir/err"
    is 1 $? "a policy that fails its own test, $option"
    has "an expectation fails: " "$dir/err"
    has "unmet.yaml:$(wc -l <"$dir/unmet.yaml"):" "$dir/err"
    is "$hash" "$("$tieline" policy show --json | jq -r .hash)" "it changes nothing"
done
cp "$dir/policy.yaml" "$dir/good.yaml"
cp "$dir/unmet.yaml" "$dir/policy.yaml"
kill -HUP "$broker"
wait_until 5 grep -q 'an expectation fails: ' "$dir/broker.log" || fail "SIGHUP with a failing expectation"
is "$hash" "$("$tieline" policy show --json | jq -r .hash)" "it changes nothing"
cp "$dir/bad.yaml" "$dir/policy.yaml"
kill -HUP "$broker"
refused_twice() { [ "$(grep -c 'the policy was not taken' "$dir/broker.log")" -eq 2 ]; }
wait_until 5 refused_twice || fail "SIGHUP with a bad policy"
is "$hash" "$("$tieline" policy show --json | jq -r .hash)" "it changes nothing either"
sed 's/5 EUR/6 EUR/' "$dir/good.yaml" >"$dir/policy.yaml"
kill -HUP "$broker"
is_new() { [ "$("$tieline" policy show --json | jq -r .hash)" != "$hash" ]; }
wait_until 5 is_new || fail "SIGHUP with a new policy"
"$tieline" bursts >"$dir/out"
has "6 EUR" "$dir/out"
"$tieline" policy set --dry-run "$dir/good.yaml" >/dev/null || fail "policy set --dry-run"
"$tieline" policy set "$dir/good.yaml" >/dev/null || fail "policy set"
is "$hash" "$("$tieline" policy show --json | jq -r .hash)" "the first policy is live again"

# ------------------------------------------------------------------- what is sent and what is described
curl -s --unix-socket "$TIELINE_STATE/tieline.sock" http://localhost/openapi.json >"$dir/openapi.json"
# described SCHEMA JSON: no field is sent that the schema does not name
described() {
    local extra
    extra=$(jq -c --arg name "$1" --slurpfile sent "$2" \
        '($sent | map(keys) | add) - (.components.schemas[$name].properties | keys)' "$dir/openapi.json")
    is "[]" "$extra" "fields of $1 that are not described"
}
"$tieline" show "$two" --json >"$dir/out"
described Job "$dir/out"
jq '.attempts[]' "$dir/out" >"$dir/part" && described Attempt "$dir/part"
"$tieline" explain "$two" --json >"$dir/out"
described Explanation "$dir/out"
jq '.decision' "$dir/out" >"$dir/part" && described Decision "$dir/part"
jq '.decision.places[]' "$dir/out" >"$dir/part" && described Verdict "$dir/part"
jq '.decision.facts[]' "$dir/out" >"$dir/part" && described Fact "$dir/part"
"$tieline" places --json >"$dir/out"
described Place "$dir/out"
curl -s --unix-socket "$TIELINE_STATE/tieline.sock" http://localhost/v1/bursts >"$dir/out"
described BurstList "$dir/out"
jq '.bursts[]' "$dir/out" >"$dir/part" && described Burst "$dir/part"
jq '.budgets[]' "$dir/out" >"$dir/part" && described Budget "$dir/part"

# ----------------------------------------------------------------------------------- a broker that hangs
kill -STOP "$broker"
begun=$SECONDS
"$tieline" list --patience 1ms 2>"$dir/err"
is 1 $? "a broker that hangs"
[ $((SECONDS - begun)) -lt 20 ] || fail "it was waited for $((SECONDS - begun)) s"
kill -CONT "$broker"

# ----------------------------------------------------------------------------------------- tokens
url=$(sed -n 's/.* serves at \(http[^ ]*\) and .*/\1/p' "$dir/broker.log" | tail -n 1)
token=$("$tieline" token add alice --team media --role submit 2>/dev/null)
grep -q "$token" "$TIELINE_STATE/tokens" && fail "the token itself is in the file"
submits_as_alice() {
    id=$(TIELINE_TOKEN=$token "$tieline" submit --url "$url" --patience 1ms -- true 2>/dev/null)
}
wait_until 10 submits_as_alice || fail "a token that was added is taken"
TIELINE_TOKEN=$token "$tieline" submit --url "$url" --require places=cloud -- true 2>"$dir/err"
is 126 $? "a place that is not shared"
has "no place could ever run this" "$dir/err"
is "alice media" "$("$tieline" show "$id" --json | jq -r '.owner + " " + .team')" "who the token says"
"$tieline" list --url "$url" --json >/dev/null || fail "the local token is found"
TIELINE_URL=http://127.0.0.1:1 "$tieline" list --state-dir "$TIELINE_STATE" --json >/dev/null ||
    fail "an option counts for more than TIELINE_URL"
printf 'state: %s\npolicy: %s\nclusters: {own: {adapter: local}}\n' "${TIELINE_STATE##*/}" policy.yaml >"$dir/here.yaml"
(cd / && TIELINE_URL=http://127.0.0.1:1 TIELINE_STATE=$dir/elsewhere "$tieline" list --config "$dir/here.yaml" --json) \
    >/dev/null || fail "--config counts for more than the environment, and its paths from its folder"
is 200 "$(curl -s -o /dev/null -w '%{http_code}' -X POST --unix-socket "$TIELINE_STATE/tieline.sock" \
    http://localhost/v1/places/own/drain)" "a drain without a body"
"$tieline" undrain own >/dev/null || fail "undrain"
TIELINE_TOKEN=wrong "$tieline" list --url "$url" 2>/dev/null && fail "a wrong token"
"$tieline" token revoke "$("$tieline" token list --json | jq -r .id)" >/dev/null || fail "revoke"
is_revoked() { ! TIELINE_TOKEN=$token "$tieline" list --url "$url" >/dev/null 2>&1; }
wait_until 10 is_revoked || fail "a token that was revoked counts"

# ------------------------------------------------------------------------------------------ stop
"$tieline" serve --config "$dir/tieline.yaml" --state "$TIELINE_STATE" --listen 127.0.0.1:0 2>"$dir/err"
is 1 $? "a second broker on the same state"
"$tieline" submit -- sleep 120 >"$dir/ids"
wait_until 10 is_state "$(cat "$dir/ids")" running || fail "it does not run"
begun=$SECONDS
kill -TERM "$broker"
wait "$broker"
is 0 $? "the status of an orderly stop"
[ $((SECONDS - begun)) -lt 10 ] || fail "a stop takes $((SECONDS - begun)) s"
serve
is_state "$(cat "$dir/ids")" running || fail "a job does not notice a restart"
"$tieline" cancel "$(cat "$dir/ids")" >/dev/null
"$tieline" wait "$(cat "$dir/ids")" >/dev/null
kill -TERM "$broker"
wait "$broker"
broker=
wait_until 10 nothing_runs || fail "processes are left: $(processes | tr '\n' ' ')"

grep -nE 'AddressSanitizer|runtime error|LeakSanitizer' "$dir/broker.log" && fail "the broker's sanitizers"
if [ "$failures" -ne 0 ]; then
    echo "--- the broker:"
    tail -n 40 "$dir/broker.log"
    echo "$failures failed"
    exit 1
fi
echo "all as expected"
