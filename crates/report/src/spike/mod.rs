//! What the pictures of a late wake-up share, on a page and on a terminal: words, the bars of its
//! causes, the axis that gives short ones room, and what each CPU did.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod lanes;
#[cfg(test)]
pub(crate) mod sample;

use rtproof_judge::{
    causes::{Explanation, Kind, Share, kind, title},
    units::grouped,
};

/// What a cause is called where there is little room: its id as words.
pub(crate) fn short(cause: &str) -> String {
    cause.replace(['_', '-'], " ")
}

/// Cause and culprit in a line.
pub(crate) fn named(share: &Share) -> String {
    let title = title(&share.cause);
    if share.culprit.is_empty() { title.into() } else { format!("{title}: {}", share.culprit) }
}

/// Cause and culprit, short.
pub(crate) fn named_short(share: &Share) -> String {
    let short = short(&share.cause);
    if share.culprit.is_empty() { short } else { format!("{short}: {}", share.culprit) }
}

/// What else a share may be, as a clause, and what was not recorded that would tell:
/// `or: interrupts off in the kernel`.
pub(crate) fn otherwise(share: &Share) -> Option<String> {
    let others: Vec<String> = share.or.iter().map(|id| title(id).to_owned()).collect();
    let or = (!others.is_empty()).then(|| format!("or: {}", others.join("; ")));
    let unseen = (!share.unseen.is_empty())
        .then(|| format!("likely only, not recorded: {}", share.unseen.join(", ")));
    let clauses: Vec<String> = or.into_iter().chain(unseen).collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// Colour of a cause on the page: causes of a kind have the same in every picture. Names carry the
/// meaning; colours only help to find them again.
pub(crate) fn class(cause: &str) -> &'static str {
    match kind(cause) {
        Kind::Interrupt => "s0",
        Kind::Scheduling => "s1",
        Kind::Softirq => "s2",
        Kind::Hardware => "s3",
        Kind::Throttling => "s4",
        Kind::Blocking => "s5",
        Kind::Power => "s6",
        Kind::Own => "s7",
        Kind::Unknown => "grey",
    }
}

/// What the causes of a class are called.
pub(crate) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Interrupt => "interrupts",
        Kind::Softirq => "softirqs",
        Kind::Scheduling => "other threads",
        Kind::Throttling => "quotas",
        Kind::Blocking => "locks, preemption or interrupts off",
        Kind::Hardware => "hardware or hypervisor",
        Kind::Power => "idle states, frequency",
        Kind::Own => "the thread itself",
        Kind::Unknown => "not explained",
    }
}

/// What a share belongs to, as a clause: `belongs to ext4`.
pub(crate) fn owner(share: &Share) -> Option<String> {
    share.owner.as_ref().map(|owner| format!("belongs to {owner}"))
}

/// Microseconds with one decimal, whatever their size: `3 449.6 µs`.
pub(crate) fn us(value_ns: u64) -> String {
    format!("{} µs", us_number(value_ns))
}

/// The same without the unit.
pub(crate) fn us_number(value_ns: u64) -> String {
    let tenths = value_ns.saturating_add(50) / 100;
    format!("{}.{}", grouped(tenths / 10), tenths % 10)
}

/// Percent of a whole with one decimal; `–` of nothing.
pub(crate) fn percent(part_ns: u64, whole_ns: u64) -> String {
    if whole_ns == 0 {
        return "–".into();
    }
    let tenths = (u128::from(part_ns) * 1000 + u128::from(whole_ns) / 2) / u128::from(whole_ns);
    match (tenths, part_ns) {
        (0, 1..) => "<0.1 %".into(),
        _ => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

/// Sum of the shares. It is the latency, unless the record was altered.
pub(crate) fn sum_ns(explanation: &Explanation) -> u64 {
    explanation.shares.iter().fold(0, |sum: u64, share| sum.saturating_add(share.ns))
}

/// The shares that a list has room for, and number and sum of the others.
pub(crate) fn listed(explanation: &Explanation) -> (&[Share], Option<(usize, u64)>) {
    const LISTED_MAX: usize = 48;
    let (listed, rest) = explanation.shares.split_at(explanation.shares.len().min(LISTED_MAX));
    let rest_ns = rest.iter().fold(0, |sum: u64, share| sum.saturating_add(share.ns));
    (listed, (!rest.is_empty()).then_some((rest.len(), rest_ns)))
}

/// The steps of a wake-up that were seen, in order: name and time.
pub(crate) fn steps(explanation: &Explanation) -> Vec<(&'static str, u64)> {
    let wake = &explanation.wake;
    let steps = [
        ("due", Some(wake.due_ns)),
        ("interrupt", explanation.irq_ns),
        ("woken", explanation.woken_ns),
        ("switched to", explanation.switched_ns),
        ("ran", Some(wake.ran_ns)),
    ];
    let mut seen: Vec<_> =
        steps.into_iter().filter_map(|(name, at_ns)| Some((name, at_ns?))).collect();
    // The interrupt that serves a timer may have begun before the timer was due.
    seen.sort_by_key(|(_, at_ns)| *at_ns);
    seen
}

/// Whether a detail is a frame of a stack: `function+0x1f/0x80`, or an address.
pub(crate) fn is_frame(detail: &str) -> bool {
    !detail.contains(' ') && (detail.contains("+0x") || detail.starts_with("0x"))
}

/// The numbers of a spike in a sentence.
pub(crate) fn sentence(explanation: &Explanation) -> String {
    const NAMED: usize = 6;
    let shares = explanation.shares.iter().take(NAMED);
    let mut shares: Vec<String> =
        shares.map(|share| format!("{} {}", named(share), us(share.ns))).collect();
    let more = explanation.shares.len().saturating_sub(NAMED);
    if more > 0 {
        shares.push(format!("{more} more"));
    }
    let wake = &explanation.wake;
    format!(
        "{} on CPU {} ran {} late: {}.",
        explanation.task,
        wake.cpu,
        us(wake.latency_ns()),
        shares.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_to_the_tenth() {
        let plain = |ns| us(ns).replace('\u{202f}', " ");
        assert_eq!(plain(3_449_602), "3 449.6 µs");
        assert_eq!((plain(0).as_str(), plain(49).as_str()), ("0.0 µs", "0.0 µs"));
        assert_eq!(plain(999_950), "1 000.0 µs");
        assert_eq!(percent(1, 1_000_000), "<0.1 %");
        assert_eq!((percent(0, 5), percent(5, 5)), ("0.0 %".into(), "100.0 %".into()));
        assert_eq!(percent(1, 0), "–");
    }

    #[test]
    fn kinds_have_colours_and_what_is_new_is_grey() {
        let cases = [
            ("irqs-off", "s5"),
            ("softirq", "s2"),
            ("irq", "s0"),
            ("stall", "s3"),
            ("preempted", "s1"),
            ("page-fault", "s7"),
            ("never-seen", "grey"),
        ];
        for (cause, of) in cases {
            assert_eq!(class(cause), of, "{cause}");
        }
        // Every cause that there is has one, but for what nobody knows.
        for cause in rtproof_judge::causes::CAUSES {
            let grey = class(cause.id) == "grey";
            assert_eq!(grey, cause.id == "unexplained", "{}", cause.id);
        }
    }
}
