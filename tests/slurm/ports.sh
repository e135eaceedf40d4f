# shellcheck shell=bash
# ports.sh - free TCP ports for several test clusters on one host.
#
# A port is reserved by a file that names the cluster's directory, because a
# daemon that a test has killed must find its port again. Ports lie below the
# range from which the kernel takes ports for outgoing connections.
# Sourced by `cluster`; expects DIR.

PORT_LOW=20000
PORT_COUNT=12000
PORT_LOCKS=/tmp/tieline-slurm-ports

port_is_bound()
{
    local hex tables=(/proc/net/tcp)
    [[ ! -r /proc/net/tcp6 ]] || tables+=(/proc/net/tcp6)
    hex=$(printf ':%04X' "$1")
    awk -v hex="$hex" 'substr($2, length($2) - 4) == hex { found = 1 } END { exit !found }' \
        "${tables[@]}"
}

# A reservation whose cluster has no directory any more is left over.
port_lock()
{
    local lock=$PORT_LOCKS/$1 owner
    if [[ -e $lock ]]; then
        owner=$(<"$lock")
        [[ -n $owner && ! -d $owner/pids ]] || return 1
        rm -f "$lock"
    fi
    (set -C; printf '%s\n' "$DIR" >"$lock") 2>/dev/null
}

# port_take VARIABLE
port_take()
{
    local candidate try
    for ((try = 0; try < 1000; try++)); do
        candidate=$((PORT_LOW + (RANDOM * 32768 + RANDOM) % PORT_COUNT))
        port_lock "$candidate" || continue
        if port_is_bound "$candidate"; then
            rm -f "$PORT_LOCKS/$candidate"
            continue
        fi
        printf -v "$1" '%s' "$candidate"
        return
    done
    die "no free port between $PORT_LOW and $((PORT_LOW + PORT_COUNT))"
}

ports_open()
{
    (umask 077; mkdir -p "$PORT_LOCKS")
    [[ -O $PORT_LOCKS ]] || die "$PORT_LOCKS belongs to somebody else"
}

ports_release()
{
    local lock
    for lock in "$PORT_LOCKS"/[0-9]*; do
        [[ -e $lock && $(<"$lock") == "$DIR" ]] || continue
        rm -f "$lock"
    done
}
