# Comes after prelude.sh in the cases of tune/.
# track NAME: every value that can be written and every task's scheduling, to NAME in the share.
# sums NAME: every file of /etc and /boot with its bytes' digest, permissions and owner.
# odd: values as no program would leave them.
# killed CALLS COMMAND...: runs it again and again, killed before its first, second, third ... of
# those system calls, undoes, compares; to rounds.txt.

# /sys/kernel/slab, debug and tracing are left out but for the scheduler's: thousands of files that
# nobody tunes. Which tasks a group has is not tracked (each task is, by itself), nor what the
# scheduler learns, nor that the kernel ever warned: nothing takes that back.
tracked_files() {
    {
        find /proc/sys /sys/devices /sys/module /sys/kernel/mm /sys/kernel/debug/sched \
            /sys/fs/cgroup /proc/irq /sys/bus/workqueue -type f -perm -600
        ls /sys/kernel/rcu_* /sys/kernel/debug/sched/features
    } 2>/dev/null | grep -v -e /config$ -e /resource -e /rom$ -e /uevent$ \
        -e /proc/sys/kernel/random -e /proc/sys/kernel/tainted \
        -e ns_last_pid -e '/cgroup[.]procs$' -e '/cgroup[.]threads$' -e max_newidle_lb_cost \
        -e /proc/sys/fs/ -e memory.reclaim -e /pressure -e '[.]pressure$' |
        sort -u
}

# Field 2 may have spaces, and a kworker's changes with its work.
tasks() {
    sed -n 's/^\([0-9]*\) (.*) /\1 /p' /proc/[0-9]*/task/[0-9]*/stat 2>/dev/null | awk '{
        print "task " $1 " started " $21 "\tpolicy " $40 " priority " $39 " nice " $18 }'
    # A thread of an interrupt follows its interrupt, when that comes the next time; a worker or
    # rescuer of a workqueue (PF_WQ_WORKER, 0x20) the pool that it works for.
    workers=$(sed -n 's/^\([0-9]*\) (.*) /\1 /p' /proc/[0-9]*/stat 2>/dev/null |
        awk 'int($8 / 32) % 2 { printf " %s ", $1 }')
    sed -n 's/^Name:\t/name /p; s/^Pid:\t/task /p; s/^Cpus_allowed_list:\t/cpus /p' \
        /proc/[0-9]*/task/[0-9]*/status 2>/dev/null | awk -v workers="$workers" '
        /^name/ { follows = $2 ~ /^irq\// }
        /^task/ { task = $0; follows = follows || index(workers, " " $2 " ") }
        /^cpus/ && !follows { print task "\t" $0 }'
}

# PATH <tab> LINE for each line of each file of a list. (The shell's own `read` takes a byte at a
# time, and a sysctl ends after the first.)
lines_of() {
    xargs grep -asH "" <$1 | awk -v list=$1 '
        BEGIN { while ((getline path <list) > 0) known[path] = 1 }
        {
            for (at = 1; at <= length($0); at++)
                if (substr($0, at, 1) == ":" && (substr($0, 1, at - 1) in known)) {
                    print substr($0, 1, at - 1) "\t" substr($0, at + 1)
                    next
                }
        }'
}

values() {
    [ -s /tmp/tracked ] || tracked_files >/tmp/tracked
    lines_of /tmp/tracked
}

track() {
    { values; tasks; } >/tmp/track.now
    cp /tmp/track.now /host/$1
}

sums() {
    find /etc /boot -printf '%p %y %m %U %G %l\n' | sort >/tmp/sums.now
    find /etc /boot -type f -exec sha256sum {} + | sort -k 2 >>/tmp/sums.now
    cp /tmp/sums.now /host/$1
}

# set VALUE FILE: where the kernel has the file.
set_value() { [ ! -e $2 ] || echo "$1" >$2; }

odd() {
    set_value 900000 /proc/sys/kernel/sched_rt_runtime_us
    set_value 7 /proc/sys/vm/stat_interval
    set_value 13 /proc/sys/vm/swappiness
    set_value 11 /proc/sys/vm/dirty_background_ratio
    set_value 33 /proc/sys/kernel/hung_task_timeout_secs
    set_value 77 /proc/sys/kernel/sched_rr_timeslice_ms
    set_value 1 /proc/sys/kernel/timer_migration
    set_value 1 /proc/sys/kernel/watchdog
    set_value 17 /proc/sys/kernel/watchdog_thresh
    set_value madvise /sys/kernel/mm/transparent_hugepage/enabled
    set_value 3 /sys/devices/virtual/workqueue/cpumask
    for device in /sys/bus/pci/devices/*/power/control; do set_value auto $device; done
}

# Comes before each round.
prepare() { :; }

killed() {
    calls=$1
    shift
    # What changes by itself is found out before and left out.
    values >/tmp/first
    sleep 1
    values >/tmp/second
    diff /tmp/first /tmp/second | sed -n 's|^[-+<>] *\(/[^\t]*\)\t.*|\1|p' | sort -u >/tmp/own
    echo none >>/tmp/own
    grep -vxF -f /tmp/own /tmp/tracked >/tmp/kept
    cp /tmp/own /tmp/kept /host/
    lines_of /tmp/kept >/tmp/before
    rounds=0
    differ=0
    failed=0
    at=1
    while :; do
        prepare
        strace -f -qq -o /dev/null -e trace=$calls -e inject=$calls:signal=KILL:when=$at "$@" \
            >/tmp/killed.out 2>&1
        how=$?
        if ! rtproof tune undo >/tmp/undone.out 2>&1; then
            failed=$((failed + 1))
            cp /tmp/undone.out /host/undo-failed.$at
        fi
        lines_of /tmp/kept >/tmp/after
        if ! cmp -s /tmp/before /tmp/after; then
            differ=$((differ + 1))
            diff /tmp/before /tmp/after >/host/differs.$at
        fi
        [ $how = 137 ] || break
        rounds=$((rounds + 1))
        at=$((at + ${STRIDE:-1}))
    done
    echo "rounds $rounds, undo failed $failed, rounds in which values differ $differ, last $how" |
        tee /host/rounds.txt
    cp /tmp/killed.out /host/last.txt
}
