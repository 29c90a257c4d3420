//! What rtla timerlat tells when it stops at a threshold, alone: one sample and its analysis.

use rtproof_stats::Bins;

use super::super::{
    Hints, ImportError, Imported, Importer, Kind,
    draft::{draft, series},
    text::{Text, decimal_ns, head, quoted},
};

const MARK: &str = "hit stop tracing, analyzing it ##";

pub(in super::super) const STOP: Importer = Importer {
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
            let number = text.number(line, rest.split(' ').next().unwrap_or(""))?;
            cpu = Some(
                u32::try_from(number).map_err(|_| text.at(line.number, format!("CPU {number}")))?,
            );
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
                return Err(text.at(line.number, format!("{}, expected a latency", quoted(shown))));
            }
        };
        let ns = decimal_ns(value.trim(), 1000);
        let ns =
            ns.ok_or_else(|| text.at(line.number, format!("{}, expected a time", quoted(value))))?;
        let cpu = cpu.take().ok_or_else(|| text.at(line.number, "a latency of no CPU"))?;
        let suffix = if kind == Kind::IrqLatency { " IRQ" } else { "" };
        let mut thread = series(format!("CPU {cpu}{suffix}"), kind);
        thread.cpu = Some(cpu);
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
