//! Counters of the host as series: what of `/proc/stat` and its like is worth a picture.

use rtproof_record::{
    Run,
    run::{HostCpuSecond, HostSecond},
};

use crate::svg::host::Counter;

/// Counters of a run that have at least one reading and, for those that only matter when they
/// happen, at least one that is not zero.
pub(super) fn of(run: &Run) -> Vec<Counter> {
    let all = [
        counter(run, ("steal", "Time stolen by the hypervisor", "ms per second"), true, |second| {
            single(sum(second, |cpu| cpu.steal_ms))
        }),
        counter(run, ("interrupts", "Interrupts", "per second"), true, |second| {
            single(second.interrupts)
        }),
        counter(run, ("switches", "Context switches", "per second"), true, |second| {
            single(second.context_switches)
        }),
        counter(run, ("busy", "CPU time used, all CPUs", "ms per second"), true, |second| {
            single(sum(second, |cpu| cpu.busy_ms))
        }),
        counter(run, ("frequency", "CPU frequency", "GHz"), false, frequency),
        counter(run, ("temperature", "Hottest thermal zone", "°C"), false, |second| {
            second.temp_max_mc.map(|mc| [mc as f64 / 1000.0; 3])
        }),
    ];
    all.into_iter()
        .filter(|counter| {
            counter.summary().is_some_and(|[.., high]| counter.id != "steal" || high > 0.0)
        })
        .collect()
}

fn counter(
    run: &Run,
    (id, title, unit): (&'static str, &'static str, &'static str),
    from_zero: bool,
    value: impl Fn(&HostSecond) -> Option<[f64; 3]>,
) -> Counter {
    let points =
        run.host.iter().filter_map(|second| Some((second.at_ns, value(second)?))).collect();
    Counter { id, title, unit, points, from_zero }
}

fn single(value: Option<u64>) -> Option<[f64; 3]> {
    value.map(|value| [value as f64; 3])
}

fn sum(second: &HostSecond, of: fn(&HostCpuSecond) -> u64) -> Option<u64> {
    (!second.cpus.is_empty()).then(|| second.cpus.iter().map(of).sum())
}

/// Slowest, mean and fastest CPU, in GHz.
fn frequency(second: &HostSecond) -> Option<[f64; 3]> {
    let ghz: Vec<f64> =
        second.cpus.iter().filter_map(|cpu| cpu.freq_hz).map(|hz| hz as f64 / 1e9).collect();
    let low = ghz.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ghz.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (!ghz.is_empty()).then(|| [low, ghz.iter().sum::<f64>() / ghz.len() as f64, high])
}
