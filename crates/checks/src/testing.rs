//! Machines for tests: one that every check is content with, and one with an older stock kernel.
//!
//! Public and hidden, so that the tests of other crates start from the same machine and change what
//! they are about.

use std::collections::BTreeMap;

use rtproof_host::facts::settings::{Setting, Value};
use rtproof_host::facts::{
    Facts, Identity, clock, cpu, irq, kernel, limits, memory, rights, sched, virt,
};
use rtproof_host::facts::{devices, net, platform};
use rtproof_host::facts::{tasks::Policy, tasks::RtTask};
use rtproof_host::{CpuList, Knob, Reading};

use crate::check::Example;
use crate::{Intent, Profile};

/// Command line of the good machine.
pub(super) const CMDLINE: &str = "quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 \
     skew_tick=1 tsc=reliable";

/// Gives a machine what the checks of a section read.
type Fill = fn(&mut Facts);

/// What each section's checks read, in the order of the report.
const SECTIONS: &[(Fill, &[Example])] = &[
    (super::kernel::good::fill, &[]),
    (super::power::good::fill, super::power::rules::EXAMPLES),
    (super::sched::good::fill, super::sched::rules::EXAMPLES),
    (super::isolation::good::fill, super::isolation::rules::EXAMPLES),
    (super::time::good::fill, super::time::rules::EXAMPLES),
    (super::memory::good::fill, super::memory::rules::EXAMPLES),
    (super::device::good::fill, super::device::rules::EXAMPLES),
    (super::platform::good::fill, super::platform::rules::EXAMPLES),
];

/// One for each check of one knob's value: good is what is so for [`intent`].
pub fn examples() -> impl Iterator<Item = &'static Example> {
    SECTIONS.iter().flat_map(|(_, examples)| *examples)
}

/// What the machine is meant for: FIFO 80 every millisecond on CPUs 2-3, at most 100 µs late.
pub fn intent() -> Intent {
    Intent {
        rt_cpus: cpus(&[2, 3]),
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
        values.push(Value { of: of.join("/"), reading: Reading::known(path, value.to_owned()) });
    }
    facts.settings.insert(knob.id.into(), Setting { values, lacking: None });
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
        identity: identity(),
        kernel: rt_kernel(),
        cpus: four_cpus(),
        clock: clock::Clock {
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
        placement: Reading::<Vec<rtproof_host::facts::tasks::TaskGroup>>::not_recorded(),
        isolation: rtproof_host::facts::isolation::Isolation::default(),
        rt_tasks: Reading::known("/proc/*/task/*/stat", kernel_threads()),
        irqs: quiet_irqs(),
        limits: enough(),
        rights: rights::Rights::default(),
        memory: memory::Memory {
            swaps: Reading::known("/proc/swaps", Vec::new()),
            thp_enabled: Reading::absent("/sys/kernel/mm/transparent_hugepage/enabled"),
            thp_defrag: Reading::absent("/sys/kernel/mm/transparent_hugepage/defrag"),
            available_bytes: Reading::known("/proc/meminfo", 15 << 30),
        },
        mounts: Reading::not_recorded(),
        resctrl: Reading::not_recorded(),
        virt: virt::Virt {
            hypervisor: Reading::known("cpuid, /sys/hypervisor/type", None),
            container: Reading::known("/run/.containerenv, /proc/1/environ", None),
            steal_ticks: Reading::known("/proc/stat", (0..4).map(|cpu| (cpu, 0)).collect()),
        },
        platform: platform::Platform::default(),
        settings: BTreeMap::new(),
        cpu_dma_latency_us: Reading::known("/dev/cpu_dma_latency", None),
        units: Reading::known("/etc/systemd/system, /usr/lib/systemd/system", BTreeMap::new()),
        net: net::Net::default(),
        devices: devices::Devices::default(),
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

/// Takes /sys away from what is known of CPUs: /proc/stat tells which are online, nothing more.
pub fn set_without_sys(facts: &mut Facts) {
    let found = &mut facts.cpus;
    found.online = Reading::known("/proc/stat", found.online.value().cloned().unwrap_or_default());
    for list in [&mut found.possible, &mut found.isolated, &mut found.nohz_full] {
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
        cmdline: known("/proc/cmdline", command_line(CMDLINE)),
        lockdown: known("/sys/kernel/security/lockdown", "none".into()),
        tainted: known("/proc/sys/kernel/tainted", 0),
    }
}

fn four_cpus() -> cpu::Cpus {
    let all = CpuList::new(0..4);
    let nodes = vec![cpu::Node { id: 0, cpus: all.clone() }];
    let base = "/sys/devices/system/cpu";
    cpu::Cpus {
        online: Reading::known(format!("{base}/online"), all.clone()),
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

fn one_cpu(id: u32) -> cpu::Cpu {
    let at = |file: &str| format!("/sys/devices/system/cpu/cpu{id}/{file}");
    let state = |index, name: &str, exit_latency_ns, disabled| cpu::IdleState {
        index,
        name: name.into(),
        exit_latency_ns,
        residency_ns: exit_latency_ns,
        disabled,
    };
    cpu::Cpu {
        id,
        core: Reading::known(at("topology/core_id"), id),
        package: Reading::known(at("topology/physical_package_id"), 0),
        siblings: Reading::known(at("topology/thread_siblings_list"), cpus(&[id])),
        last_level_cache_bytes: Reading::known(at("cache/index3/size"), 6 << 20),
        freq: cpu::Freq {
            governor: Reading::known(at("cpufreq/scaling_governor"), "performance".into()),
            driver: Reading::known(at("cpufreq/scaling_driver"), "intel_pstate".into()),
            min_hz: Reading::known(at("cpufreq/scaling_min_freq"), 400_000_000),
            max_hz: Reading::known(at("cpufreq/scaling_max_freq"), 4_100_000_000),
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

fn enough() -> limits::Limits {
    let limit = |soft, hard| limits::Limit { soft, hard };
    limits::Limits {
        rtprio: known("/proc/self/limits", limit(Some(95), Some(95))),
        memlock: known("/proc/self/limits", limit(None, None)),
        cap_sys_nice: known("/proc/self/status", false),
        cap_ipc_lock: known("/proc/self/status", false),
        rttime: known("/proc/self/limits", limit(None, None)),
    }
}
