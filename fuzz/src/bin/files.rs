//! Every other text that facts parse; the first byte says which.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

/// Files with a form of their own.
const FILES: &[&str] = &[
    "/proc/swaps",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/stat",
    "/proc/1/stat",
    "/proc/self/limits",
    "/proc/self/status",
    "/proc/mounts",
    "/proc/modules",
    "/proc/consoles",
    "/proc/timer_list",
    "/proc/schedstat",
    "/etc/security/limits.conf",
    "/etc/default/irqbalance",
    "/etc/default/grub",
    "/etc/systemd/system.conf",
    "/etc/sysctl.conf",
    "/boot/firmware/config.txt",
    "/boot/firmware/cmdline.txt",
    "/sys/fs/cgroup/cpuset.cpus.isolated",
    "/sys/devices/system/cpu/online",
    "/dev/cpu_dma_latency",
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((&which, text)) = bytes.split_first() {
        let path = FILES[usize::from(which) % FILES.len()];
        let _ = rtproof_fuzz::judge(&[(path, text)]);
    }
});
