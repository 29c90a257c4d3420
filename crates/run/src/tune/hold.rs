//! `rtproof tune hold`: keeps a limit on the exit latency of the idle states in force until it is
//! stopped. The kernel drops the limit when the file is closed, so that a process has to hold
//! it: this is the program of `rtproof-latency.service`, and of a terminal that tries it out.

use crate::usage::Invalid;
use std::{
    io::{self, Read as _},
    os::unix::net::UnixStream,
};

use anyhow::Context as _;
use rtproof_host::{Root, pm_qos};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level::pipe,
};

use super::notify;
use crate::parse;

/// Holds the limit until a signal ends it; `begun` receives the line that says what is held.
///
/// # Errors
/// The limit cannot be held, or is not in force; the service manager cannot be reached.
pub fn until_ended(
    limit_us: u32,
    begun: impl FnOnce(&str) -> io::Result<()>,
) -> anyhow::Result<()> {
    let end = ends()?;
    hold(&Root::live(), limit_us, |text| {
        begun(text)?;
        notify::tell(&format!("READY=1\nSTATUS={text}")).context("NOTIFY_SOCKET")?;
        // One byte is one signal; an end of the stream cannot come, as we hold its other side.
        (&end).read_exact(&mut [0])?;
        notify::tell("STOPPING=1").context("NOTIFY_SOCKET")?;
        Ok(())
    })
}

/// Holds a limit for as long as something takes, which gets a line that says what is held.
fn hold(
    root: &Root,
    limit_us: u32,
    meanwhile: impl FnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let held = pm_qos::hold(root, limit_us)?;
    let in_force = pm_qos::limit_us(root);
    match in_force.value() {
        Some(Some(now)) if *now <= limit_us => {}
        Some(now) => anyhow::bail!(
            "{}: {limit_us} µs was written, and in force is {}",
            pm_qos::PATH,
            now.map_or("no limit".into(), |now| format!("{now} µs"))
        ),
        None => anyhow::bail!(
            "{}: written, but not read back: {}",
            pm_qos::PATH,
            in_force.why_unknown().unwrap_or_default()
        ),
    }
    let result =
        meanwhile(&format!("{}: {limit_us} µs held until Ctrl-C or SIGTERM", pm_qos::PATH));
    drop(held);
    result
}

/// A stream with a byte for each signal that ends.
pub(super) fn ends() -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        pipe::register(signal, theirs.try_clone()?)?;
    }
    // The copies live as long as the process.
    Ok(ours)
}

/// A latency in whole microseconds; zero is the usual one.
pub fn limit_us(text: &str) -> Result<u32, Invalid> {
    let digits = text.trim().trim_end_matches(|c: char| !c.is_ascii_digit());
    if digits == "0" {
        return Ok(0);
    }
    let ns = parse::time(text)?;
    match u32::try_from(ns / 1000) {
        Ok(us @ 1..=0x7fff_ffff) if ns.is_multiple_of(1000) => Ok(us),
        _ => Err("the kernel takes whole microseconds up to 2147483647us, e.g. 0us or 20us".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_whole_microseconds() {
        for (text, us) in [("0", 0), ("0us", 0), ("0 ms", 0), ("20us", 20), ("1.5ms", 1500)] {
            assert_eq!(limit_us(text), Ok(us), "{text}");
        }
        for wrong in ["20", "us", "-1us", "1500ns", "10ns", "1h", "x", ""] {
            assert!(limit_us(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_machine_that_is_not_live_holds_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::dir(dir.path()).unwrap();
        let error = hold(&root, 0, |_| panic!("nothing is held")).unwrap_err();
        assert!(error.to_string().contains("only a live machine"), "{error}");
    }

    #[test]
    fn a_limit_is_in_force_as_long_as_it_is_held() {
        let root = Root::live();
        let limit = || pm_qos::limit_us(&root).value().copied().flatten();
        // Without root or the device it has to say so.
        let is_ours = pm_qos::hold(&root, 1_000_000).is_ok();
        let mut within = None;
        let held = hold(&root, 77_000, |text| {
            assert!(text.contains("77000 µs"), "{text}");
            within = limit();
            Ok(())
        });
        assert_eq!(held.is_ok(), is_ours, "{held:?}");
        if is_ours {
            assert!(within.is_some_and(|us| us <= 77_000), "{within:?}");
            // Another process may hold another one.
            assert_ne!(limit(), Some(77_000));
        }
    }
}
