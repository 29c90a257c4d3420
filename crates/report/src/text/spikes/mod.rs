//! The spikes of a run as text: how many, what caused them, the worst one, what would remove the
//! largest cause.

use std::io::{self, Write};

use rtproof_judge::{
    Report,
    causes::{Recorder, Spike, Spikes},
    units::{self, grouped},
};
use rtproof_record::Run;
use rtproof_trace::Window;

use super::timeline::{letter, style, timeline};
use crate::{
    spike::{self, percent, us},
    text::sheet::{BOLD, DIM, Page, Sheet, WARN},
};

mod causes;

/// Most shares named below a timeline.
const SHARES_MAX: usize = 8;
const INDENT: &str = "         ";

/// The spikes after the measured part. `window`: the events round the worst, `spikes.worst[0]`,
/// where they were kept.
pub fn spikes(to: &mut Sheet, spikes: &Spikes, window: Option<&Window>) -> io::Result<()> {
    to.page.spikes(to, spikes, window)
}

/// The spikes of a run, where its record has any.
pub fn spikes_of(to: &mut Sheet, run: &Run, report: &Report) -> io::Result<()> {
    let Some(told) = &report.spikes else { return Ok(()) };
    let window = |worst: &Spike| run.spikes.as_ref()?.window(worst.number);
    spikes(to, told, told.worst.first().and_then(window))
}

impl Page {
    pub(super) fn spikes(
        self,
        to: &mut dyn Write,
        spikes: &Spikes,
        window: Option<&Window>,
    ) -> io::Result<()> {
        self.wrapped(to, &format!("{BOLD}Spikes{BOLD:#}   "), INDENT, &summary(spikes))?;
        if spikes.incomplete > 0 {
            let text = format!(
                "{} incomplete: events were lost or missing, so that shares may be wrong",
                grouped(spikes.incomplete)
            );
            self.wrapped(to, &format!("{INDENT}{WARN}!{WARN:#} "), "           ", &text)?;
        }
        self.causes(to, spikes)?;
        for of in &spikes.structure {
            self.wrapped(to, &format!("{INDENT}{DIM}-{DIM:#} "), "           ", &of.text)?;
        }
        if let Some(worst) = spikes.worst.first() {
            self.worst(to, worst, window)?;
        }
        let text = format!("{}{DIM:#}", recorder(&spikes.recorder));
        self.wrapped(to, &format!("{INDENT}{DIM}"), INDENT, &text)
    }

    fn worst(self, to: &mut dyn Write, worst: &Spike, window: Option<&Window>) -> io::Result<()> {
        let explanation = &worst.explanation;
        let phase =
            if worst.phase.is_empty() { String::new() } else { format!(", {}", worst.phase) };
        let text = format!(
            "{} late on CPU {}{phase}: spike {}",
            us(explanation.wake.latency_ns()),
            explanation.wake.cpu,
            worst.number
        );
        self.wrapped(to, &format!("{BOLD}Worst{BOLD:#}    "), INDENT, &text)?;
        timeline(to, explanation, window, self.columns, self.glyphs)?;
        for (i, share) in explanation.shares.iter().enumerate().take(SHARES_MAX) {
            let tone = style(&share.cause);
            let time = us(share.ns);
            let first = format!("        {tone}{}{tone:#} {time:>12} ", letter(i));
            self.wrapped(to, &first, &" ".repeat(23), &spike::named(share))?;
        }
        let more = explanation.shares.len().saturating_sub(SHARES_MAX);
        if more > 0 {
            writeln!(to, "        {DIM}and {more} more{DIM:#}")?;
        }
        Ok(())
    }
}

fn summary(spikes: &Spikes) -> String {
    let limit = units::ns(spikes.threshold_ns);
    let limit = if spikes.adaptive { format!("{limit} (from the run)") } else { limit };
    if spikes.seen == 0 {
        return format!("none later than {limit}");
    }
    let unexamined = match spikes.unexamined {
        0 => String::new(),
        n => format!(", {} not examined", grouped(n)),
    };
    if spikes.explained == 0 {
        return format!("{} later than {limit}, none explained{unexamined}", grouped(spikes.seen));
    }
    format!(
        "{} later than {limit}, {} explained{unexamined}; {} of {} is attributed unambiguously",
        grouped(spikes.seen),
        grouped(spikes.explained),
        percent(spikes.certain_ns, spikes.sum_ns),
        us(spikes.sum_ns)
    )
}

/// How it was recorded, in a line.
fn recorder(recorder: &Recorder) -> String {
    let mut texts = Vec::new();
    texts.extend(recorder.off.as_ref().map(|why| format!("nothing recorded: {why}")));
    texts.extend(recorder.cost_p50_ns.map(|cost_ns| {
        let sign = if cost_ns < 0 { '−' } else { '+' };
        format!("recording costs {sign}{} at p50", units::ns(cost_ns.unsigned_abs()))
    }));
    if recorder.off.is_none() && recorder.cost_p50_ns.is_none() {
        texts.push("cost of recording not measured".into());
    }
    if recorder.off.is_none() {
        texts.push(format!("{} events lost", grouped(recorder.lost_events)));
    }
    if recorder.blind_ns > 0 {
        texts.push(format!("{} without recording", units::duration(recorder.blind_ns)));
    }
    if !recorder.missing.is_empty() {
        texts.push(format!("not there: {}", recorder.missing.join("; ")));
    }
    texts.join("; ")
}

#[cfg(test)]
mod tests;
