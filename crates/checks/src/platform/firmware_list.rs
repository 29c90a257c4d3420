//! What to look for in the set-up of a firmware: the list of the check `bios-profile`, each item
//! with its reason and source, and what of it can be seen from the system.

use rtproof_host::{Facts, knobs::power};

use crate::{quantity, setting};

pub struct Item {
    /// Name that is ticked.
    pub id: &'static str,
    /// What to set, and the names that firmware gives it.
    pub advice: &'static str,
    pub why: &'static str,
    /// Where that is known from.
    pub source: &'static str,
    /// What the system shows that cannot be where it is set as advised.
    pub(crate) against: fn(&Facts) -> Option<String>,
}

const HARDWARE: &str = "Documentation/core-api/real-time/hardware.rst (Firmware)";
const WU: &str = "Wu, \"Real-time programming with Linux, part 2\"";
const FLATSCHER: &str = "Flatscher, \"Real-time Optimizations\"";
const RIGTORP: &str = "rigtorp.se, \"Low latency tuning guide\"";

/// Exit latency from which on an idle state is a deep one: C1 and C1E stay below it.
const DEEP_NS: u64 = 20_000;

/// The list, in the order in which it is shown.
pub const ITEMS: &[Item] = &[
    Item {
        id: "smt",
        advice: "one thread a core: Hyper-Threading, SMT off",
        why: "the other thread of a core takes its execution units and first-level cache",
        source: WU,
        against: |facts| {
            let is_active = facts.cpus.smt_active.value() == Some(&true);
            is_active.then(|| "two threads a core are active".into())
        },
    },
    Item {
        id: "turbo",
        advice: "turbo off: Turbo Boost, Core Performance Boost",
        why: "how high it goes depends on heat, power and the other cores",
        source: FLATSCHER,
        against: |facts| {
            let is = |knob, on: &str| setting::text(facts, knob).value().is_some_and(|v| v == on);
            let is_on = is(&power::NO_TURBO, "0") || is(&power::BOOST, "1");
            is_on.then(|| "the kernel finds turbo and has it on".into())
        },
    },
    Item {
        id: "c-states",
        advice: "idle states no deeper than C1: C-states, C1E, package C-state limit",
        why: "a deep idle state takes long to leave; many kernels ignore this setting, so limit \
              them in the system as well (cpuidle-states)",
        source: FLATSCHER,
        against: |facts| {
            let of = |cpu: &rtproof_host::facts::cpu::Cpu| cpu.idle_states.value().cloned();
            let states = facts.cpus.cpus.iter().filter_map(of).flatten();
            let deepest = states.max_by_key(|state| state.exit_latency_ns)?;
            (deepest.exit_latency_ns >= DEEP_NS).then(|| {
                let latency = quantity::ns(deepest.exit_latency_ns);
                format!("the kernel has idle state {} ({latency})", deepest.name)
            })
        },
    },
    Item {
        id: "frequency",
        advice: "no frequency scaling: EIST or SpeedStep, Speed Shift, Cool'n'Quiet, CPPC off",
        why: "the frequency changes with the load; where the kernel sets it, cpufreq-governor does",
        source: WU,
        against: |facts| {
            let scales = |cpu: &rtproof_host::facts::cpu::Cpu| cpu.freq.governor.value().is_some();
            facts.cpus.cpus.iter().any(scales).then(|| "the kernel scales frequencies".into())
        },
    },
    Item {
        id: "power-profile",
        advice: "power profile for performance: maximum performance, OS control off; real-time \
                 tuning (TCC mode) where there is one",
        why: "an energy-saving profile changes clocks and voltages behind the kernel's back",
        source: RIGTORP,
        against: |_| None,
    },
    Item {
        id: "usb-legacy",
        advice: "legacy USB support, USB keyboard emulation, port 60/64 emulation off",
        why: "the firmware plays a PS/2 keyboard in system management interrupts, on all CPUs",
        source: HARDWARE,
        against: |_| None,
    },
    Item {
        id: "smi",
        advice: "other sources of system management interrupts off: TCO watchdog, hardware \
                 monitoring and fan control by the firmware, BMC redirection",
        why: "each stops every CPU for 10 µs to milliseconds, and no kernel can prevent it",
        source: HARDWARE,
        against: |_| None,
    },
    Item {
        id: "ecc-scrubbing",
        advice: "patrol scrubbing, and the log of corrected memory errors in the firmware, off",
        why: "400 µs every 14 minutes were seen where firmware corrected memory errors",
        source: WU,
        against: |_| None,
    },
    Item {
        id: "aspm",
        advice: "power management of PCI Express links off: ASPM, L1 substates, Clock PM",
        why: "a link that sleeps delays each access to its device",
        source: HARDWARE,
        against: |_| None,
    },
    Item {
        id: "thermal",
        advice: "fans at full speed, no power limit below the processor's own (PL1, PL2, cTDP)",
        why: "a processor at its limit of heat or power is slowed down by hardware",
        source: HARDWARE,
        against: |_| None,
    },
    Item {
        id: "csm",
        advice: "compatibility module (CSM, legacy boot) and unused devices off",
        why: "legacy devices are played by the firmware in system management interrupts",
        source: HARDWARE,
        against: |_| None,
    },
];
