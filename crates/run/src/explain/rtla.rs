//! What rtla's own analysis says, as an explanation: its sums, and no event to check them with.

use rtproof_judge::causes::{self, Explanation, Share, Span};
use rtproof_trace::{
    Coverage, How, WakeUp, Window,
    ftrace_text::{RtlaCpu, RtlaPart, parse_rtla},
};

/// What makes each of them likely only.
const UNSEEN: &str = "the events: rtla prints sums alone";

/// The wake-ups that rtla analysed; `None`: the text holds no analysis.
pub(super) fn of_text(text: &str) -> Option<Vec<(WakeUp, Window, Explanation)>> {
    let analysis = parse_rtla(text)?;
    Some(analysis.cpus.iter().filter_map(of_cpu).collect())
}

fn of_cpu(cpu: &RtlaCpu) -> Option<(WakeUp, Window, Explanation)> {
    // The last part, behind the rule, is the whole.
    let whole_ns = cpu.parts.last()?.ns?;
    let wake = WakeUp { tid: -1, cpu: cpu.cpu, due_ns: 0, ran_ns: whole_ns, how: How::Measured };
    let mut shares = shares(cpu, whole_ns);
    let mut left_ns = whole_ns;
    for share in &mut shares {
        share.ns = share.ns.min(left_ns);
        left_ns -= share.ns;
    }
    if left_ns > 0 {
        let text = "rtla's parts do not sum to the latency".to_owned();
        shares.push(share("unexplained", "", left_ns, vec![text]));
    }
    shares.retain(|share| share.ns > 0);
    shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
    let mut at_ns = 0;
    let spans = (0..).zip(&shares).map(|(number, share)| {
        at_ns += share.ns;
        Span { from_ns: at_ns - share.ns, to_ns: at_ns, share: number }
    });
    let spans = spans.collect();
    let explanation = Explanation {
        wake,
        task: format!("timerlat/{}", cpu.cpu),
        irq_ns: None,
        woken_ns: None,
        switched_ns: None,
        spans,
        shares,
        incomplete: vec!["rtla's analysis holds sums, not events: their order is not known".into()],
        wakers: Vec::new(),
    };
    let window =
        Window { cpu: cpu.cpu, to_ns: whole_ns, coverage: Coverage::none(), ..Window::default() };
    Some((wake, window, explanation))
}

fn shares(cpu: &RtlaCpu, whole_ns: u64) -> Vec<Share> {
    let ns = |name: &str| cpu.part(name).and_then(|part| part.ns).unwrap_or(0);
    let who = |part: &RtlaPart| -> String {
        let names = part.who.iter().map(|(name, id, _)| format!("{name}:{id}"));
        names.collect::<Vec<_>>().join(", ")
    };
    let blocking = cpu.part("Blocking thread");
    let blocker = blocking.map(&who).unwrap_or_default();
    let stack = kernel_stack(&cpu.stack);
    let function = stack.first().map(|function| format!("{function} in ")).unwrap_or_default();
    let stack = (!stack.is_empty()).then(|| stack.join(" ← "));
    let stops_at_irq = cpu.part("Thread latency").is_none();
    let mut shares = Vec::new();
    let irq_ns = if stops_at_irq { whole_ns } else { ns("IRQ latency") };
    let delay = cpu.part("IRQ handler delay");
    let is_idle = delay
        .and_then(|delay| delay.remark.as_deref())
        .is_some_and(|remark| remark.contains("idle"));
    if is_idle {
        shares.push(share("idle-exit", "", irq_ns, Vec::new()));
    } else if irq_ns > 0 {
        let mut late = share(
            "irqs-off",
            &format!("{function}{blocker}"),
            irq_ns,
            stack.clone().into_iter().collect(),
        );
        late.or = vec!["stall".into(), "masked".into()];
        shares.push(late);
    }
    shares.push(share("timer-work", "timerlat", ns("Timerlat IRQ duration"), Vec::new()));
    if !stops_at_irq {
        let held_ns = blocking.and_then(|part| part.ns).unwrap_or(0);
        let culprit = format!("{function}{blocker}");
        shares.push(share("preempt-off", &culprit, held_ns, stack.into_iter().collect()));
    }
    for (name, cause) in [
        ("NMI interference", "nmi"),
        ("IRQ interference", "irq"),
        ("Softirq interference", "softirq"),
        ("Thread interference", "preempted"),
    ] {
        let Some(part) = cpu.part(name) else { continue };
        let named_ns: u64 = part.who.iter().filter_map(|(_, _, ns)| *ns).sum();
        for (name, id, ns) in &part.who {
            shares.push(share(cause, &format!("{name}:{id}"), ns.unwrap_or(0), Vec::new()));
        }
        let rest_ns = part.ns.unwrap_or(0).saturating_sub(named_ns);
        shares.push(share(cause, "", rest_ns, Vec::new()));
    }
    shares
}

/// The functions that the timer interrupt interrupted: those below its entry.
fn kernel_stack(stack: &[String]) -> Vec<String> {
    let is_entry = |name: &String| name.starts_with("asm_") || name.ends_with("_irq");
    let below = stack.iter().rposition(is_entry).map_or(0, |at| at + 1);
    stack[below..].to_vec()
}

fn share(cause: &str, culprit: &str, ns: u64, detail: Vec<String>) -> Share {
    let checks = causes::find(cause).map(|cause| cause.checks).unwrap_or_default();
    let mut share = Share {
        cause: cause.into(),
        culprit: culprit.into(),
        ns,
        or: Vec::new(),
        unseen: vec![UNSEEN.into()],
        certainty: None,
        detail,
        owner: None,
        checks: checks.iter().map(ToString::to_string).collect(),
        remedies: Vec::new(),
    };
    share.certainty = Some(share.certainty());
    share
}
