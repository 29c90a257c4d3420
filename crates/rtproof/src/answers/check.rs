//! The answer of `check`: how many findings stand, the worst of them, what to do about them.

use std::path::Path;

use rtproof_judge::{Finding, Status};
use rtproof_results::answer::{Answer, Tone};

use crate::next::{self, Given};

/// Findings that are named.
const NAMED_MAX: usize = 3;

/// The answer. `only`: checks and sections that were asked for; `root`: the machine, where it is
/// not the running one.
pub(crate) fn answer(
    findings: &[Finding],
    given: &Given<'_>,
    only: &[String],
    root: Option<&Path>,
) -> Answer {
    let count =
        |status| findings.iter().filter(|it| it.skipped.is_none() && it.status == status).count();
    let (bad, doubtful) = (count(Status::Bad), count(Status::Doubtful));
    let unknown = count(Status::Unknown);
    let tone = match (bad, doubtful + unknown) {
        (0, 0) => Tone::Good,
        (0, _) => Tone::Doubtful,
        _ => Tone::Bad,
    };
    let next = if bad + doubtful > 0 {
        let ids: String = only.iter().map(|id| format!(" {}", next::quoted(id))).collect();
        Some(format!("rtproof tune plan{}{}{ids}", given.options(), next::root(root)))
    } else {
        root.is_none().then(|| given.prove())
    };
    let result = format!("{bad} bad, {doubtful} doubtful of {}; {unknown} unknown", findings.len());
    Answer { result, tone, why: why(findings), next }
}

/// The worst findings that stand.
fn why(findings: &[Finding]) -> Option<String> {
    let mut worst: Vec<&Finding> = findings.iter().filter(|finding| finding.stands()).collect();
    worst.sort_by_key(|finding| (finding.status, finding.impact, finding.when));
    let more = worst.len().saturating_sub(NAMED_MAX);
    let mut named: Vec<String> = worst
        .iter()
        .take(NAMED_MAX)
        .map(|it| format!("{}: {}", it.check, short(&it.summary)))
        .collect();
    named.extend((more > 0).then(|| format!("and {more} more")));
    (!named.is_empty()).then(|| named.join("; "))
}

/// The first part of a summary.
fn short(summary: &str) -> &str {
    summary.split_once("; ").map_or(summary, |(first, _)| first).trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent::IntentArgs;
    use rtproof_judge::{Impact, When};

    fn given(intent: &IntentArgs) -> Given<'_> {
        Given {
            intent,
            cpus: Some("2-3"),
            priority: None,
            period_ns: None,
            budget_ns: Some(100_000),
            user: None,
        }
    }

    /// Four findings with this status.
    fn findings(status: Status) -> Vec<Finding> {
        let finding = |check: &str| Finding {
            check: check.into(),
            status,
            summary: format!("{check} is wrong; it costs"),
            wanted: String::new(),
            cpus: None,
            evidence: Vec::new(),
            why: String::new(),
            source: String::new(),
            remedies: Vec::new(),
            when: When::default(),
            impact: Impact::default(),
            trade_off: None,
            skipped: None,
        };
        ["thp", "swap", "timers", "memory"].map(finding).to_vec()
    }

    #[test]
    fn what_is_bad_is_planned_for_with_the_options_that_were_given() {
        let intent = IntentArgs { profile: Some("audio".into()), ..IntentArgs::default() };
        let path = Path::new("my machine.txt");
        let only = ["power".to_owned()];
        let answer = answer(&findings(Status::Bad), &given(&intent), &only, Some(path));
        assert_eq!(answer.result, "4 bad, 0 doubtful of 4; 0 unknown");
        assert_eq!(answer.tone, Tone::Bad);
        let why = answer.why.expect("reasons");
        assert!(why.starts_with("thp: thp is wrong; "), "{why}");
        assert!(why.ends_with("; and 1 more"), "{why}");
        let expected = "rtproof tune plan --profile audio --cpus 2-3 --budget 100us --root \
                        'my machine.txt' power";
        assert_eq!(answer.next.as_deref(), Some(expected));
    }

    #[test]
    fn where_nothing_is_bad_the_machine_is_measured_if_it_is_here() {
        let intent = IntentArgs::default();
        let findings = findings(Status::Unknown);
        let here = answer(&findings, &given(&intent), &[], None);
        assert_eq!(here.tone, Tone::Doubtful, "unknown is no pass");
        assert_eq!(here.next.as_deref(), Some("rtproof prove --cpus 2-3 --budget 100us"));
        assert_eq!(here.why, None);
        let captured = answer(&findings, &given(&intent), &[], Some(Path::new("machine.txt")));
        assert_eq!(captured.next, None);
    }
}
