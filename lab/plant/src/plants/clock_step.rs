//! Steps the wall clock, as a first NTP or a careless administrator does, and steps it back.

use rustix::{
    thread::ClockId,
    time::{Timespec, clock_gettime, clock_settime},
};

use crate::args::{self, Args};
use crate::clock::{SECOND_NS, now_ns};
use crate::failure::Failure;
use crate::run::Frame;

pub(super) fn clock_step(frame: Frame, args: &Args) -> Result<(), Failure> {
    let by_ns = args.needed("by").and_then(signed_ns).map_err(Failure::Usage)?;
    frame.run("clock-step", args, |run, truth| {
        let stepped_ns = now_ns();
        step(by_ns)?;
        truth.set("by_ns", by_ns);
        truth.set("stepped_ns", stepped_ns);
        run.sleep_out();
        let back_ns = now_ns();
        step(-by_ns)?;
        truth.set("back_ns", back_ns);
        Ok(())
    })
}

/// Moves CLOCK_REALTIME.
fn step(by_ns: i64) -> Result<(), String> {
    let now = clock_gettime(ClockId::Realtime);
    let second_ns = i128::from(SECOND_NS);
    let ns = i128::from(now.tv_sec) * second_ns + i128::from(now.tv_nsec) + i128::from(by_ns);
    let to = i64::try_from(ns / second_ns).ok().zip(i64::try_from(ns % second_ns).ok());
    let (tv_sec, tv_nsec) =
        to.filter(|_| ns >= 0).ok_or_else(|| format!("a step by {by_ns} ns leads nowhere"))?;
    clock_settime(ClockId::Realtime, Timespec { tv_sec, tv_nsec })
        .map_err(|error| format!("cannot step the clock: {error}; it takes root"))
}

/// `5s`, `-1500ms`.
fn signed_ns(text: &str) -> Result<i64, String> {
    let (sign, duration) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let ns = args::duration_ns(duration).and_then(|ns| i64::try_from(ns).ok());
    let ns = ns.filter(|&ns| ns != 0).map(|ns| sign * ns);
    ns.ok_or_else(|| format!("--by {text}: expected a duration such as 5s or -1500ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_a_direction() {
        assert_eq!(signed_ns("5s"), Ok(5_000_000_000));
        assert_eq!(signed_ns("-1500ms"), Ok(-1_500_000_000));
        for text in ["0s", "-", "5", "--5s"] {
            assert!(signed_ns(text).is_err(), "{text}");
        }
    }
}
