//! The locks that real-time threads of an application waited for: who held each, and who ran in the
//! holder's place.

use std::io::{self, Write};

use rtproof_judge::{
    locks::{Instead, LockKind, Order, Party},
    units,
};
use rtproof_results::locks::{LockWaits, LocksFound};

use super::{
    rules::frame,
    sheet::{BAD, BOLD, DIM, Sheet, WARN, wrapped},
};

/// Most locks that are shown; the JSON form has all.
const WAITS_MAX: usize = 12;

/// What ends priority inversion.
const FIX: &str = "priority inheritance: pthread_mutexattr_setprotocol with PTHREAD_PRIO_INHERIT. \
                   C++: std::mutex has none; wrap a pthread_mutex_t. Rust: std::sync::Mutex has \
                   none; rtsc::pi::Mutex, linux_futex::PiFutex, or pthread_mutex_t of libc";

pub fn locks(to: &mut Sheet, of: &LocksFound) -> io::Result<()> {
    let inversions = of.waits.iter().filter(|it| it.is_inversion()).count();
    let title = match (of.waits.len(), inversions) {
        (0, _) => "no real-time thread was seen to wait for a lock without priority inheritance"
            .to_owned(),
        (_, 0) => "real-time threads waited for locks without priority inheritance; no inversion \
                   of a tenth of a wait and more"
            .to_owned(),
        (all, _) => {
            let pairs = units::count(all, "pair");
            format!(
                "{BAD}priority inversion{BAD:#}: {inversions} of {pairs} of a waiter and a holder"
            )
        }
    };
    writeln!(to)?;
    wrapped(to, &format!("{BOLD}Locks{BOLD:#}    "), "         ", &title)?;
    for it in of.waits.iter().take(WAITS_MAX) {
        waits(to, it)?;
    }
    if of.waits.len() > WAITS_MAX {
        writeln!(to, "{DIM}  and {} more: --json has them{DIM:#}", of.waits.len() - WAITS_MAX)?;
    }
    if inversions > 0 {
        wrapped(to, "  fix: ", "    ", FIX)?;
    }
    others(to, of)
}

fn waits(to: &mut Sheet, it: &LockWaits) -> io::Result<()> {
    let (waiter, holder) = (party(&it.waiter), party(&it.holder));
    let sure = if it.is_certain { "" } else { ", likely" };
    let first = match it.is_inversion() {
        true => format!("  {BAD}inversion{sure}{BAD:#}  "),
        false => format!("  {WARN}{}{sure}{WARN:#}  ", what(it)),
    };
    let worst = units::ns(it.worst_ns);
    let text = format!("{waiter} waited {worst} for a lock that {holder} held: {}", did(it));
    wrapped(to, &first, "    ", &text)?;
    let kind = match it.kind {
        LockKind::Pthread => "a mutex of glibc without priority inheritance",
        LockKind::Named => "a lock without priority inheritance whose word names its holder",
        LockKind::Rust => "a lock of Rust's library, which has no priority inheritance",
        LockKind::Used => {
            "used as a lock without priority inheritance; two threads that hand work to each other \
             look the same"
        }
        LockKind::NotSure => "it may be a lock",
    };
    let place = it.at.as_ref().map_or_else(String::new, |at| format!(" at {}", frame(at)));
    let hands = match it.hands {
        0 => String::new(),
        count => format!("; {} had it before", units::count(count, "other thread")),
    };
    let (times, sum) = (units::count(it.count, "wait"), units::ns(it.sum_ns));
    let text = format!("{kind}{place}; {times}, {sum} in all, the longest is shown{hands}");
    wrapped(to, &format!("    {DIM}"), "      ", &format!("{text}{DIM:#}"))
}

/// The largest part of the longest wait.
fn what(it: &LockWaits) -> &'static str {
    let of = &it.meanwhile;
    let longest = of.instead.iter().max_by_key(|it| it.ns);
    let instead = longest.map_or((0, "not run"), |it| match it.order {
        Order::Higher => (it.ns, "outranked"),
        Order::Middle | Order::Lower | Order::Idle => (it.ns, "not run"),
    });
    let own = [
        (of.holder_ran_ns, "long holder"),
        (of.holder_slept_ns, "holder asleep"),
        (of.unknown_ns, "not known"),
    ];
    own.into_iter().chain([instead]).max_by_key(|(ns, _)| *ns).map_or("not known", |it| it.1)
}

/// What the holder did meanwhile; sums to the wait.
fn did(it: &LockWaits) -> String {
    let of = &it.meanwhile;
    let instead = |it: &Instead| {
        let who = Party { tid: it.tid, name: it.name.clone(), priority: Some(it.priority) };
        let (who, ns) = (party(&who), units::ns(it.ns));
        match it.order {
            Order::Middle => format!("{ns} {who} ran in its place"),
            Order::Higher => format!("{ns} {who} ran, which outranks both"),
            Order::Lower => {
                format!("{ns} {who} ran below it: preemption was off, or it was throttled")
            }
            Order::Idle => format!("{ns} nobody ran: it was throttled, or on its way to a CPU"),
        }
    };
    let own = [
        (of.holder_ran_ns, "it ran"),
        (of.holder_slept_ns, "it slept or waited itself"),
        (of.unknown_ns, "not known"),
    ];
    let own = own.into_iter().filter(|(ns, _)| *ns > 0);
    let own = own.map(|(ns, text)| (ns, format!("{} {text}", units::ns(ns))));
    let mut all: Vec<(u64, String)> =
        own.chain(of.instead.iter().map(|it| (it.ns, instead(it)))).collect();
    all.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let (shown, rest) = all.split_at(all.len().min(4));
    let mut text: Vec<String> = shown.iter().map(|(_, text)| text.clone()).collect();
    if !rest.is_empty() {
        let ns = rest.iter().map(|(ns, _)| ns).sum();
        text.push(format!("{} {} more", units::ns(ns), rest.len()));
    }
    text.join(", ")
}

/// A thread as `name:tid [priority]`.
pub fn party(of: &Party) -> String {
    let rank = match of.priority {
        Some(..0) => "DEADLINE".into(),
        Some(priority @ 0..=98) => format!("real-time {}", 99 - priority),
        Some(99) => "real-time".into(),
        Some(_) => "OTHER".into(),
        None => "priority unknown".into(),
    };
    format!("{}:{} [{rank}]", of.name, of.tid)
}

/// Waits that are none for a lock without priority inheritance.
fn others(to: &mut Sheet, of: &LocksFound) -> io::Result<()> {
    let it = &of.others;
    let count = |count: u64| units::count(count, "wait");
    let lines = [
        (
            it.inheriting,
            format!("with priority inheritance: at most {}", units::ns(it.inheriting_worst_ns)),
        ),
        (
            it.events,
            "no lock that is recognised: a condition variable, a semaphore, a parked thread".into(),
        ),
        (
            it.not_sure,
            format!(
                "what may be a lock, at most {}: it was not used often enough, or not as a lock is",
                units::ns(it.not_sure_worst_ns)
            ),
        ),
        (it.given_up, "a lock, given up or interrupted".into()),
        (it.unseen, "a lock, and who released it was not seen".into()),
        (it.endless, "a lock, to the end of the observation".into()),
        (it.too_long, "a lock, among more events than are kept".into()),
    ];
    for (number, text) in lines.into_iter().filter(|(number, _)| *number > 0) {
        let text = format!("{}: {text}{DIM:#}", count(number));
        wrapped(to, &format!("  {DIM}"), "    ", &text)?;
    }
    for why in &of.unknown {
        wrapped(to, &format!("  {WARN}not observed{WARN:#}  "), "    ", why)?;
    }
    Ok(())
}
