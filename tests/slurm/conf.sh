# shellcheck shell=bash
# conf.sh - slurm.conf of a test cluster that needs no munge, cgroups or DNS.
#
# Sourced by `cluster`; expects DIR, NAME, PARTITIONS, CPUS, MEMORY, MIN_JOB_AGE,
# EXTRA. Sets NODES and NODE_COUNT.

# The scheduler looks at once after each submit and end, and the backfill each
# second; nothing is collected or held back for efficiency, as tests wait for it.
# Without EpilogMsgTime=0 each end of a job costs 2 ms of controller time. Without an
# Epilog a slurmd reports the end in a way that starts the next job only when the
# controller's one-second timer fires: 12 short jobs/s on 8 CPUs instead of 60.
conf_common()
{
    cat <<EOF
ClusterName=$NAME
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$CTLD_PORT
SlurmUser=$SLURM_USER
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=$DIR/jwt.key
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
SlurmctldPidFile=$DIR/run/slurmctld.pid
SlurmdPidFile=$DIR/run/slurmd.%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=0
InactiveLimit=0
KillWait=2
CompleteWait=0
EpilogMsgTime=0
Epilog=/bin/true
MinJobAge=$MIN_JOB_AGE
MaxJobCount=50000
PriorityType=priority/basic
SchedulerType=sched/backfill
SchedulerParameters=$SCHEDULER
EOF
}

SCHEDULER=sched_interval=1,sched_min_interval=10000,batch_sched_delay=0
SCHEDULER+=,default_queue_depth=1000,bf_interval=1

# Nodes of one partition: its name, number of nodes, CPUs of each.
conf_partition()
{
    local partition=$1 count=$2 cpus=$3 default=$4 nodes="" port i
    for ((i = 0; i < count; i++)); do
        NODE_COUNT=$((NODE_COUNT + 1))
        port_take port
        printf 'NodeName=n%d NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d' "$NODE_COUNT" "$port"
        printf ' CPUs=%d RealMemory=%d State=UNKNOWN\n' "$cpus" "$MEMORY"
        nodes+=${nodes:+,}n$NODE_COUNT
    done
    printf 'PartitionName=%s Nodes=%s Default=%s MaxTime=INFINITE State=UP\n' \
        "$partition" "$nodes" "$default"
}

conf_write()
{
    local part default=YES
    NODE_COUNT=0
    {
        conf_common
        for part in ${PARTITIONS//,/ }; do
            [[ $part =~ ^([A-Za-z][A-Za-z0-9_-]*)(:([1-9][0-9]{0,3})(x([1-9][0-9]{0,3}))?)?$ ]] ||
                die "partition '$part': expected NAME, NAME:NODES or NAME:NODESxCPUS"
            conf_partition "${BASH_REMATCH[1]}" "${BASH_REMATCH[3]:-$NODES}" \
                "${BASH_REMATCH[5]:-$CPUS}" "$default"
            default=NO
        done
        for part in "${EXTRA[@]}"; do
            printf '%s\n' "$part"
        done
    } >"$DIR/slurm.conf"
}
