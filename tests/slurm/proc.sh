# shellcheck shell=bash
# proc.sh - start, recognise and end the daemons of one test cluster.
#
# A pid alone can be re-used, so each daemon is remembered as "pid starttime" in
# $DIR/pids/NAME. A signal goes only to a process whose start time still matches.
# Sourced by `cluster`; expects DIR.

# stat_field PID N: field N of /proc/PID/stat, counted from the state (1 = state).
# The command name may hold blanks, so the text up to the last ')' is cut off.
stat_field()
{
    local line fields
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -ra fields <<<"${line##*) }"
    printf '%s\n' "${fields[$2 - 1]}"
}

start_time() { stat_field "$1" 20; }

# proc_pid NAME: prints the pid when the daemon lives; fails when it is gone.
proc_pid()
{
    local pid born
    { read -r pid born <"$DIR/pids/$1"; } 2>/dev/null || return 1
    [[ $(start_time "$pid") == "$born" ]] || return 1
    [[ $(stat_field "$pid" 1) != [ZX] ]] || return 1
    printf '%s\n' "$pid"
}

# proc_names PATTERN: names of the daemons that were started and not stopped.
proc_names()
{
    local f
    for f in "$DIR"/pids/$1; do
        [[ ! -e $f ]] || printf '%s\n' "${f##*/}"
    done
}

# proc_start NAME COMMAND...: a session of its own, so that an interrupt at the
# terminal of the tests does not reach it; no inherited descriptors, so that no
# pipe of the caller stays open.
proc_start()
{
    local name=$1 fd pid
    shift
    (
        for fd in /proc/self/fd/*; do
            fd=${fd##*/}
            ((fd <= 2 || fd == 255)) || eval "exec $fd>&-"
        done
        exec setsid "$@"
    ) </dev/null >>"$DIR/log/$name.out" 2>&1 &
    pid=$!
    printf '%s %s\n' "$pid" "$(start_time "$pid")" >"$DIR/pids/$name"
    disown "$pid"
}

proc_signal()
{
    local pid
    pid=$(proc_pid "$2") || return 0
    kill -s "$1" "$pid" 2>/dev/null || return 0
}

# proc_end SIGNAL SECONDS NAME...: signals all, waits until all are gone. What is
# still there after SECONDS is killed. A stopped process must be woken to die.
proc_end()
{
    local signal=$1 patience=$2 name
    shift 2
    for name; do
        proc_signal "$signal" "$name"
        proc_signal CONT "$name"
    done
    for name; do
        if ! wait_until "$patience" proc_gone "$name"; then
            proc_signal KILL "$name"
            wait_until 10 proc_gone "$name" || die "$name does not end"
        fi
        rm -f "$DIR/pids/$name"
    done
}

proc_gone() { ! proc_pid "$1" >/dev/null; }

# wait_until SECONDS COMMAND...: asks until the command succeeds.
wait_until()
{
    local end=$((SECONDS + $1 + 1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.03
    done
}

# Job steps outlive their slurmd. Jobs are known by their environment; SLURM_CONF
# alone would also hit a caller that exported it, so SLURM_JOB_ID must be there too.
# A step daemon writes its title over its environment: until then our mark tells,
# afterwards the socket on which it listens in the spool directory.
step_pids()
{
    local f
    {
        grep -slzxF "TIELINE_TEST_SLURMD=$DIR" /proc/[0-9]*/environ || true
        for f in $(grep -slzxF "SLURM_CONF=$DIR/slurm.conf" /proc/[0-9]*/environ || true); do
            grep -slz '^SLURM_JOB_ID=' "$f" || true
        done
        step_sockets
    } | cut -d/ -f3 | sort -u
}

# Prints /proc/PID/fd/N for each descriptor that is such a socket.
step_sockets()
{
    local inodes
    inodes=$(awk -v spool="$DIR/spool/" 'index($NF, spool) == 1 { print $7 }' /proc/net/unix)
    [[ -n $inodes ]] || return 0
    find /proc/[0-9]*/fd -lname 'socket:*' -printf '%p %l\n' 2>/dev/null |
        awk -v inodes="$inodes" '
            BEGIN { n = split(inodes, list); while (n) wanted["socket:[" list[n--] "]"] = 1 }
            $2 in wanted { print $1 }' || true
}

# Called after the slurmds are gone: kills what they left, children included.
steps_end()
{
    local end=$((SECONDS + 10)) left children
    while mapfile -t left < <(step_pids) && ((${#left[@]})); do
        mapfile -t children < <(descendants "${left[@]}")
        kill -s KILL "${left[@]}" "${children[@]}" 2>/dev/null || true
        ((SECONDS < end)) || die "job processes do not end: ${left[*]}"
        sleep 0.03
    done
}

# descendants PID...: children, their children and so on.
descendants()
{
    local -A family=()
    local pid more=1 f
    for pid; do family[$pid]=1; done
    while ((more)); do
        more=0
        for f in /proc/[0-9]*; do
            pid=${f#/proc/}
            [[ -z ${family[$pid]-} ]] || continue
            [[ -n ${family[$(stat_field "$pid" 2 || echo 0)]-} ]] || continue
            family[$pid]=1 more=1
            printf '%s\n' "$pid"
        done
    done
}
