//! From a late wake-up and its window to its explanation.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rtproof_model::{ShareRow, Span};
use rtproof_trace::{WakeUp, Window};

use super::scene::{Moment, Scene, UnknownStretch};
use super::table::Explanation;
use super::{Attribution, CAUSES, Cause, machine, names, section};
use crate::proof::{Overs, Proof, Share};

/// Most wakers in an explanation.
const WAKERS_MAX: usize = 4;

/// Most lines of detail of one share.
const DETAIL_MAX: usize = 6;

/// Why a wake-up was late.
pub fn explain(wake: &WakeUp, window: &Window) -> Explanation {
    if let Some(explanation) = section::explain(wake, window) {
        return explanation;
    }
    let scene = Scene::new(wake, window);
    let overs = Overs::of(window);
    let mut shares = Shares::default();
    for moment in scene.moments() {
        divide(moment, &overs, &mut shares);
    }
    let (spans, shares) = shares.finish();
    Explanation {
        wake: *wake,
        task: names::task(&scene, wake.tid, scene.prio),
        irq_ns: scene.irq_ns,
        woken_ns: scene.woken_ns,
        switched_ns: scene.switched_ns,
        spans,
        shares,
        incomplete: incomplete(&scene),
        wakers: wakers(&scene),
    }
}

/// Offers a moment to the causes until nothing of it is left.
fn divide(mut moment: Moment<'_>, overs: &Overs, shares: &mut Shares) {
    while moment.from_ns < moment.to_ns {
        let (cause, attribution) = attribute(&moment);
        let until_ns = attribution.until_ns.unwrap_or(moment.to_ns);
        // Each attribution takes at least a nanosecond, so the loop ends.
        let until_ns = until_ns.clamp(moment.from_ns + 1, moment.to_ns);
        let has_function = !attribution.culprit.is_empty() && cause.id == "timer-work";
        let tile = (moment.from_ns, until_ns);
        let proof = overs.prove(cause.id, moment.cpu, has_function, tile);
        shares.add(cause, attribution, proof, tile);
        moment.taken_ns += until_ns - moment.from_ns;
        moment.from_ns = until_ns;
    }
}

fn attribute(moment: &Moment<'_>) -> (&'static Cause, Attribution) {
    let mut unknown = moment.scene.unknown_stretches.iter();
    let here =
        |unknown: &&UnknownStretch| (unknown.from_ns..unknown.to_ns).contains(&moment.from_ns);
    if let Some(unknown) = unknown.find(here) {
        // Unrecorded time has no culprit.
        let nobody = Attribution::default().detail([unknown.why.to_owned()]);
        return (&CAUSES[CAUSES.len() - 1], nobody);
    }
    let (cause, attribution) = of_events(moment);
    let handed = moment.scene.softirq_waker_at(moment.from_ns);
    let attribution = attribution.detail(handed.map(|handed| {
        let by = names::task(moment.scene, handed.tid, handed.prio);
        format!("its timer expires in {by}, which had to wait")
    }));
    let attribution = super::doubt(moment, cause.id, attribution);
    if cause.id != machine::STALL.id || super::shows_code(moment) {
        return (cause, attribution);
    }
    // That nothing ran says little where what ran was not recorded.
    let Attribution { unrecorded: unseen, detail, .. } = attribution;
    let or = [cause.id].into_iter().chain(attribution.alternatives).collect();
    (
        &CAUSES[CAUSES.len() - 1],
        Attribution { alternatives: or, unrecorded: unseen, detail, ..Attribution::default() },
    )
}

/// By the events that are there.
fn of_events(moment: &Moment<'_>) -> (&'static Cause, Attribution) {
    // Whatever was on the CPU: it did not run.
    if let Some(attribution) = machine::together(moment) {
        return (&machine::STALL, attribution);
    }
    let found = CAUSES
        .iter()
        .find_map(|cause| (cause.attribute)(moment).map(|attribution| (cause, attribution)));
    // The last cause takes everything.
    let (cause, attribution) = found.unwrap_or((&CAUSES[CAUSES.len() - 1], Attribution::default()));
    match machine::stall_instead_of(moment, cause.id) {
        Some(stall) => (&machine::STALL, stall),
        None => (cause, attribution),
    }
}

/// Cause, culprit, and whether it is proved.
type Key = (&'static str, String, bool);

/// Shares by cause and culprit, and the spans that they are made of.
#[derive(Default)]
struct Shares {
    shares: Vec<(ShareRow, Vec<Proof>)>,
    places: BTreeMap<Key, usize>,
    spans: Vec<(u64, u64, usize)>,
}

impl Shares {
    fn add(
        &mut self,
        cause: &Cause,
        by: Attribution,
        proof: Option<Proof>,
        (from_ns, to_ns): (u64, u64),
    ) {
        let is_alone = by.alternatives.is_empty() && by.unrecorded.is_empty();
        let proof = proof.filter(|_| is_alone);
        let key = (cause.id, by.culprit.clone(), proof.is_some());
        let place = *self.places.entry(key).or_insert_with(|| {
            let row = Attribution::of_culprit(by.culprit.clone()).row(cause, 0);
            self.shares.push((row, Vec::new()));
            self.shares.len() - 1
        });
        let (share, proofs) = &mut self.shares[place];
        share.ns += to_ns - from_ns;
        proofs.extend(proof);
        for (list, more) in
            [(&mut share.alternatives, &by.alternatives), (&mut share.unrecorded, &by.unrecorded)]
        {
            for text in more {
                if !list.iter().any(|known| known == text) {
                    list.push((*text).to_owned());
                }
            }
        }
        for line in by.detail {
            if share.detail.len() < DETAIL_MAX && !share.detail.contains(&line) {
                share.detail.push(line);
            }
        }
        share.owner = share.owner.take().or(by.owner);
        for remedy in by.remedies {
            if !share.remedies.contains(&remedy) {
                share.remedies.push(remedy);
            }
        }
        match self.spans.last_mut() {
            Some((_, end_ns, last)) if *last == place && *end_ns == from_ns => *end_ns = to_ns,
            _ => self.spans.push((from_ns, to_ns, place)),
        }
    }

    fn finish(self) -> (Vec<Span>, Vec<Share>) {
        let mut order: Vec<usize> = (0..self.shares.len()).collect();
        order.sort_by_key(|&place| (std::cmp::Reverse(self.shares[place].0.ns), place));
        let mut rank = vec![0_u32; order.len()];
        for (to, &place) in (0..).zip(&order) {
            rank[place] = to;
        }
        let spans = self.spans.iter();
        let spans =
            spans.map(|&(from_ns, to_ns, place)| Span { from_ns, to_ns, share: rank[place] });
        let spans = spans.collect();
        let judged = self.shares.into_iter().map(|(row, proofs)| Share::new(row, &proofs));
        let mut shares: Vec<Option<Share>> = judged.map(Some).collect();
        (spans, order.iter().filter_map(|&place| shares[place].take()).collect())
    }
}

/// Why the shares may be wrong.
fn incomplete(scene: &Scene<'_>) -> Vec<String> {
    let (wake, window) = (&scene.wake, scene.window);
    let mut reasons = Vec::new();
    if window.events.is_empty() {
        reasons.push("no event of this time was recorded".into());
    } else if let Some(unknown) = scene.unknown_stretches.first() {
        reasons.push(unknown.why.into());
    } else if scene.woken_ns.is_none() && scene.switched_ns.is_none() && wake.latency_ns() > 0 {
        let ran = window.events.iter().any(|event| event.pid == wake.tid);
        if !ran {
            reasons.push("neither the wake-up nor the switch to the thread was seen".into());
        }
    }
    if let Some(doubt) = scene.doubts.first().filter(|_| scene.unknown_stretches.is_empty()) {
        reasons.push(doubt.why.into());
    }
    if scene.unknown_stretches.is_empty() && scene.is_inferred() {
        reasons.push("a task switch was not recorded: inferred from a later event".into());
    }
    if scene.unknown_stretches.is_empty() && scene.ends_before_it_ran() {
        reasons.push("the switch to the thread was not recorded: it was at least this late".into());
    }
    if window.cut {
        reasons.push("there were too many events to keep".into());
    }
    reasons
}

/// The waker of the thread, and the wakers of the waker.
fn wakers(scene: &Scene<'_>) -> Vec<String> {
    let mut chain = Vec::new();
    let (mut tid, mut before_ns) = (scene.wake.tid, scene.wake.ran_ns);
    while chain.len() < WAKERS_MAX {
        let Some(event) = names::waking(scene, tid, before_ns) else { break };
        let by = names::waker_of(scene, event);
        let by_task = event.flags & rtproof_trace::event::flags::HARDIRQ == 0 && event.pid > 0;
        chain.push(by);
        if !by_task || event.pid == tid {
            break;
        }
        (tid, before_ns) = (event.pid, event.at_ns.saturating_sub(1));
    }
    chain
}
