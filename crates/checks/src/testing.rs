//! Machines for tests: one that every check is content with, and one with an older stock kernel.
//!
//! Public and hidden, so that the tests of other crates start from the same machine and change what
//! they are about.

use std::collections::BTreeMap;

use rtproof_host::{
    CpuList, Knob, Reading,
    facts::{
        self, Facts, Identity,
        devices::{Console, Devices},
        irq,
        isolation::{
            CounterRow, Cpuset, Cpusets, DeviceCount, Hierarchy, InterruptCounters, Isolation,
        },
        kernel,
        memory::{self, Mount},
        net::{Channels, Coalesce, Eee, Interface, Net, Offloads, Pause},
        next_boot::NextBoot,
        platform::{Assigned, FirmwareChoice, FirmwareItem, KernelLog, Platform, TICKS},
        rights::{self, LimitLine, LoginService, Rights},
        sched,
        settings::{Setting, SettingValue},
        tasks::{Policy, RtTask, TaskGroup},
        virt::{self, Unit},
    },
    knobs::{self, cpu, device, power},
};

use crate::platform::firmware::{FirmwareAdvice, ITEMS};
use crate::{Intent, Profile};

/// Command line of the good machine.
const CMDLINE: &str = "quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 \
     skew_tick=1 tsc=reliable";

/// For the check of one knob's value: the knob, a good value, and one that is bad or doubtful.
pub type Example = (&'static Knob, &'static str, &'static str);

/// Gives a machine what the checks of a section read.
type Fill = fn(&mut Facts);

/// What each section's checks read, in the order of the report.
const SECTIONS: &[(Fill, &[Example])] = &[
    (fill_kernel, &[]),
    (fill_power, POWER),
    (fill_sched, SCHED),
    (fill_isolation, ISOLATION),
    (fill_time, TIME),
    (fill_memory, MEMORY),
    (fill_device, DEVICE),
    (fill_platform, PLATFORM),
];

const POWER: &[Example] = &[
    (&power::EPB, "0", "6"),
    (&power::HWP_DYNAMIC_BOOST, "0", "1"),
    (&power::PLATFORM_PROFILE, "performance", "balanced"),
    (&power::SATA_PM, "max_performance", "med_power_with_dipm"),
    (&power::NVME_PM, "0", "100000"),
];

const SCHED: &[Example] = &[(&cpu::SCHED_EXT, "disabled", "enabled")];

const ISOLATION: &[Example] = &[
    (&cpu::RCU_NORMAL, "1", "0"),
    (&cpu::RCU_PATIENCE, "1000", "0"),
    (&cpu::POWER_EFFICIENT, "Y", "N"),
    (&cpu::TIMER_MIGRATION, "0", "1"),
    (&cpu::KPROBES, "", "ffffffff81234560  k  vfs_read+0x0    [FTRACE]"),
];

const TIME: &[Example] = &[
    (&cpu::SOFTLOCKUP_BACKTRACE, "0", "1"),
    (&cpu::HARDLOCKUP_BACKTRACE, "0", "1"),
    (&cpu::HUNG_TASK_BACKTRACE, "0", "1"),
    (&cpu::RCU_STALL, "0", "2"),
    (&cpu::MEM_SCRUB, "203280", "0"),
    (&cpu::CLOCKEVENT, "lapic-deadline", "hpet2"),
    (&cpu::SPLIT_LOCK, "1", "0"),
];

const MEMORY: &[Example] = &[
    (&cpu::SWAPPINESS, "10", "60"),
    (&cpu::THP_SHMEM, "never", "always"),
    (&cpu::THP_SIZES, "inherit", "always"),
    (&cpu::KSM, "0", "1"),
    (&cpu::NUMA_BALANCING, "0", "1"),
    (&cpu::COMPACTION_PROACTIVE, "0", "20"),
    (&cpu::COMPACTION_UNEVICTABLE, "0", "1"),
    (&cpu::MIN_FREE, "67584", "512"),
    (&cpu::ZONE_RECLAIM, "0", "1"),
    (&cpu::LRU_GEN, "0x0005", "0x0007"),
    (&cpu::SLUB_PARTIALS, "0", "120"),
    (&cpu::HUGEPAGES_OVERCOMMIT, "0", "512"),
];

const DEVICE: &[Example] = &[
    (&device::GRO_FLUSH, "0", "200000"),
    (&device::DEFER_IRQS, "0", "2"),
    (&device::RPS, "3", "f"),
    (&device::RPS_DEFAULT, "3", "c"),
    (&device::RFS, "0", "32768"),
    (&device::BUSY_POLL, "0", "50"),
    (&device::BUSY_READ, "0", "50"),
    (&device::NETDEV_BUDGET, "300", "600"),
    (&device::NETDEV_BUDGET_USECS, "8000", "50000"),
    (&device::PRINTK, "4\t4\t1\t7", "7\t4\t1\t7"),
];

const PLATFORM: &[Example] =
    &[(&device::SELINUX_AVC, "8192", "512"), (&device::IOMMU, "identity", "DMA")];

/// One for each check of one knob's value: good values for [`intent`].
pub fn examples() -> impl Iterator<Item = &'static Example> {
    SECTIONS.iter().flat_map(|(_, examples)| *examples)
}

/// Intent of the machine: FIFO 80 every millisecond on CPUs 2-3, at most 100 µs late.
pub fn intent() -> Intent {
    Intent {
        rt_cpus: cpus(&[2, 3]),
        proposed: None,
        housekeeping: cpus(&[0, 1]),
        priority: 80,
        period_ns: 1_000_000,
        budget_ns: Some(100_000),
        profile: Profile::default(),
        skip: BTreeMap::new(),
        user: None,
    }
}

/// Bare metal, four CPUs, PREEMPT_RT 6.12, CPUs 2-3 isolated, everything as wanted.
pub fn good() -> Facts {
    let mut facts = bare();
    for (fill, examples) in SECTIONS {
        for (knob, value, _) in *examples {
            fill_setting(&mut facts, knob, value);
        }
        fill(&mut facts);
    }
    facts
}

/// Gives a knob one value: on each CPU, or for one device `x`.
pub fn fill_setting(facts: &mut Facts, knob: &Knob, value: &str) {
    let pattern = knob.patterns().next().unwrap_or_default();
    let instances: Vec<String> = match pattern.contains("{cpu}") {
        true => (0..4).map(|cpu| cpu.to_string()).collect(),
        false => vec![String::new()],
    };
    let mut values = Vec::new();
    for cpu in instances {
        let path = pattern.replacen("{cpu}", &cpu, 1).replace('*', "x");
        let stars = pattern.matches('*').map(|_| "x".to_owned());
        let of: Vec<String> =
            Some(cpu).filter(|cpu| !cpu.is_empty()).into_iter().chain(stars).collect();
        values.push(SettingValue {
            of: of.join("/"),
            reading: Reading::known(path, value.to_owned()),
        });
    }
    facts.settings.insert(knob.id.into(), Setting { values, missing_from: None });
}

/// Replaces all values of a knob by one reading, whose path is made that of each.
pub fn set_setting(facts: &mut Facts, knob: &Knob, reading: Reading<String>) {
    fill_setting(facts, knob, "");
    for value in &mut facts.settings.get_mut(knob.id).into_iter().flat_map(|s| &mut s.values) {
        value.reading = reading.clone().with_path(value.reading.path.clone());
    }
}

fn bare() -> Facts {
    Facts {
        copy: None,
        identity: identity(),
        kernel: rt_kernel(),
        cpus: four_cpus(),
        clock: facts::ClockSource {
            source: Reading::known(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc".into(),
            ),
            available: Reading::known(
                "/sys/devices/system/clocksource/clocksource0/available_clocksource",
                vec!["tsc".into(), "hpet".into(), "acpi_pm".into()],
            ),
        },
        sched: unlimited(),
        placement: Reading::<Vec<TaskGroup>>::not_recorded(),
        isolation: Isolation::default(),
        rt_tasks: Reading::known("/proc/*/task/*/stat", kernel_threads()),
        irqs: quiet_irqs(),
        limits: enough(),
        rights: Rights::default(),
        memory: memory::Memory {
            swaps: Reading::known("/proc/swaps", Vec::new()),
            thp_enabled: Reading::absent("/sys/kernel/mm/transparent_hugepage/enabled"),
            thp_defrag: Reading::absent("/sys/kernel/mm/transparent_hugepage/defrag"),
            available_bytes: Reading::known("/proc/meminfo", 15 << 30),
        },
        mounts: Reading::not_recorded(),
        resctrl: Reading::not_recorded(),
        virt: virt::Virt {
            hypervisor_quoted: None,
            hypervisor: Reading::known("cpuid, /sys/hypervisor/type", None),
            container: Reading::known("/run/.containerenv, /proc/1/environ", None),
            steal_ticks: Reading::known("/proc/stat", (0..4).map(|cpu| (cpu, 0)).collect()),
        },
        platform: Platform::default(),
        settings: BTreeMap::new(),
        cpu_dma_latency_us: Reading::known("/dev/cpu_dma_latency", None),
        units: Reading::known("/etc/systemd/system, /usr/lib/systemd/system", BTreeMap::new()),
        net: Net::default(),
        devices: Devices::default(),
    }
}

/// The same machine with a stock 6.1: no fair server yet, transparent huge pages there and off.
pub fn good_stock() -> Facts {
    let mut facts = good();
    let release = "6.1.0-40-amd64".to_owned();
    facts.kernel.release = Reading::known("/proc/sys/kernel/osrelease", release);
    facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (6, 1));
    facts.kernel.build =
        Reading::known("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC".to_owned());
    facts.kernel.preemption =
        Reading::known("/sys/kernel/debug/sched/preempt", kernel::Preemption::Full);
    set_config(&mut facts, "PREEMPT_RT", None);
    set_config(&mut facts, "PREEMPT_DYNAMIC", Some("y"));
    set_config(&mut facts, "TRANSPARENT_HUGEPAGE", Some("y"));
    facts.sched.fair_server = Reading::absent("/sys/kernel/debug/sched/fair_server");
    facts.memory.thp_enabled =
        Reading::known("/sys/kernel/mm/transparent_hugepage/enabled", "never".into());
    facts.memory.thp_defrag =
        Reading::known("/sys/kernel/mm/transparent_hugepage/defrag", "madvise".into());
    facts
}

/// Sets or removes an option of a known kernel configuration.
pub fn set_config(facts: &mut Facts, option: &str, value: Option<&str>) {
    let mut config = facts.kernel.config.value().cloned().unwrap_or_default();
    match value {
        Some(value) => config.insert(option.into(), value.into()),
        None => config.remove(option),
    };
    facts.kernel.config = Reading::known(facts.kernel.config.path.clone(), config);
}

/// Replaces the command line.
pub fn set_cmdline(facts: &mut Facts, text: &str) {
    facts.kernel.cmdline = Reading::known("/proc/cmdline", command_line(text));
}

fn command_line(text: &str) -> kernel::CommandLine {
    let parameter = |word: &str| match word.split_once('=') {
        Some((key, value)) => kernel::Parameter { key: key.into(), value: Some(value.into()) },
        None => kernel::Parameter { key: word.into(), value: None },
    };
    let parameters = text.split_whitespace().map(parameter).collect();
    kernel::CommandLine { text: text.into(), parameters }
}

/// Makes the machine a guest.
pub fn set_guest(facts: &mut Facts, hypervisor: &str) {
    let path = facts.virt.hypervisor.path.clone();
    facts.virt.hypervisor = Reading::known(path, Some(hypervisor.into()));
}

/// Removes /sys from the facts of CPUs: only /proc/stat remains, which shows the online ones.
pub fn set_without_sys(facts: &mut Facts) {
    let found = &mut facts.cpus;
    found.online = Reading::known("/proc/stat", found.online.value().cloned().unwrap_or_default());
    for list in [&mut found.present, &mut found.possible, &mut found.isolated, &mut found.nohz_full]
    {
        *list = Reading::absent(list.path.clone());
    }
    found.smt_control = Reading::absent(found.smt_control.path.clone());
    found.smt_active = Reading::absent(found.smt_active.path.clone());
    for cpu in &mut found.cpus {
        cpu.core = Reading::absent(cpu.core.path.clone());
        cpu.siblings = Reading::absent(cpu.siblings.path.clone());
        cpu.freq.governor = Reading::absent(cpu.freq.governor.path.clone());
        cpu.idle_states = Reading::absent(cpu.idle_states.path.clone());
    }
}

pub fn cpus(cpus: &[u32]) -> CpuList {
    CpuList::new(cpus.iter().copied())
}

/// A value with the path it has on a live machine.
fn known<T>(path: &str, value: T) -> Reading<T> {
    Reading::known(path, value)
}

fn identity() -> Identity {
    Identity {
        hostname: known("/proc/sys/kernel/hostname", "arm7".into()),
        machine_id: known("/sys/class/dmi/id/product_uuid", "8f3a0c5d1e27b946".into()),
        model: known("/sys/class/dmi/id/product_name", "Box".into()),
        cpu_model: known("/proc/cpuinfo", "Intel(R) Core(TM) i5-8365UE".into()),
        boot_id: known("/proc/sys/kernel/random/boot_id", "0f7e".into()),
        memory_bytes: known("/proc/meminfo", 16 << 30),
    }
}

fn rt_kernel() -> kernel::Kernel {
    let options = [
        ("PREEMPT_RT", "y"),
        ("CPU_FREQ", "y"),
        ("CPU_IDLE", "y"),
        ("CPU_ISOLATION", "y"),
        ("NO_HZ_COMMON", "y"),
        ("NO_HZ_FULL", "y"),
        ("RCU_NOCB_CPU", "y"),
        ("SWAP", "y"),
        ("HZ", "1000"),
    ];
    let config: BTreeMap<_, _> = options.map(|(key, value)| (key.into(), value.into())).into();
    let release = "/proc/sys/kernel/osrelease";
    kernel::Kernel {
        release: known(release, "6.12.95-rt-amd64".into()),
        version: known(release, (6, 12)),
        build: known("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT".into()),
        arch: known("/proc/sys/kernel/arch", "x86_64".into()),
        preemption: known("/sys/kernel/realtime", kernel::Preemption::Rt),
        config: known("/boot/config-6.12.95-rt-amd64", config),
        config_is_part: false,
        cmdline: known("/proc/cmdline", command_line(CMDLINE)),
        lockdown: known("/sys/kernel/security/lockdown", "none".into()),
        tainted: known("/proc/sys/kernel/tainted", 0),
        cokernel: Reading::absent("/proc/xenomai"),
    }
}

fn four_cpus() -> facts::cpu::Cpus {
    let all = CpuList::new(0..4);
    let nodes = vec![facts::cpu::Node { id: 0, cpus: all.clone() }];
    let base = "/sys/devices/system/cpu";
    facts::cpu::Cpus {
        online: Reading::known(format!("{base}/online"), all.clone()),
        present: Reading::known(format!("{base}/present"), all.clone()),
        possible: Reading::known(format!("{base}/possible"), all.clone()),
        isolated: Reading::known(format!("{base}/isolated"), cpus(&[2, 3])),
        nohz_full: Reading::known(format!("{base}/nohz_full"), cpus(&[2, 3])),
        allowed: Reading::known("/proc/self/status", all),
        smt_control: Reading::known(format!("{base}/smt/control"), "off".into()),
        smt_active: Reading::known(format!("{base}/smt/active"), false),
        idle_driver: Reading::known(format!("{base}/cpuidle/current_driver"), "intel_idle".into()),
        idle_governor: Reading::known(format!("{base}/cpuidle/current_governor"), "menu".into()),
        cpus: (0..4).map(one_cpu).collect(),
        nodes: Reading::known("/sys/devices/system/node", nodes),
    }
}

fn one_cpu(id: u32) -> facts::cpu::Cpu {
    let at = |file: &str| format!("/sys/devices/system/cpu/cpu{id}/{file}");
    let state = |index, name: &str, exit_latency_ns, disabled| facts::cpu::IdleState {
        index,
        name: name.into(),
        exit_latency_ns,
        residency_ns: exit_latency_ns,
        disabled,
    };
    facts::cpu::Cpu {
        id,
        core: Reading::known(at("topology/core_id"), id),
        package: Reading::known(at("topology/physical_package_id"), 0),
        siblings: Reading::known(at("topology/thread_siblings_list"), cpus(&[id])),
        part: Reading::known("/proc/cpuinfo", "Intel(R) Core(TM) i5-8365UE".into()),
        capacity: Reading::absent(at("cpu_capacity")),
        last_level_cache_bytes: Reading::known(at("cache/index3/size"), 6 << 20),
        last_level_cpus: Reading::known(at("cache/index3/shared_cpu_list"), CpuList::new(0..4)),
        freq: facts::cpu::Freq {
            governor: Reading::known(at("cpufreq/scaling_governor"), "performance".into()),
            driver: Reading::known(at("cpufreq/scaling_driver"), "intel_pstate".into()),
            min_hz: Reading::known(at("cpufreq/scaling_min_freq"), 400_000_000),
            max_hz: Reading::known(at("cpufreq/scaling_max_freq"), 4_100_000_000),
            hardware_max_hz: Reading::known(at("cpufreq/cpuinfo_max_freq"), 4_100_000_000),
        },
        idle_states: Reading::known(
            at("cpuidle"),
            vec![
                state(0, "POLL", 0, false),
                state(1, "C1", 2_000, false),
                state(2, "C1E", 10_000, false),
                state(3, "C6", 133_000, true),
            ],
        ),
        pm_qos_resume_latency_us: Reading::known(at("power/pm_qos_resume_latency_us"), "0".into()),
    }
}

fn unlimited() -> sched::Sched {
    let fair_server = (0..4)
        .map(|cpu| sched::FairServer {
            cpu,
            runtime_ns: if cpu < 2 { 50_000_000 } else { 0 },
            period_ns: 1_000_000_000,
        })
        .collect();
    sched::Sched {
        rt_runtime_us: known("/proc/sys/kernel/sched_rt_runtime_us", -1),
        rt_period_us: known("/proc/sys/kernel/sched_rt_period_us", 1_000_000),
        fair_server: known("/sys/kernel/debug/sched/fair_server", fair_server),
        ext_server: Reading::not_recorded(),
        features: Reading::not_recorded(),
    }
}

/// A task under SCHED_FIFO with a priority, on some CPUs.
pub fn task(tid: u32, comm: &str, priority: u32, on: &[u32], kernel_thread: bool) -> RtTask {
    RtTask {
        tid,
        pid: tid,
        comm: comm.into(),
        policy: Policy::Fifo,
        priority,
        cpus: Some(cpus(on)),
        kernel_thread,
        unit: None,
        start_ticks: u64::from(tid),
    }
}

fn kernel_threads() -> Vec<RtTask> {
    let mut tasks = Vec::new();
    for cpu in 0..4 {
        tasks.push(task(20 + cpu * 4, &format!("migration/{cpu}"), 99, &[cpu], true));
        tasks.push(task(21 + cpu * 4, &format!("rcuc/{cpu}"), 1, &[cpu], true));
        tasks.push(task(22 + cpu * 4, &format!("ktimers/{cpu}"), 1, &[cpu], true));
    }
    tasks.push(task(90, "irq/24-nvme0q0", 50, &[0], true));
    tasks.push(task(91, "irq/25-eth0", 50, &[1], true));
    tasks
}

/// An interrupt that has fired.
pub fn irq(number: u32, actions: &str, requested: &[u32], effective: &[u32]) -> irq::Irq {
    let at = |file: &str| format!("/proc/irq/{number}/{file}");
    irq::Irq {
        number,
        actions: actions.into(),
        chip: "PCI-MSIX-0000:00:02.0 0-edge".into(),
        requested: Reading::known(at("smp_affinity_list"), cpus(requested)),
        effective: Reading::known(at("effective_affinity_list"), cpus(effective)),
        count: 4_711,
        managed: false,
    }
}

fn quiet_irqs() -> irq::Irqs {
    let irqs = vec![irq(24, "nvme0q0", &[0, 1], &[0]), irq(25, "eth0", &[0, 1], &[1])];
    let irqbalance =
        irq::Irqbalance { running: None, enabled: false, banned: None, banned_from: None };
    irq::Irqs {
        default_affinity: known("/proc/irq/default_smp_affinity", cpus(&[0, 1])),
        irqs: known("/proc/interrupts", irqs),
        unhandled: known("/proc/irq", Vec::new()),
        irqbalance: known("/proc, /etc/systemd/system", irqbalance),
    }
}

fn enough() -> rights::Limits {
    let limit = |soft, hard| rights::Limit { soft, hard };
    rights::Limits {
        rtprio: known("/proc/self/limits", limit(Some(95), Some(95))),
        memlock: known("/proc/self/limits", limit(None, None)),
        cap_sys_nice: known("/proc/self/status", false),
        cap_ipc_lock: known("/proc/self/status", false),
        rttime: known("/proc/self/limits", limit(None, None)),
    }
}

fn fill_kernel(facts: &mut Facts) {
    for option in [
        "PREEMPT_RCU",
        "RCU_BOOST",
        "CPUSETS",
        "CPU_FREQ_DEFAULT_GOV_PERFORMANCE",
        "EFI_DISABLE_RUNTIME",
        "HIGH_RES_TIMERS",
        "IRQ_FORCED_THREADING",
        "KFENCE",
        "HWLAT_TRACER",
        "MICROCODE",
        "TRACING",
    ] {
        set_config(facts, option, Some("y"));
    }
    fill_setting(facts, &knobs::KFENCE, "0");
    fill_setting(facts, &cpu::WATCHDOG, "0");
    fill_setting(facts, &knobs::EFI_PLATFORM, "64");
    facts.platform = whole_platform();
}

fn whole_platform() -> Platform {
    let log = KernelLog { is_whole: true, ..KernelLog::default() };
    let asked = CMDLINE.split_whitespace().filter(|word| word.contains('='));
    let parameters = asked.map(str::to_owned).collect();
    let swappiness = Assigned {
        name: "vm.swappiness".into(),
        value: "10".into(),
        file: "/etc/sysctl.d/90-latency.conf".into(),
        live: Reading::known("/proc/sys/vm/swappiness", "10".into()),
    };
    let flags = ["tsc", "constant_tsc", "nonstop_tsc"].map(str::to_owned).to_vec();
    Platform {
        vendor: Reading::known("/proc/cpuinfo", "GenuineIntel".into()),
        microcode: Reading::known("/proc/cpuinfo", "0xf8".into()),
        tsc_flags: Reading::known("/proc/cpuinfo", flags),
        smi_count: Reading::known("/dev/cpu/0/msr", 0),
        uptime_s: Reading::known("/proc/uptime", 86_400),
        timer_resolution_ns: Reading::known("clock_getres", 1),
        log: Reading::known("/dev/kmsg", log),
        boot: Reading::known("/boot/grub/grub.cfg", NextBoot { is_source: false, parameters }),
        sysctl: Reading::known("/etc/sysctl.d, /usr/lib/sysctl.d", vec![swappiness]),
        firmware: Reading::default(),
    }
}

fn fill_power(facts: &mut Facts) {
    for (knob, value) in [
        (&power::EPP, "performance"),
        (&power::NO_TURBO, "1"),
        (&power::MIN_PERF_PCT, "100"),
        (&power::UNCORE_MIN_FREQ, "2400000"),
        (&power::UNCORE_MAX_FREQ, "2400000"),
        (&power::CORE_THROTTLE_COUNT, "0"),
        (&power::PACKAGE_THROTTLE_COUNT, "0"),
        (&power::RAPL_LIMIT, "15000000"),
        (&power::RAPL_DESIGN, "15000000"),
        (&power::PCIE_ASPM, "performance"),
        (&power::PCI_RUNTIME_PM, "on"),
        (&power::PCI_CLASS, "0x020000"),
        (&power::USB_AUTOSUSPEND, "on"),
        (&power::USB_CLASS, "00"),
    ] {
        fill_setting(facts, knob, value);
    }
}

fn fill_sched(facts: &mut Facts) {
    fill_setting(facts, &cpu::AUTOGROUP, "0");
    fill_setting(facts, &cpu::RR_TIMESLICE, "100");
    fill_setting(facts, &cpu::RCU_KTHREAD_PRIO, "1");
    fill_setting(facts, &cpu::WATCHDOG_STATE, "active");
    let features = ["PLACE_LAG", "NO_TTWU_QUEUE", "RT_PUSH_IPI", "NO_RT_RUNTIME_SHARE"];
    facts.sched.features =
        Reading::known("/sys/kernel/debug/sched/features", features.map(str::to_owned).to_vec());
    facts.sched.ext_server = Reading::absent("/sys/kernel/debug/sched/ext_server");
    facts.rights = login_rights();
}

/// One group with real-time rights and a member, read by every login.
fn login_rights() -> Rights {
    let line = |number, item: &str, value: &str| LimitLine {
        domain: "@realtime".into(),
        kind: "-".into(),
        item: item.into(),
        value: value.into(),
        file: "/etc/security/limits.d/99-realtime.conf".into(),
        line: number,
    };
    let service = |name: &str| LoginService { name: name.into(), limits: true };
    let group = rights::LimitGroup { name: "realtime".into(), members: Some(1) };
    Rights {
        limit_lines: Reading::known(
            "/etc/security/limits.conf, /etc/security/limits.d",
            vec![line(1, "rtprio", "95"), line(2, "memlock", "unlimited")],
        ),
        services: Reading::known(
            "/etc/pam.d, /usr/lib/pam.d",
            vec![service("login"), service("sshd")],
        ),
        groups: Reading::known("/etc/group", vec![group]),
        initial_user_namespace: Reading::known("/proc/self/ns/user", true),
        seccomp: Reading::known("/proc/self/status", 0),
    }
}

fn fill_isolation(facts: &mut Facts) {
    for knob in [&cpu::WORKQUEUE_CPUMASK, &cpu::WRITEBACK_CPUMASK] {
        fill_setting(facts, knob, "3");
    }
    set_config(facts, "JUMP_LABEL", Some("y"));
    let mut units: BTreeMap<String, Unit> = facts.units.value().cloned().unwrap_or_default();
    let file = "/usr/lib/systemd/system/realtime-entsk.service".to_owned();
    let unit = Unit { file, enabled: true, masked: false, running: Some(true) };
    units.insert("realtime-entsk.service".into(), unit);
    facts.units = Reading::known(facts.units.path.clone(), units);
    facts.placement = Reading::known("/proc/*/task/*/status", Vec::new());
    let (hk, all) = (Some(&[0, 1][..]), Some(&[0, 1, 2, 3][..]));
    for (name, kernel_thread, on, count) in [
        ("kthreadd", true, hk, 1),
        ("kworker/N:N", true, all, 8),
        ("rcu_preempt", true, hk, 1),
        ("rcuop/N", true, hk, 2),
        ("irq/N-nvmeNqN", true, hk, 1),
        ("systemd", false, hk, 1),
        ("sshd", false, hk, 2),
    ] {
        add_task(facts, name, kernel_thread, on, count);
    }
    let group = |name: &str| Cpuset { name: name.into(), effective: None, partition: None };
    let cpusets = Cpusets {
        hierarchy: Hierarchy::V2,
        effective: Some(CpuList::new(0..4)),
        groups: ["/init.scope", "/system.slice", "/user.slice"].map(group).into(),
        is_complete: true,
    };
    let device = |cpu| DeviceCount { cpu, count: u64::from(cpu < 2) * 90_000, most: None };
    let devices = (0..4).map(device).collect();
    let counters = InterruptCounters { rows: Vec::new(), devices, is_cut: false };
    facts.isolation = Isolation {
        cpusets: Reading::known("/sys/fs/cgroup", cpusets),
        partitioned: Reading::known("/sys/fs/cgroup/cpuset.cpus.isolated", cpus(&[])),
        manager_affinity: Reading::known("/etc/systemd/system.conf, system.conf.d", None),
        init: Reading::known("/proc/1/comm", "systemd".into()),
        init_cpus: Reading::known("/proc/1/status", cpus(&[0, 1])),
        uptime_ms: Reading::known("/proc/uptime", 1_000_000),
        counters: Reading::known("/proc/interrupts", counters),
    };
    set_row(facts, "LOC", "Local timer interrupts", [250_000, 250_000, 90, 90]);
    set_row(facts, "CAL", "Function call interrupts", [5_000, 5_000, 90, 90]);
    set_row(facts, "TLB", "TLB shootdowns", [5_000, 5_000, 0, 0]);
}

/// Adds tasks. Per-CPU threads are those whose names end in `N:N`.
pub(crate) fn add_task(
    facts: &mut Facts,
    name: &str,
    kernel_thread: bool,
    on: Option<&[u32]>,
    count: u32,
) {
    let mut groups = facts.placement.value().cloned().unwrap_or_default();
    groups.push(TaskGroup {
        tasks: Vec::new(),
        name: name.into(),
        kernel_thread,
        bound: name.ends_with("N:N"),
        cpus: on.map(cpus),
        policy: Some(Policy::Other),
        unit: None,
        count,
        tid: 1_000 + u32::try_from(groups.len()).unwrap_or(0),
    });
    facts.placement = Reading::known(facts.placement.path.clone(), groups);
}

/// Takes the tasks away.
#[cfg(test)]
pub(crate) fn without_tasks(facts: &mut Facts) {
    facts.placement = Reading::denied("/proc/*/task/*/status", "hidden");
}

/// Sets a row of /proc/interrupts, with the count of each CPU.
pub(crate) fn set_row(facts: &mut Facts, name: &str, what: &str, counts: [u64; 4]) {
    if let Some(mut counters) = facts.isolation.counters.value().cloned() {
        counters.rows.retain(|row| row.name != name);
        counters.rows.push(CounterRow {
            name: name.into(),
            what: what.into(),
            counts: counts.into(),
        });
        facts.isolation.counters = Reading::known("/proc/interrupts", counters);
    }
}

fn fill_time(facts: &mut Facts) {
    for (knob, value) in [
        (&cpu::WATCHDOG, "1"),
        (&cpu::NMI_WATCHDOG, "0"),
        (&cpu::SOFT_WATCHDOG, "1"),
        (&cpu::WATCHDOG_CPUMASK, "0-1"),
        (&cpu::HUNG_TASK, "600"),
        (&cpu::HUNG_TASK_INTERVAL, "0"),
        (&cpu::MCE_IGNORE_CE, "1"),
        (&cpu::MCE_CMCI_DISABLED, "0"),
        (&cpu::MCE_CHECK_INTERVAL, "300"),
    ] {
        fill_setting(facts, knob, value);
    }
}

fn fill_memory(facts: &mut Facts) {
    for (knob, value) in [
        (&cpu::KHUGEPAGED, "0"),
        (&cpu::STAT_INTERVAL, "120"),
        (&cpu::DIRTY_RATIO, "10"),
        (&cpu::DIRTY_BYTES, "0"),
        (&cpu::DIRTY_BACKGROUND_RATIO, "3"),
        (&cpu::DIRTY_BACKGROUND_BYTES, "0"),
        (&cpu::HUGEPAGES, "4"),
    ] {
        fill_setting(facts, knob, value);
    }
    // The first wildcard is the node.
    let pages = facts.settings.get_mut(cpu::HUGEPAGES.id);
    for value in pages.into_iter().flat_map(|setting| &mut setting.values) {
        value.of = "0/2048kB".into();
    }
    let group = |name: &str, cpus: [u32; 2], mask: &str| memory::ResctrlGroup {
        name: name.into(),
        cpus: CpuList::new(cpus),
        schemata: vec!["MB:0=100".into(), format!("L3:0={mask}")],
    };
    let groups = vec![group(memory::DEFAULT, [0, 1], "00f"), group("rt", [2, 3], "ff0")];
    let caches = (0..4).map(|cpu| (cpu, 0)).collect();
    facts.resctrl =
        Reading::known("/sys/fs/resctrl", memory::Resctrl { supported: true, groups, caches });
    let options = vec!["rw".into(), "relatime".into()];
    let root = Mount { name: "/".into(), kind: "ext4".into(), options };
    facts.mounts = Reading::known("/proc/self/mounts", vec![root]);
}

/// A wired and a wireless interface, and a screen.
fn fill_device(facts: &mut Facts) {
    facts.net = Net { interfaces: Reading::known("/sys/class/net", vec![wired(), wireless()]) };
    facts.devices = Devices {
        consoles: Reading::known(
            "/proc/consoles",
            vec![Console { name: "tty0".into(), nbcon: false }],
        ),
        graphics: Reading::known("/sys/class/drm", Vec::new()),
        tainting_modules: Reading::known("/proc/sys/kernel/tainted", BTreeMap::new()),
        default_target: Reading::known(
            "/etc/systemd/system/default.target",
            "multi-user.target".into(),
        ),
        audit_enabled: Reading::known("audit status", 0),
        raspberry_pi: Reading::known(
            "/boot/firmware/config.txt",
            Some([("force_turbo".to_owned(), "1".to_owned())].into()),
        ),
    };
    for (knob, value) in [
        (&device::NAPI_THREADED, "0"),
        (&device::XPS, "3"),
        (&device::TCP_TIMESTAMPS, "1"),
        (&device::TCP_FASTOPEN, "1"),
        (&device::IPV6, "1"),
        (&device::TRACER, "nop"),
        (&device::TRACE_EVENTS, ""),
        (&device::TRACE_PROBES, ""),
    ] {
        fill_setting(facts, knob, value);
    }
    for knob in [&device::TRACE_INSTANCES, &device::TRACE_INSTANCE_EVENTS] {
        let lacking = Reading::known("/sys/kernel/tracing/instances", "holds no *".into());
        let none = Setting { values: Vec::new(), missing_from: Some(lacking) };
        facts.settings.insert(knob.id.into(), none);
    }
}

fn wired() -> Interface {
    let off = Some(false);
    Interface {
        name: "eth0".into(),
        driver: Reading::known("/sys/class/net/eth0/device/driver", "igb".into()),
        wireless: false,
        coalesce: Reading::known(
            "ethtool eth0 coalesce",
            Some(Coalesce { rx_usecs: Some(0), adaptive_rx: off, ..Coalesce::default() }),
        ),
        channels: Reading::known(
            "ethtool eth0 channels",
            Some(Channels { combined: 2, combined_max: 4, ..Channels::default() }),
        ),
        offloads: Reading::known(
            "ethtool eth0 features",
            Some(Offloads { gro: true, ..Offloads::default() }),
        ),
        pause: Reading::known("ethtool eth0 pause", Some(Pause::default())),
        eee: Reading::known("ethtool eth0 eee", Some(Eee::default())),
        power_save: Reading::known("/sys/class/net/eth0", None),
    }
}

fn wireless() -> Interface {
    let at = |word: &str| format!("ethtool wlan0 {word}");
    Interface {
        name: "wlan0".into(),
        driver: Reading::known("/sys/class/net/wlan0/device/driver", "iwlwifi".into()),
        wireless: true,
        coalesce: Reading::known(at("coalesce"), None),
        channels: Reading::known(at("channels"), None),
        offloads: Reading::known(at("features"), Some(Offloads::default())),
        pause: Reading::known(at("pause"), None),
        eee: Reading::known(at("eee"), None),
        power_save: Reading::known("nl80211 wlan0 power_save", Some(false)),
    }
}

fn fill_platform(facts: &mut Facts) {
    fill_setting(facts, &device::VULNERABILITIES, "Not affected");
    fill_setting(facts, &device::KVM_CLOCK_SYNC, "N");
    fill_setting(facts, &device::KVM_PLE, "0");
    fill_setting(facts, &device::KVM_NX_HUGE_PAGES, "N");
    fill_setting(facts, &device::KVM_HALT_POLL, "200000");
    fill_setting(facts, &device::BIOS_VENDOR, "American Megatrends Inc.");
    fill_setting(facts, &device::BIOS_VERSION, "2.1");
    fill_setting(facts, &device::BIOS_DATE, "01/02/2024");
    fill_setting(facts, &device::CHASSIS, "3");
    // The kernel has deep idle states, turbo and governors, and they are not turned off.
    let tick = |item: &FirmwareAdvice| FirmwareItem {
        item: item.id.into(),
        found: if (item.against)(facts).is_some() {
            FirmwareChoice::Kept
        } else {
            FirmwareChoice::Set
        },
        date: "2026-11-25".into(),
        user: "alice".into(),
        firmware: "2.1 01/02/2024".into(),
        note: String::new(),
    };
    facts.platform.firmware = Reading::known(TICKS, ITEMS.iter().map(tick).collect());
    let lacking = Some(Reading::known("/sys/class", "holds no tee".to_owned()));
    facts
        .settings
        .insert(device::TEE.id.into(), Setting { values: Vec::new(), missing_from: lacking });
}
