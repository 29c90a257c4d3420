//! What the good machine of the tests has, as far as the rows of this section do not say it.

use rtproof_host::facts::platform::{Platform, boot::NextBoot, log::KernelLog, sysctl::Assigned};
use rtproof_host::{Facts, Reading};

use crate::testing::{CMDLINE, fill_setting, set_config};
use rtproof_host::knobs::kernel as knobs;

pub(crate) fn fill(facts: &mut Facts) {
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
    fill_setting(facts, &rtproof_host::knobs::time::WATCHDOG, "0");
    fill_setting(facts, &knobs::EFI_PLATFORM, "64");
    facts.platform = platform();
}

fn platform() -> Platform {
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
