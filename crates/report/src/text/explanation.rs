//! One late wake-up as text: its steps, its shares as a sum, its timeline, who woke it, what would
//! remove it.

use std::io::{self, Write};

use rtproof_judge::{
    causes::{Explanation, Share},
    units::grouped,
};
use rtproof_trace::Window;

use super::timeline::{blocks_of, letter, style, timeline};
use crate::{
    spike::{self, percent, us, us_number},
    text::sheet::{BAD, BOLD, DIM, Page, Sheet, WARN, wrapped_in},
};

/// Shares of less than one in so many have no remedies shown.
const SMALL: u64 = 20;

/// Why a wake-up was late. `window`: the events round it, where they were kept.
pub fn explanation(
    to: &mut Sheet,
    explanation: &Explanation,
    window: Option<&Window>,
) -> io::Result<()> {
    to.page.explanation(to, explanation, window)
}

impl Page {
    pub(super) fn explanation(
        self,
        to: &mut dyn Write,
        explanation: &Explanation,
        window: Option<&Window>,
    ) -> io::Result<()> {
        let wake = &explanation.wake;
        let text =
            format!("{} late on CPU {}: {}", us(wake.latency_ns()), wake.cpu, explanation.task);
        self.wrapped(to, &format!("{BOLD}Spike{BOLD:#}    "), "         ", &text)?;
        for why in &explanation.incomplete {
            let first = format!("         {WARN}!{WARN:#} ");
            self.wrapped(to, &first, "           ", &format!("incomplete: {why}"))?;
        }
        self.wrapped(to, &format!("{BOLD}Steps{BOLD:#}    "), "         ", &steps(explanation))?;
        self.shares(to, explanation)?;
        writeln!(to)?;
        timeline(to, explanation, window, self.columns, self.glyphs)?;
        if window.is_none() {
            let text = "its events were not kept: only the causes are drawn";
            self.wrapped(to, &format!("        {DIM}"), "        ", &format!("{text}{DIM:#}"))?;
        }
        if !explanation.wakers.is_empty() {
            let text = explanation.wakers.join(", which was woken by ");
            self.wrapped(to, &format!("{BOLD}Woken by{BOLD:#} "), "         ", &text)?;
        }
        self.remedies(to, explanation)
    }

    /// The shares with bars, what is known of each, and their sum.
    pub(super) fn shares(self, to: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
        let (sum_ns, late_ns) = (spike::sum_ns(explanation), explanation.wake.latency_ns());
        let wide = format!("= {}", grouped(sum_ns)).chars().count();
        let bar_columns = if self.columns >= 80 { 12 } else { 6 };
        writeln!(to, "{BOLD}Shares{BOLD:#}{DIM}{:>n$}{DIM:#}", "ns", n = wide - 2)?;
        let blocks = blocks_of(&self.glyphs, explanation);
        let (listed, rest) = spike::listed(explanation);
        for ((i, share), block) in listed.iter().enumerate().zip(blocks) {
            let (tone, ns) = (style(&share.cause), grouped(share.ns));
            let of = percent(share.ns, late_ns);
            let bar = Self::bar(share.ns, late_ns, bar_columns, block);
            let first = format!(
                "  {tone}{}{tone:#} {ns:>n$} {of:>7} {tone}{bar}{tone:#} ",
                letter(i),
                n = wide
            );
            let next = " ".repeat(4 + wide + 9 + bar_columns + 1);
            self.wrapped(to, &first, &next, &spike::named(share))?;
            // Paths and stacks are long: on narrow terminals they have the whole line.
            let next = if self.columns >= 80 { next } else { " ".repeat(6) };
            for (frame, text) in known(share) {
                let indent = if frame { "  " } else { "" };
                let first = format!("{next}{indent}{DIM}");
                self.wrapped(to, &first, &format!("{next}  "), &format!("{text}{DIM:#}"))?;
            }
        }
        if let Some((count, ns)) = rest {
            let of = percent(ns, late_ns);
            writeln!(to, "    {:>wide$} {of:>7} {count} more", grouped(ns))?;
        }
        let sum = format!("= {}", grouped(sum_ns));
        let (tone, text) = match sum_ns == late_ns {
            true => (BOLD, "the latency, exactly".to_owned()),
            false => (BAD, format!("not the latency: {} ns", grouped(late_ns))),
        };
        let first = format!("    {BOLD}{sum:>wide$}{BOLD:#} {:>7} ", percent(sum_ns, late_ns));
        let next = " ".repeat(4 + wide + 9);
        self.wrapped(to, &first, &next, &format!("{tone}{text}{tone:#}"))
    }

    fn bar(ns: u64, of_ns: u64, columns: usize, block: char) -> String {
        let part = ns as f64 / of_ns.max(1) as f64 * columns as f64;
        let filled = (part.round() as usize).clamp(usize::from(ns > 0), columns);
        format!("{}{}", block.to_string().repeat(filled), " ".repeat(columns - filled))
    }

    /// What would remove its causes, by their letters.
    fn remedies(self, to: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
        // What took little is not worth a change.
        let least_ns = explanation.wake.latency_ns() / SMALL;
        let listed = || spike::listed(explanation).0.iter().enumerate();
        let shares = || listed().filter(|(i, share)| *i == 0 || share.ns >= least_ns);
        if shares().all(|(_, share)| share.remedies.is_empty() && share.checks.is_empty()) {
            return Ok(());
        }
        writeln!(to, "{BOLD}Remedies{BOLD:#}")?;
        for (i, share) in shares() {
            let tone = style(&share.cause);
            let first = format!("  {tone}{}{tone:#} ", letter(i));
            for remedy in &share.remedies {
                self.wrapped(to, &first, "    ", &remedy.to_string())?;
            }
            if !share.checks.is_empty() {
                let text = format!("rtproof check explain {}", share.checks.join(" | "));
                self.wrapped(
                    to,
                    &format!("  {tone}{}{tone:#} {DIM}", letter(i)),
                    "    ",
                    &format!("{text}{DIM:#}"),
                )?;
            }
        }
        Ok(())
    }

    pub(super) fn wrapped(
        self,
        to: &mut dyn Write,
        first: &str,
        next: &str,
        text: &str,
    ) -> io::Result<()> {
        wrapped_in(self.columns, to, first, next, text)
    }
}

/// The steps with the time between them: `due, +2 658.7 interrupt, +3.8 woken ... µs`.
fn steps(explanation: &Explanation) -> String {
    let steps = spike::steps(explanation);
    let mut before_ns = None;
    let texts: Vec<String> = steps
        .into_iter()
        .map(|(name, at_ns)| match before_ns.replace(at_ns) {
            Some(before_ns) => format!("+{} {name}", us_number(at_ns - before_ns)),
            None => name.to_owned(),
        })
        .collect();
    format!("{} (µs)", texts.join(", "))
}

/// What more is known of a share; frames of a stack one by one.
fn known(share: &Share) -> Vec<(bool, String)> {
    let (frames, mut texts): (Vec<String>, Vec<String>) =
        share.detail.iter().cloned().partition(|detail| spike::is_frame(detail));
    texts.splice(0..0, spike::owner(share));
    texts.splice(0..0, spike::otherwise(share));
    let text = texts.join("; ");
    let text = (!text.is_empty()).then_some((false, text));
    text.into_iter().chain(frames.into_iter().map(|frame| (true, frame))).collect()
}
