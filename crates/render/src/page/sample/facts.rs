//! A machine for tests: PREEMPT_RT, some readings unknown.

use std::collections::BTreeMap;

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::{self, Identity, cpu, irq, kernel, memory, rights, sched, tasks, virt},
};

use super::shape::Shape;

fn known<T>(path: &str, value: T) -> Reading<T> {
    Reading::known(path, value)
}

/// Facts of a machine that fits a shape.
pub(super) fn of(shape: &Shape) -> Facts {
    let online = CpuList::new(0..2 + shape.cpus);
    let options = [("PREEMPT_RT", "y"), ("HZ", "1000"), ("NO_HZ_FULL", "y"), ("SND", "m")];
    Facts {
        copy: None,
        identity: Identity {
            hostname: known("/proc/sys/kernel/hostname", shape.name.clone()),
            machine_id: known("/etc/machine-id", "9f86d081884c7d65".into()),
            model: known("/sys/class/dmi/id/product_name", "Celsius W580".into()),
            cpu_model: known("/proc/cpuinfo", "Intel(R) Xeon(R) E-2276G CPU @ 3.80GHz".into()),
            boot_id: known("/proc/sys/kernel/random/boot_id", "0d3c".into()),
            memory_bytes: known("/proc/meminfo", 33_520_000_000),
        },
        kernel: kernel::Kernel {
            release: known("/proc/sys/kernel/osrelease", "6.12.57-rt14".into()),
            version: known("/proc/sys/kernel/osrelease", (6, 12)),
            build: known("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Mon Nov 3 2026".into()),
            arch: known("/proc/sys/kernel/arch", "x86_64".into()),
            preemption: known("/sys/kernel/realtime", kernel::Preemption::Rt),
            config_is_part: false,
            config: known(
                "/proc/config.gz",
                options
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into_iter()
                    .collect::<BTreeMap<_, _>>(),
            ),
            cmdline: known(
                "/proc/cmdline",
                kernel::CommandLine {
                    text: "root=/dev/nvme0n1p2 isolcpus=managed_irq,domain,2-3 nohz_full=2-3"
                        .into(),
                    parameters: Vec::new(),
                },
            ),
            lockdown: known("/sys/kernel/security/lockdown", "none".into()),
            tainted: known("/proc/sys/kernel/tainted", 0),
            cokernel: Reading::absent("/proc/xenomai"),
        },
        cpus: cpus(&online),
        clock: facts::ClockSource {
            source: known(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc".into(),
            ),
            available: Reading::absent(
                "/sys/devices/system/clocksource/clocksource0/available_clocksource",
            ),
        },
        sched: sched::Sched {
            ext_server: Reading::absent("/sys/kernel/debug/sched/ext_server"),
            features: Reading::absent("/sys/kernel/debug/sched/features"),
            rt_runtime_us: known("/proc/sys/kernel/sched_rt_runtime_us", 950_000),
            rt_period_us: known("/proc/sys/kernel/sched_rt_period_us", 1_000_000),
            fair_server: Reading::denied(
                "/sys/kernel/debug/sched/fair_server",
                "Permission denied",
            ),
        },
        placement: Reading::<Vec<tasks::TaskGroup>>::not_recorded(),
        isolation: facts::isolation::Isolation::default(),
        rt_tasks: known("/proc/*/stat", Vec::new()),
        irqs: irq::Irqs {
            default_affinity: known("/proc/irq/default_smp_affinity", online),
            irqs: known("/proc/interrupts", Vec::new()),
            unhandled: known("/proc/irq", Vec::new()),
            irqbalance: known(
                "/proc/*/comm",
                irq::Irqbalance {
                    running: Some(812),
                    enabled: true,
                    banned: None,
                    banned_from: None,
                },
            ),
        },
        limits: limits(),
        memory: memory::Memory {
            swaps: known("/proc/swaps", Vec::new()),
            thp_enabled: known("/sys/kernel/mm/transparent_hugepage/enabled", "madvise".into()),
            thp_defrag: known("/sys/kernel/mm/transparent_hugepage/defrag", "madvise".into()),
            available_bytes: known("/proc/meminfo", 30_100_000_000),
        },
        virt: virt::Virt {
            hypervisor_quoted: None,
            hypervisor: known("/sys/hypervisor/type", Some("KVM".into())),
            container: known("/proc/1/environ", None),
            steal_ticks: known("/proc/stat", Vec::new()),
        },
        ..rtproof_judge::checks::testing::good()
    }
}

fn limits() -> rights::Limits {
    let unlimited = rights::Limit { soft: None, hard: None };
    rights::Limits {
        rtprio: known("getrlimit(RLIMIT_RTPRIO)", rights::Limit { soft: Some(99), hard: Some(99) }),
        memlock: known("getrlimit(RLIMIT_MEMLOCK)", unlimited),
        cap_sys_nice: known("/proc/self/status", true),
        cap_ipc_lock: known("/proc/self/status", true),
        rttime: known("getrlimit(RLIMIT_RTTIME)", unlimited),
    }
}

fn cpus(online: &CpuList) -> cpu::Cpus {
    cpu::Cpus {
        online: known("/sys/devices/system/cpu/online", online.clone()),
        present: known("/sys/devices/system/cpu/present", online.clone()),
        possible: known("/sys/devices/system/cpu/possible", online.clone()),
        isolated: known("/sys/devices/system/cpu/isolated", CpuList::new([2, 3])),
        nohz_full: known("/sys/devices/system/cpu/nohz_full", CpuList::new([2, 3])),
        allowed: known("/proc/self/status", online.clone()),
        smt_control: known("/sys/devices/system/cpu/smt/control", "on".into()),
        smt_active: known("/sys/devices/system/cpu/smt/active", true),
        idle_driver: known("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle".into()),
        idle_governor: Reading::malformed(
            "/sys/devices/system/cpu/cpuidle/current_governor",
            "",
            "a name",
        ),
        cpus: Vec::new(),
        nodes: Reading::absent("/sys/devices/system/node"),
    }
}
