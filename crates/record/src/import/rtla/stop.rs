//! What rtla timerlat tells when it stops at a threshold, alone: one sample and its analysis.

use rtproof_stats::Bins;

use super::super::{
    Hints, ImportError, Imported, Importer, Kind,
    draft::{draft, of_cpu},
    text::{Text, decimal_ns, head},
};

const MARK: &str = "hit stop tracing, analyzing it ##";

pub(crate) const STOP: Importer = Importer {
    id: "rtla-timerlat-stop",
    title: "What rtla timerlat tells of the sample that stopped it.",
    detect: |bytes| {
        head(bytes)
            .lines()
            .any(|line| line.starts_with("## CPU ") && line.trim_end().ends_with(MARK))
    },
    read,
};

fn read(bytes: &[u8], hints: &Hints) -> Result<Imported, ImportError> {
    let text = Text::new(bytes, hints)?;
    // Values are in microseconds with two digits behind the point.
    let mut imported = draft("rtla timerlat", 10, hints);
    let mut cpu = None;
    for line in text.lines() {
        super::remark(&mut imported, line.text);
        let shown = line.text.trim();
        if let Some(rest) = shown.strip_prefix("## CPU ") {
            cpu = Some(line.cpu(rest.split(' ').next().unwrap_or(""))?);
        }
        // The sum stands at the end, as all of itself.
        let Some(sum) = shown.strip_suffix("us (100%)").or(shown.strip_suffix("us (100 %)")) else {
            continue;
        };
        let (what, value) = sum.split_once(':').unwrap_or(("", sum));
        let kind = match what.trim() {
            "IRQ latency" => Kind::IrqLatency,
            "Thread latency" => Kind::Latency,
            _ => {
                return Err(line.unexpected(shown, "a latency"));
            }
        };
        let ns = decimal_ns(value.trim(), 1000);
        let ns = ns.ok_or_else(|| line.unexpected(value, "a time"))?;
        let cpu = cpu.take().ok_or_else(|| line.at("a latency of no CPU"))?;
        if imported.threads.iter().any(|other| (other.cpu, other.kind) == (Some(cpu), kind)) {
            return Err(line.at(format!("CPU {cpu} comes again; import each run by itself")));
        }
        let mut thread = of_cpu(cpu, kind);
        thread.n = 1;
        (thread.min_ns, thread.max_ns) = (Some(ns), Some(ns));
        thread.mean_ns = Some(ns as f64);
        thread.bins = Bins::from_values([ns]);
        imported.threads.push(thread);
    }
    if imported.threads.is_empty() || cpu.is_some() {
        return Err(text.cut("the sum of the latency (100%)"));
    }
    imported.doubt(
        "one-sample",
        "the file holds the one sample that stopped the run: no distribution, no rate and no \
         maximum of the machine follow from it",
    );
    imported.conclude();
    Ok(imported)
}
