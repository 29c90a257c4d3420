//! What a second of the host shows: each row is a chart and a column of the table in section
//! "host".

use rtproof_record::run::{HostCpuSecond, HostSecond};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// `steal`, `interrupts` ...; part of the chart's id.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Unit, after the number.
    pub(crate) unit: &'static str,
    /// Where its axis starts, and whether it is shown at all.
    pub(crate) shown: Shown,
    /// Smallest, mean and largest value of a second.
    pub(crate) value: fn(&HostSecond) -> Option<[f64; 3]>,
}

/// How a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    FromZero,
    /// From zero, and only if it was not zero all the time.
    IfAny,
    /// From the smallest value on.
    Range,
}

const fn column(
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    shown: Shown,
    value: fn(&HostSecond) -> Option<[f64; 3]>,
) -> Column {
    Column { id, title, unit, shown, value }
}

/// Every column, in the order of the page.
pub(crate) const COLUMNS: &[Column] = &[
    column("steal", "Time stolen by the hypervisor", "ms per second", Shown::IfAny, |second| {
        sum(second, |cpu| cpu.steal_ms)
    }),
    column("interrupts", "Interrupts", "per second", Shown::FromZero, |second| {
        single(second.interrupts)
    }),
    column("switches", "Context switches", "per second", Shown::FromZero, |second| {
        single(second.context_switches)
    }),
    column("busy", "CPU time used, all CPUs", "ms per second", Shown::FromZero, |second| {
        sum(second, |cpu| cpu.busy_ms)
    }),
    column("frequency", "CPU frequency", "GHz", Shown::Range, frequency),
    column("temperature", "Hottest thermal zone", "°C", Shown::Range, |second| {
        second.temp_max_mc.map(|mc| [mc as f64 / 1000.0; 3])
    }),
];

fn single(value: Option<u64>) -> Option<[f64; 3]> {
    value.map(|value| [value as f64; 3])
}

fn sum(second: &HostSecond, of: fn(&HostCpuSecond) -> u64) -> Option<[f64; 3]> {
    single((!second.cpus.is_empty()).then(|| second.cpus.iter().map(of).sum()))
}

/// Slowest, mean and fastest CPU, in GHz.
fn frequency(second: &HostSecond) -> Option<[f64; 3]> {
    let ghz: Vec<f64> =
        second.cpus.iter().filter_map(|cpu| cpu.freq_hz).map(|hz| hz as f64 / 1e9).collect();
    let low = ghz.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ghz.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (!ghz.is_empty()).then(|| [low, ghz.iter().sum::<f64>() / ghz.len() as f64, high])
}
