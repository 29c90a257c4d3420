//! What the pictures of a late wake-up share, on a page and on a terminal: words, the bars of its
//! causes, the axis that gives short ones room, and what each CPU did.

#[cfg(test)]
pub(crate) mod sample;

use std::collections::BTreeSet;

use rtproof_judge::{
    causes::{CauseKind, Certainty, Explanation, Share, kind, title},
    units::grouped,
};
use rtproof_trace::{
    Event, EventData, Window,
    context::{CpuState, Stretch, reconstruct},
    event::{self, softirq_name},
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

/// What else a share may be, as a clause, and the missing events that would decide it:
/// `or: interrupts off in the kernel`. `None` for one that is certain.
pub(crate) fn otherwise(share: &Share) -> Option<String> {
    let others: Vec<String> = share.alternatives.iter().map(|id| title(id).to_owned()).collect();
    let or = (!others.is_empty()).then(|| format!("or: {}", others.join("; ")));
    let unseen = (!share.unrecorded.is_empty())
        .then(|| format!("likely only, not recorded: {}", share.unrecorded.join(", ")));
    let is_bare = share.certainty() == Certainty::Likely && or.is_none() && unseen.is_none();
    let bare = is_bare.then(|| "likely only".to_owned());
    let clauses: Vec<String> = or.into_iter().chain(unseen).chain(bare).collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// Colour of a cause on the page: causes of a kind have the same in every picture. Names carry the
/// meaning; colours only help to find them again.
pub(crate) fn class(cause: &str) -> &'static str {
    match kind(cause) {
        CauseKind::Interrupt => "s0",
        CauseKind::Scheduling => "s1",
        CauseKind::Softirq => "s2",
        CauseKind::Hardware => "s3",
        CauseKind::Throttling => "s4",
        CauseKind::Blocking => "s5",
        CauseKind::Power => "s6",
        CauseKind::Own => "s7",
        CauseKind::Unknown => "grey",
    }
}

/// What the causes of a class are called.
pub(crate) const fn kind_name(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::Interrupt => "interrupts",
        CauseKind::Softirq => "softirqs",
        CauseKind::Scheduling => "other threads",
        CauseKind::Throttling => "quotas",
        CauseKind::Blocking => "locks, preemption or interrupts off",
        CauseKind::Hardware => "hardware or hypervisor",
        CauseKind::Power => "idle states, frequency",
        CauseKind::Own => "the thread itself",
        CauseKind::Unknown => "not explained",
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

// The time axis of a spike: even, or with short stretches widened so that they can be seen.
//
// A wake-up 3.4 ms late may hold a share of 2 µs. On an even axis that is half a pixel; here each
// stretch has at least the room that it was promised, and the rest is shared by duration.

/// From times to places.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// Times with their places; both never fall.
    knots: Vec<(u64, f64)>,
}

impl Axis {
    /// Equal distances for equal times.
    pub(crate) fn even(ends_ns: (u64, u64), places: (f64, f64)) -> Self {
        Self { knots: vec![(ends_ns.0, places.0), (ends_ns.1.max(ends_ns.0 + 1), places.1)] }
    }

    pub(crate) fn through(knots: Vec<(u64, f64)>) -> Self {
        Self { knots }
    }

    /// Place of a time; times outside are put on the ends.
    pub(crate) fn at(&self, at_ns: u64) -> f64 {
        let after = self.knots.partition_point(|(knot_ns, _)| *knot_ns <= at_ns);
        let before = after.checked_sub(1).and_then(|i| self.knots.get(i));
        match (before, self.knots.get(after)) {
            (Some(&(low_ns, low)), Some(&(high_ns, high))) => {
                let part = (at_ns - low_ns) as f64 / (high_ns - low_ns) as f64;
                low + part * (high - low)
            }
            (Some(&(_, place)), None) | (None, Some(&(_, place))) => place,
            (None, None) => 0.0,
        }
    }

    /// First and last time.
    pub(crate) fn ends_ns(&self) -> (u64, u64) {
        let first = self.knots.first().map_or(0, |knot| knot.0);
        (first, self.knots.last().map_or(first, |knot| knot.0))
    }
}

/// Widths of stretches that sum to `room`: each at least its `least`, the others in proportion to
/// their duration. Where all the least together exceed the room, they shrink alike.
pub(crate) fn widths(durations_ns: &[u64], least: &[f64], room: f64) -> Vec<f64> {
    let asked: f64 = least.iter().sum();
    let shrink = if asked > room && asked > 0.0 { room / asked } else { 1.0 };
    let least: Vec<f64> = least.iter().map(|width| width * shrink).collect();
    let mut is_least = vec![false; least.len()];
    let mut scale = 0.0;
    // Each turn fixes one more at its least width, or ends.
    for _ in 0..=least.len() {
        let fixed: f64 = (0..least.len()).filter(|&i| is_least[i]).map(|i| least[i]).sum();
        let free = (0..least.len()).filter(|&i| !is_least[i]).map(|i| durations_ns[i]);
        let free_ns: u128 = free.map(u128::from).sum();
        scale = if free_ns > 0 { (room - fixed).max(0.0) / free_ns as f64 } else { 0.0 };
        let narrow: Vec<usize> = (0..least.len())
            .filter(|&i| !is_least[i] && durations_ns[i] as f64 * scale < least[i])
            .collect();
        if narrow.is_empty() {
            break;
        }
        narrow.into_iter().for_each(|i| is_least[i] = true);
    }
    (0..least.len())
        .map(|i| if is_least[i] { least[i] } else { durations_ns[i] as f64 * scale })
        .collect()
}

// The bars of a spike's first lane: its spans as they are drawn.

/// A stretch with one cause, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) from_ns: u64,
    /// To; after `from_ns`.
    pub(crate) to_ns: u64,
    /// Index of the share.
    pub(crate) share: usize,
    /// Stands for several spans too short to be drawn, of which this share has most.
    pub(crate) is_merged: bool,
}

impl Bar {
    /// How long it is.
    pub(crate) const fn ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// At most `most` bars, in order. Spans of a share that does not exist are left out.
pub(crate) fn bars(explanation: &Explanation, most: usize) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for span in &explanation.spans {
        let share = usize::try_from(span.share).unwrap_or(usize::MAX);
        let starts_ns = bars.last().map_or(0, |bar| bar.to_ns).max(span.from_ns);
        if share >= explanation.shares.len() || span.to_ns <= starts_ns {
            continue;
        }
        push(&mut bars, Bar { from_ns: starts_ns, to_ns: span.to_ns, share, is_merged: false });
    }
    if bars.len() > most.max(1) {
        merged(&bars, explanation.shares.len(), most.max(1))
    } else {
        bars
    }
}

fn push(bars: &mut Vec<Bar>, bar: Bar) {
    match bars.last_mut() {
        Some(last) if last.share == bar.share && last.to_ns == bar.from_ns => {
            last.to_ns = bar.to_ns;
            last.is_merged |= bar.is_merged;
        }
        _ => bars.push(bar),
    }
}

/// Columns of equal time, each of the share that has most of it.
fn merged(bars: &[Bar], shares: usize, most: usize) -> Vec<Bar> {
    let (Some(first), Some(last)) = (bars.first(), bars.last()) else {
        return Vec::new();
    };
    let length_ns = last.to_ns - first.from_ns;
    let edge = |i: usize| {
        let part = u128::from(length_ns) * i as u128 / most as u128;
        first.from_ns + u64::try_from(part).unwrap_or(length_ns)
    };
    let mut columns = Vec::new();
    let mut rest = bars;
    for i in 0..most {
        let (from_ns, to_ns) = (edge(i), edge(i + 1));
        let mut of = vec![0_u64; shares];
        let mut parts = 0;
        for bar in rest.iter().take_while(|bar| bar.from_ns < to_ns) {
            of[bar.share] += bar.to_ns.min(to_ns).saturating_sub(bar.from_ns.max(from_ns));
            parts += 1;
        }
        rest = &rest[rest.partition_point(|bar| bar.to_ns <= to_ns)..];
        let top = (0..shares).max_by_key(|&share| (of[share], std::cmp::Reverse(share)));
        if let Some(share) = top.filter(|&share| of[share] > 0 && to_ns > from_ns) {
            push(&mut columns, Bar { from_ns, to_ns, share, is_merged: parts > 1 });
        }
    }
    columns
}

/// For each share the longest of its bars, by index of the bar.
pub(crate) fn longest(bars: &[Bar], shares: usize) -> Vec<Option<usize>> {
    let of = |share: usize| {
        let of_share = bars.iter().enumerate().filter(move |(_, bar)| bar.share == share);
        of_share.max_by_key(|(i, bar)| (bar.ns(), std::cmp::Reverse(*i))).map(|(i, _)| i)
    };
    (0..shares).map(of).collect()
}

/// For each share one of `of` patterns, so that neighbours differ wherever that can be: colours may
/// not be seen.
pub(crate) fn patterns(bars: &[Bar], shares: usize, of: usize) -> Vec<usize> {
    let mut patterns: Vec<Option<usize>> = vec![None; shares];
    let mut neighbours = vec![BTreeSet::new(); shares];
    for (a, b) in bars.iter().zip(bars.iter().skip(1)) {
        neighbours[a.share].insert(b.share);
        neighbours[b.share].insert(a.share);
    }
    for share in 0..shares {
        let is_free = |pattern: &usize| {
            neighbours[share].iter().all(|&other| patterns[other] != Some(*pattern))
        };
        // Begin where the one before ended: all patterns are used.
        let tried = (0..of).map(|i| (share + i) % of.max(1));
        patterns[share] = Some(tried.into_iter().find(is_free).unwrap_or(share % of.max(1)));
    }
    patterns.into_iter().map(Option::unwrap_or_default).collect()
}

// What each CPU did round a spike, as its causes see it: tasks that ran, and which interrupts and
// softirqs were active, and related events of other CPUs.

/// Most moments of other CPUs that are shown.
const MOMENTS_MAX: usize = 12;

/// What the late CPU did, and what others did to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// Tasks that ran, and idle.
    pub(crate) tasks: Vec<Piece>,
    /// Hard interrupts and non-maskable ones.
    pub(crate) interrupts: Vec<Piece>,
    pub(crate) softirqs: Vec<Piece>,
    /// Other CPUs: by time.
    pub(crate) moments: Vec<OtherCpuMoment>,
}

/// What ran from one time to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) name: String,
    pub(crate) kind: LaneKind,
}

/// Kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneKind {
    /// The task that was late.
    Late,
    Task,
    Idle,
    Interrupt,
    Softirq,
}

/// Something that another CPU did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherCpuMoment {
    pub(crate) at_ns: u64,
    pub(crate) cpu: u32,
    /// What, e.g. `eth0-rx wakes it`.
    pub(crate) text: String,
}

impl Lanes {
    /// The lanes of a window between two times.
    pub(crate) fn of(explanation: &Explanation, window: &Window, ends_ns: (u64, u64)) -> Self {
        let tid = explanation.wake.tid;
        let mut lanes = Self::default();
        for stretch in reconstruct(&window.events, window.cpu, ends_ns.0, ends_ns.1) {
            lanes.add(&stretch, tid, window);
        }
        let others = window.events.iter().filter(|event| {
            event.cpu != window.cpu && (ends_ns.0..=ends_ns.1).contains(&event.at_ns)
        });
        let moments = others.filter_map(|event| other(event, tid, window));
        lanes.moments = moments.take(MOMENTS_MAX).collect();
        lanes
    }

    fn add(&mut self, stretch: &Stretch, tid: i32, window: &Window) {
        let state = &stretch.state;
        if let Some((kind, name)) = runs(state, tid, window) {
            close(&mut self.tasks, stretch, kind, name);
        }
        let over = match (state.nmi, state.hard) {
            (Some(_), _) => Some("NMI".to_owned()),
            (None, hard) => hard.map(|(hard, _)| hard.to_string()),
        };
        if let Some(name) = over {
            close(&mut self.interrupts, stretch, LaneKind::Interrupt, name);
        }
        if let Some(vec) = state.softirq {
            close(&mut self.softirqs, stretch, LaneKind::Softirq, softirq_name(vec));
        }
    }
}

/// Task that has the CPU.
fn runs(state: &CpuState, tid: i32, window: &Window) -> Option<(LaneKind, String)> {
    match (state.task, state.idle) {
        (..=-1, _) => None,
        (0, None) => Some((LaneKind::Idle, "idle task".into())),
        (_, Some(idle)) => {
            let of = window.surroundings.idle_states.get(&idle).filter(|of| !of.name.is_empty());
            let name = of.map_or_else(|| format!("state {idle}"), |of| of.name.clone());
            Some((LaneKind::Idle, format!("idle {name}")))
        }
        (pid, None) => {
            let kind = if pid == tid { LaneKind::Late } else { LaneKind::Task };
            let is_named = window.tasks.get(&pid).is_some_and(|task| !task.comm.is_empty());
            let comm = if is_named { String::new() } else { switched_name(window, pid) };
            Some((kind, task_name(window, pid, &comm)))
        }
    }
}

/// The name that a switch gave a task.
fn switched_name(window: &Window, pid: i32) -> String {
    let recorded = window.events.iter().find_map(|event| match &event.what {
        EventData::Switch { next_comm, next_pid, .. } if *next_pid == pid => Some(*next_comm),
        EventData::Switch { prev_comm, prev_pid, .. } if *prev_pid == pid => Some(*prev_comm),
        _ => None,
    });
    recorded.map(|comm| comm.to_string()).unwrap_or_default()
}

/// An event of another CPU, if it concerns the late task or its CPU.
fn other(event: &Event, tid: i32, window: &Window) -> Option<OtherCpuMoment> {
    let late_cpu = window.cpu;
    let what = match &event.what {
        EventData::Waking { pid, .. } if *pid == tid => "wakes the late task".to_owned(),
        EventData::Migrate { pid, to_cpu, .. } if *pid == tid => {
            format!("moves the late task to CPU {to_cpu}")
        }
        EventData::IpiSend { to_cpu, callback, .. } if *to_cpu == late_cpu => {
            let function = window.function(*callback);
            format!("interrupts CPU {late_cpu}{}", for_function(function))
        }
        EventData::IpiRaise { cpus, .. } if late_cpu < 64 && cpus >> late_cpu & 1 == 1 => {
            format!("interrupts CPU {late_cpu}")
        }
        _ => return None,
    };
    let who = match event.pid {
        0 => "idle task".into(),
        pid => task_name(window, pid, ""),
    };
    let is_interrupt = event.flags & (event::flags::HARDIRQ | event::flags::NMI) != 0;
    let over = if is_interrupt { "an interrupt over " } else { "" };
    Some(OtherCpuMoment { at_ns: event.at_ns, cpu: event.cpu, text: format!("{over}{who} {what}") })
}

/// Adds a piece, or makes the last one longer.
fn close(lane: &mut Vec<Piece>, stretch: &Stretch, kind: LaneKind, name: String) {
    let (from_ns, to_ns) = (stretch.from_ns, stretch.to_ns);
    match lane.last_mut() {
        Some(last) if last.to_ns == from_ns && last.kind == kind && last.name == name => {
            last.to_ns = to_ns;
        }
        _ if from_ns < to_ns => lane.push(Piece { from_ns, to_ns, name, kind }),
        _ => {}
    }
}

fn for_function(function: Option<&str>) -> String {
    function.map_or_else(String::new, |function| format!(" for {function}"))
}

/// A task with its policy where that is not the ordinary one: `multipathd [RR 99]`.
pub(crate) fn task_name(window: &Window, pid: i32, comm: &str) -> String {
    let task = window.tasks.get(&pid);
    let name = task.map(|task| task.comm.as_str()).filter(|name| !name.is_empty());
    let name = name.or_else(|| Some(comm).filter(|comm| !comm.is_empty()));
    let name = name.map_or_else(|| format!("task {pid}"), Into::into);
    let policy = task.and_then(|task| Some((task.policy?, task.rt_priority)));
    match policy {
        Some((policy, priority)) if priority > 0 => {
            format!("{name} [{} {priority}]", policy.text())
        }
        Some((rtproof_trace::TaskPolicy::Deadline, _)) => format!("{name} [DEADLINE]"),
        _ => name,
    }
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
        // Every cause has one, except the unknown.
        for cause in rtproof_judge::causes::CAUSES {
            let grey = class(cause.id) == "grey";
            assert_eq!(grey, cause.id == "unexplained", "{}", cause.id);
        }
    }
}

#[cfg(test)]
mod axis_tests {
    use super::*;

    #[test]
    fn an_even_axis_keeps_proportions_and_ends() {
        let axis = Axis::even((1000, 3000), (10.0, 30.0));
        assert_eq!((axis.at(0), axis.at(1000), axis.at(2000), axis.at(9000)), (10., 10., 20., 30.));
        assert_eq!(Axis::even((5, 5), (0.0, 9.0)).at(5), 0.0);
        assert_eq!(Axis::through(Vec::new()).at(7), 0.0);
    }

    #[test]
    fn short_stretches_have_their_least_and_all_fill_the_room() {
        let widths = widths(&[2_658_700, 1_800, 708_100, 0], &[5.0, 40.0, 5.0, 20.0], 860.0);
        assert!((widths.iter().sum::<f64>() - 860.0).abs() < 1e-6);
        assert_eq!((widths[1], widths[3]), (40.0, 20.0));
        assert!((widths[0] / widths[2] - 2_658_700.0 / 708_100.0).abs() < 1e-6, "still even");
    }

    #[test]
    fn too_much_asked_shrinks_alike() {
        let widths = widths(&[1, 1, 1], &[40.0, 80.0, 80.0], 100.0);
        assert_eq!(widths, [20.0, 40.0, 40.0]);
        assert!(super::widths(&[], &[], 10.0).is_empty());
    }
}

#[cfg(test)]
mod bars_tests {
    use rtproof_judge::causes::Span;

    use super::*;
    use crate::spike::sample;

    #[test]
    fn bars_follow_the_spans_and_are_no_more_than_asked() {
        let mut explanation = sample::stall().explanation;
        let all = bars(&explanation, 100);
        assert_eq!(all.iter().map(Bar::ns).sum::<u64>(), explanation.wake.latency_ns());
        let (due_ns, ran_ns) = (explanation.wake.due_ns, explanation.wake.ran_ns);
        // Many short ones: half of the time for each of two shares.
        explanation.spans = (0..1000)
            .map(|i| Span {
                from_ns: due_ns + i * 100,
                to_ns: if i == 999 { ran_ns } else { due_ns + (i + 1) * 100 },
                share: u32::try_from(i % 2).unwrap(),
            })
            .collect();
        let few = bars(&explanation, 50);
        assert!(few.len() <= 50 && few.iter().any(|bar| bar.is_merged));
        assert_eq!(few.iter().map(Bar::ns).sum::<u64>(), explanation.wake.latency_ns());
    }

    #[test]
    fn neighbours_have_different_patterns() {
        for spike in [sample::stall(), sample::short(), sample::incomplete()] {
            let shares = spike.explanation.shares.len();
            let bars = bars(&spike.explanation, 100);
            let patterns = patterns(&bars, shares, 4);
            for pair in bars.windows(2) {
                assert_ne!(patterns[pair[0].share], patterns[pair[1].share]);
            }
        }
        assert!(patterns(&[], 0, 0).is_empty());
    }

    #[test]
    fn spans_of_an_altered_record_do_no_harm() {
        let mut explanation = sample::stall().explanation;
        explanation.spans = vec![
            Span { from_ns: 9, to_ns: 3, share: 0 },
            Span { from_ns: 0, to_ns: u64::MAX, share: 77 },
            Span { from_ns: 10, to_ns: 20, share: 1 },
            Span { from_ns: 5, to_ns: 15, share: 0 },
        ];
        assert_eq!(bars(&explanation, 10).len(), 1);
        explanation.shares.clear();
        assert!(bars(&explanation, 0).is_empty());
    }
}

#[cfg(test)]
mod lanes_tests {
    use super::*;
    use crate::spike::sample::{self, Events};

    fn names(pieces: &[Piece]) -> Vec<(&str, u64)> {
        pieces.iter().map(|piece| (piece.name.as_str(), piece.to_ns - piece.from_ns)).collect()
    }

    #[test]
    fn a_task_lane_has_no_gaps_and_names_idle_states() {
        let spike = sample::stall();
        let window = sample::window(spike.number).unwrap();
        let wake = &spike.explanation.wake;
        let ends_ns = (wake.due_ns - 50_000, wake.ran_ns + 10_000);
        let lanes = Lanes::of(&spike.explanation, &window, ends_ns);
        assert_eq!(lanes.tasks.first().unwrap().from_ns, ends_ns.0);
        assert_eq!(lanes.tasks.last().unwrap().to_ns, ends_ns.1);
        assert!(lanes.tasks.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert!(lanes.tasks.iter().any(|piece| piece.name == "multipathd [RR 99]"));
        assert_eq!(lanes.tasks.last().unwrap().kind, LaneKind::Late);
        assert!(lanes.softirqs.iter().any(|piece| piece.name == "NET_RX"));
    }

    #[test]
    fn interrupts_nest_and_softirqs_leave_with_their_task() {
        let mut events = Events::on(1);
        events.switch(0, 7, 8).vector(100, 150).at(200, 8, EventData::SoftirqEntry { vec: 1 });
        events.switch(300, 8, 9).switch(500, 9, 8).at(600, 8, EventData::SoftirqExit { vec: 1 });
        events.at(700, 8, EventData::IrqEntry { irq: 24, name: "eth0".into() });
        events.vector(720, 730).at(760, 8, EventData::IrqExit { irq: 24 });
        let window = Window { cpu: 1, events: events.list, ..Window::default() };
        let lanes = Lanes::of(&sample::stall().explanation, &window, (0, 1000));
        assert_eq!(names(&lanes.softirqs), [("TIMER", 100), ("TIMER", 100)]);
        let of_irq = [("local timer", 50), ("IRQ 24 eth0", 20), ("local timer", 10)];
        assert_eq!(names(&lanes.interrupts)[..3], of_irq);
        assert_eq!(names(&lanes.interrupts)[3], ("IRQ 24 eth0", 30));
        assert_eq!(names(&lanes.tasks), [("task 8", 300), ("task 9", 200), ("task 8", 500)]);
    }

    #[test]
    fn torn_events_do_no_harm() {
        let mut events = Events::on(1);
        events.at(10, 5, EventData::SoftirqExit { vec: 77 }).at(
            20,
            5,
            EventData::IrqExit { irq: 1 },
        );
        events.at(30, 5, EventData::Nmi { handler: 0, delta_ns: u64::MAX });
        events.at(40, 5, EventData::SoftirqEntry { vec: 77 });
        let window = Window { cpu: 1, events: events.list, ..Window::default() };
        let lanes = Lanes::of(&sample::stall().explanation, &window, (0, 100));
        assert_eq!(names(&lanes.tasks), [("task 5", 100)]);
        assert_eq!(names(&lanes.interrupts), [("NMI", 30)]);
        assert_eq!(names(&lanes.softirqs), [("softirq 77", 60)]);
    }

    #[test]
    fn others_count_only_where_they_concern_the_late_cpu() {
        let spike = sample::incomplete();
        let window = sample::window(spike.number).unwrap();
        let lanes = Lanes::of(&spike.explanation, &window, (0, u64::MAX));
        let texts: Vec<_> = lanes.moments.iter().map(|m| (m.cpu, m.text.as_str())).collect();
        let flush = "kworker/0:2 interrupts CPU 1 for flush_tlb_func";
        assert_eq!(texts, [(0, flush), (0, "irq/38-can0 [FIFO 50] wakes the late task")]);
    }
}
