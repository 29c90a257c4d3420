# start: sets what is listed below, in this order; stop: puts back what start found, where it is
# still as start left it; check: says what is not as listed. RTPROOF_ROOT is put before every path.
set -u
root=${RTPROOF_ROOT:-}
saved=$root/run/rtproof-tuning.saved
mode=${1:-}
failed=0
us=$(printf '\037')

say() { echo "rtproof-tuning: $*" >&2; }
fail() { say "$*"; failed=1; }

# look FILE: its first line into $now.
look() {
    now=
    read -r now 2>/dev/null <"$1" || [ -n "$now" ]
}

# is EXPRESSION TEXT: whether it is as wanted; with ! in front, whether it is not.
is() {
    case $1 in
    !*) ! printf '%s\n' "$2" | grep -Eq -e "${1#!}" ;;
    *) printf '%s\n' "$2" | grep -Eq -e "$1" ;;
    esac
}

# keep KIND TARGET OLD OURS: written down before anything is changed.
keep() { printf "%s$us%s$us%s$us%s\n" "$1" "$2" "$3" "$4" >>"$saved"; }

# put VALUE EXPRESSION REVERSE FILE...: REVERSE undoes it where the old text does not.
put() {
    value=$1 expression=$2 reverse=$3
    shift 3
    for file in "$@"; do
        if ! look "$file" && [ ! -e "$file" ]; then
            say "$file is not there"
            continue
        fi
        [ "$now" = "$value" ] || is "$expression" "$now" && continue
        if [ "$mode" = check ]; then
            fail "$file is $now, not $value"
            continue
        fi
        case $now in *\[*\]*) now=${now#*\[} now=${now%%\]*} ;; esac
        keep value "$file" "${reverse:-$now}" "$expression"
        printf '%s\n' "$value" 2>/dev/null >"$file" || fail "$file: the kernel refuses $value"
        look "$file"
        [ "$now" = "$value" ] || is "$expression" "$now" ||
            fail "$file is $now after writing $value"
    done
}

# folder PATH
folder() {
    [ -d "$1" ] && return
    if [ "$mode" = check ]; then
        fail "$1 is not there"
        return
    fi
    keep folder "$1" '' ''
    mkdir -p "$1" || fail "$1 cannot be made"
}

# irq ACTIONS HWIRQ CPUS EXPRESSION: the interrupt of that name; of several the one with the number
# that its controller gives it, all of them where the plan does not know that number.
irq() {
    numbers=
    for dir in "$root"/sys/kernel/irq/*; do
        look "$dir/actions" && [ "$now" = "$1" ] && numbers="$numbers ${dir##*/}"
    done
    case $numbers in
    ' '*' '*)
        same=$numbers numbers=
        for number in $same; do
            [ -z "$2" ] || { look "$root/sys/kernel/irq/$number/hwirq" && [ "$now" = "$2" ]; } ||
                continue
            numbers="$numbers $number"
        done
        ;;
    esac
    [ -n "$numbers" ] || say "no interrupt $1 ($2) on this machine"
    for number in $numbers; do
        put "$3" "$4" '' "$root/proc/irq/$number/smp_affinity_list"
    done
}

# scheduled PID: policy, priority, mask of its CPUs.
scheduled() {
    chrt -p "$1" | sed -n 's/.*policy: SCHED_\([A-Z]*\).*/\1/p; s/.*priority: //p' |
        tr 'A-Z\n' 'a-z '
    taskset -p "$1" | sed 's/.*: *//'
}

# thread PATTERN POLICY PRIORITY CPUS: kernel threads with that name; - leaves as it is.
thread() {
    found=
    for dir in "$root"/proc/[0-9]*; do
        read -r name 2>/dev/null <"$dir/comm" || continue
        # The name is a pattern.
        # shellcheck disable=SC2254
        case $name in $1) ;; *) continue ;; esac
        # Kernel threads have no command line.
        [ -z "$(tr -d '\0' 2>/dev/null <"$dir/cmdline")" ] || continue
        found=1 pid=${dir##*/}
        begun=$(sed 's/.*) //' "$dir/stat" | cut -d ' ' -f 20)
        old=$(scheduled "$pid")
        set -- "$1" "$2" "$3" "$4" $old
        now_cpus=$(taskset -cp "$pid" | sed 's/.*: *//')
        policy=$5 priority=$6 cpus=$now_cpus
        [ "$2" = - ] || policy=$2 priority=$3
        [ "$4" = - ] || cpus=$4
        [ "$policy $priority $cpus" = "$5 $6 $now_cpus" ] && continue
        if [ "$mode" = check ]; then
            fail "$name is $5 $6 on CPUs $now_cpus, not $policy $priority on CPUs $cpus"
            continue
        fi
        keep thread "$pid $begun" "$old" "$policy $priority"
        [ "$2" = - ] || chrt "--$2" -p "$3" "$pid" || fail "$name: $2 $3 is refused"
        [ "$4" = - ] || taskset -cp "$4" "$pid" >/dev/null || fail "$name: CPUs $4 are refused"
    done
    [ -n "$found" ] || say "no kernel thread $1 on this machine"
}

# property UNIT PROPERTY VALUE
property() {
    old=$(systemctl show --property="$2" --value "$1")
    [ "$old" = "$3" ] && return
    if [ "$mode" = check ]; then
        fail "$1: $2 is $old, not $3"
        return
    fi
    keep property "$1 $2" "$old" "$3"
    systemctl set-property --runtime "$1" "$2=$3" || fail "$1: $2=$3 is refused"
}

# back KIND TARGET OLD OURS
back() {
    case $1 in
    value)
        [ -e "$2" ] || return 0
        look "$2"
        if is "$4" "$now"; then
            printf '%s\n' "$3" 2>/dev/null >"$2" || fail "$2: the kernel refuses $3"
        else
            say "$2 is $now, which is not ours: left alone"
        fi
        ;;
    folder) rmdir "$2" 2>/dev/null || fail "$2 is not empty: left" ;;
    thread)
        pid=${2% *}
        [ "$(sed 's/.*) //' "$root/proc/$pid/stat" 2>/dev/null | cut -d ' ' -f 20)" = "${2#* }" ] ||
            return 0
        # shellcheck disable=SC2086
        set -- $3
        chrt "--$1" -p "$2" "$pid" && taskset -p "$3" "$pid" >/dev/null ||
            fail "thread $pid: refused"
        ;;
    property) systemctl set-property --runtime "${2% *}" "${2#* }=$3" || fail "${2% *}: refused" ;;
    esac
}

case $mode in
start | check) ;;
verify) mode=check ;;
stop)
    [ -e "$saved" ] || exit 0
    # The last first.
    sed -n '1!G;h;$p' "$saved" >"$saved.reversed"
    while IFS=$us read -r kind target old ours; do
        back "$kind" "$target" "$old" "$ours"
    done <"$saved.reversed"
    rm -f "$saved.reversed"
    [ "$failed" = 0 ] && rm -f "$saved"
    exit "$failed"
    ;;
*)
    echo "usage: $0 start|stop|check" >&2
    exit 64
    ;;
esac

