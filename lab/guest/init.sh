#!/bin/busybox sh
# The first process of every guest: makes the machine usable, runs /host/run.sh, sends back what it
# left there, and switches the machine off with an exit code. Words on the kernel command line:
# labsnap waits for a line on the console before the share is mounted (snapshots are taken there);
# labshell gives a prompt instead of the script.

/bin/busybox mount -t proc proc /proc 2>/dev/null
/bin/busybox --install -s
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TERM=vt100
echo "GUEST-INIT $(uname -r)"

power_off() {
    sync
    poweroff -f
    sleep 1
    echo o >/proc/sysrq-trigger
    sleep 60
}

broken() {
    echo "GUEST-BROKEN $*"
    power_off
}

asked() { grep -qw "$1" /proc/cmdline; }

[ -e /proc/cmdline ] || broken "/proc cannot be mounted"
mount -t sysfs sys /sys || broken "/sys cannot be mounted"
mount -t devtmpfs dev /dev || broken "/dev cannot be mounted"
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm || broken "no tmpfs"
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=755 run /run
# A kernel may lack these; what needs them says so.
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
ln -sf /proc/self/fd /dev/fd
hostname lab
ip link set lo up 2>/dev/null
console=$(sed 's/.* //' /sys/class/tty/console/active 2>/dev/null)
console=/dev/${console:-console}

# Some find no device on this machine (acpi_cpufreq without tables): that is no failure.
for module in $(cat /etc/lab-modules); do
    insmod "/lib/modules/$(uname -r)/$module.ko" 2>>/run/lab-modules
done

if asked labsnap; then
    stty -F "$console" -echo
    echo GUEST-READY
    read -r _ <"$console"
fi

if mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 host /host 2>/run/lab-9p; then
    is_shared=1
elif [ -d /overlay ]; then
    is_shared=0
    mount -t tmpfs -o mode=755 host /host || broken "no tmpfs for /host"
    mv /overlay/* /host/ || broken "/overlay does not fit into memory"
else
    broken "no share and no overlay: $(cat /run/lab-9p /run/lab-modules | tr '\n' ' ')"
fi

if asked labshell; then
    echo "lab: the shared folder is /host; leave with 'exit'"
    cd /host
    setsid cttyhack sh -l
    rc=$?
else
    [ -e /host/run.sh ] || broken "/host has no run.sh"
    cd /tmp
    sh /host/run.sh </dev/null
    rc=$?
fi
cd /
echo $rc >/host/rc
sync
echo "GUEST-RC=$rc"

if [ $is_shared = 0 ]; then
    # Nothing may come between these lines.
    dmesg -n 1
    rm -rf /host/bin
    echo GUEST-FILES-BEGIN
    tar -c -z -f - -C /host . | base64
    echo GUEST-FILES-END
fi

# QEMU's isa-debug-exit ends with twice the value plus 1, as one byte.
if [ -e /dev/port ]; then
    value=$((rc > 127 ? 127 : rc))
    printf "\\$(printf %03o $value)" | dd of=/dev/port bs=1 seek=244 conv=notrunc 2>/dev/null
fi
power_off
