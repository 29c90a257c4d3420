//! Tuning, as far as it is neither the judge's (what is wanted) nor the host's (how it is set):
//! what is shown and asked before, what became of it, the rollback of `--confirm`, what works over
//! time and by measuring, what is repeated at boot, and what hands a plan to others.

pub mod boot;
pub mod config;
pub mod export;
pub mod kernel;
pub mod making;
pub mod repeat;
pub mod watch;

use std::{
    ffi::OsStr,
    io::{self, Read as _},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram, UnixStream},
        },
    },
};

use anyhow::Context as _;
use kernel::{InitrdChoice, KernelSource};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level::pipe,
};

use rtproof_host::{
    Root,
    boot::{OwnEntryState, Word},
    door::Invalid,
    idle,
    tune::{self, ApplyOptions, Change, Item, Journal, JournalSummary, Machine, drift, staging},
};
use rtproof_results::tune::{
    ACTIVE_SCHEMA, JournalStanding, StandingChange, StandingNow, TuneStatus, Unusable,
};

use crate::parse;

// What is applied now: of each open journal each change, as applied, changed since, or gone.

/// What is applied now.
///
/// # Errors
/// Journals that cannot be read.
pub fn status(machine: &Machine<'_>) -> anyhow::Result<TuneStatus> {
    let (mut journals, mut unusable) = (Vec::new(), Vec::new());
    for summary in Journal::list(machine)? {
        if let Some(why) = summary.problem {
            let (journal, missing) = (summary.number, summary.is_missing);
            unusable.push(Unusable { journal, why, missing });
            continue;
        }
        if summary.closed {
            continue;
        }
        let journal = Journal::open_number(machine, summary.number)?;
        let number = summary.number;
        journals.push(JournalStanding {
            journal: number,
            path: summary.path,
            title: summary.what,
            begun: begun(summary.started_ns),
            is_of_this_boot: !summary.earlier_boot,
            unconfirmed: staging::is_unconfirmed(machine.root(), number),
            of_program: staging::is_of_program(machine.root(), number),
            guarded: making::is_armed(machine.root(), number),
            changes: changes(machine, number, &journal, summary.earlier_boot),
        });
    }
    superseded(&mut journals);
    let boot = boot::entry_standing(machine)?;
    Ok(TuneStatus { schema: ACTIVE_SCHEMA, journals, unusable, boot })
}

/// What a later journal has made of a target is no drift.
fn superseded(journals: &mut [JournalStanding]) {
    let mut later: Vec<String> = Vec::new();
    for journal in journals.iter_mut().rev() {
        for it in &mut journal.changes {
            if it.standing == StandingNow::Changed && later.contains(&it.change.target()) {
                it.standing = StandingNow::Superseded;
                it.by.clear();
            }
        }
        later.extend(journal.changes.iter().map(|it| it.change.target()));
    }
}

/// The changes of the open journals.
///
/// # Errors
/// Journals that cannot be read, or are missing though they are applied.
pub fn of_open(machine: &Machine<'_>) -> anyhow::Result<Vec<StandingChange>> {
    let status = status(machine)?;
    if let Some(missing) = status.unusable.into_iter().find(|it| it.missing) {
        return Err(tune::JournalError::Lost(missing.why).into());
    }
    Ok(status.journals.into_iter().flat_map(|journal| journal.changes).collect())
}

/// Whether it chooses what boots next, once.
fn is_for_one_boot(change: &Change) -> bool {
    match change {
        Change::GrubEnv { key, .. } => key == "next_entry",
        Change::EfiVariable { name, .. } => name.contains("OneShot"),
        _ => false,
    }
}

fn begun(ns: i64) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn changes(
    machine: &Machine<'_>,
    number: u32,
    journal: &Journal,
    earlier_boot: bool,
) -> Vec<StandingChange> {
    let stands = |standing: tune::ChangeStanding| {
        let change = standing.change;
        let ours = change.after();
        let is_old = matches!(standing.standing, tune::Standing::Changed { is_old: true, .. });
        let (standing, now, why) = match standing.standing {
            tune::Standing::AsApplied | tune::Standing::Changed { .. }
                if earlier_boot && is_for_one_boot(&change) =>
            {
                (StandingNow::UsedUp, String::new(), None)
            }
            tune::Standing::AsApplied => (StandingNow::AsApplied, ours.clone(), None),
            tune::Standing::Changed { found, .. } => {
                (StandingNow::Changed, change.before(&found), None)
            }
            tune::Standing::Gone => (StandingNow::Gone, String::new(), None),
            tune::Standing::NotMade { why } => (StandingNow::NotMade, String::new(), Some(why)),
            tune::Standing::Unreadable { why } => {
                (StandingNow::Unreadable, String::new(), Some(why))
            }
        };
        let by = match standing {
            StandingNow::Changed => drift::suspects(machine.root(), &change),
            _ => Vec::new(),
        };
        StandingChange { journal: number, change, ours, now, is_old, standing, why, by }
    };
    tune::status(machine, journal).into_iter().map(stands).collect()
}

// `rtproof tune hold`: keeps a limit on the exit latency of the idle states in force until it is
// stopped. The kernel drops the limit when the file is closed, so that a process has to hold
// it: this is the program of `rtproof-latency.service`, and of a terminal that tries it out.

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
        notify(&format!("READY=1\nSTATUS={text}")).context("NOTIFY_SOCKET")?;
        // One byte is one signal; an end of the stream cannot come, as we hold its other side.
        (&end).read_exact(&mut [0])?;
        notify("STOPPING=1").context("NOTIFY_SOCKET")?;
        Ok(())
    })
}

/// Holds a limit for as long as something takes, which gets a line that says what is held.
fn hold(
    root: &Root,
    limit_us: u32,
    meanwhile: impl FnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let held = idle::hold(root, limit_us)?;
    let in_force = idle::limit_us(root);
    match in_force.value() {
        Some(Some(now)) if *now <= limit_us => {}
        Some(now) => anyhow::bail!(
            "{}: {limit_us} µs was written, and in force is {}",
            idle::PATH,
            now.map_or("no limit".into(), |now| format!("{now} µs"))
        ),
        None => anyhow::bail!(
            "{}: written, but not read back: {}",
            idle::PATH,
            in_force.why_unknown().unwrap_or_default()
        ),
    }
    let result = meanwhile(&format!("{}: {limit_us} µs held until Ctrl-C or SIGTERM", idle::PATH));
    drop(held);
    result
}

/// A stream with a byte for each signal that ends.
fn ends() -> io::Result<UnixStream> {
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

// Telling systemd that a service of `Type=notify` is ready: one datagram (sd_notify(3)).

/// Sends a state such as `READY=1` to the service manager, if it requested that
/// (`NOTIFY_SOCKET`). Whether it did.
///
/// # Errors
/// The socket that it named cannot be written to.
pub fn notify(state: &str) -> io::Result<bool> {
    match std::env::var_os("NOTIFY_SOCKET") {
        None => Ok(false),
        Some(socket) => notify_socket(&socket, state).map(|()| true),
    }
}

fn notify_socket(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(socket)?,
        _ => return Err(io::Error::other("NOTIFY_SOCKET is neither a path nor an abstract name")),
    };
    let sent = UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    match sent == state.len() {
        true => Ok(()),
        false => Err(io::Error::other("the service manager took a part only")),
    }
}

// A boot entry for the next boot alone, under a journal whose title names the owner. Experiments
// and bisections boot a machine with one after the other.

/// What boots once: another kernel, further parameters, or both.
#[derive(Clone, Copy, Debug)]
pub struct Once<'a> {
    /// Title of the journal.
    pub title: &'a str,
    /// Another kernel than the running one, with its initial RAM disk.
    pub kernel: Option<(&'a KernelSource, &'a InitrdChoice)>,
    pub words: &'a [Word],
}

impl Once<'_> {
    /// Makes the entry and chooses it for the next boot. Returns the argument of reboot(2).
    ///
    /// # Errors
    /// A boot loader that cannot boot an entry once, a kernel that it cannot have, a change that
    /// could not be made (all are undone then).
    pub fn arm(&self, machine: &Machine<'_>) -> anyhow::Result<Option<String>> {
        let root = machine.root();
        let mut loader = match self.kernel {
            Some((source, _)) => kernel::loader(root, source)?,
            None => rtproof_host::boot::detect(root)?,
        };
        if let Some(why) = loader.no_entry.as_ref().or(loader.no_trial.as_ref()) {
            anyhow::bail!("{why}; nothing was changed");
        }
        anyhow::ensure!(
            loader.entry_state(root)? != OwnEntryState::Default,
            "the entry of rtproof is the default of {}, so that another one would have no way \
             back; nothing was changed; take it back first: rtproof tune undo --all",
            loader.name
        );
        let prepared = match self.kernel {
            Some((source, initrd)) => Some(kernel::prepare(machine, &mut loader, source, initrd)?),
            None => None,
        };
        let changes = loader.real_time(root, self.words)?;
        let item = |change: &Change| Item { change: change.clone(), checks: Vec::new() };
        let kernel = prepared.iter().flat_map(|prepared| &prepared.changes);
        let items: Vec<Item> =
            kernel.chain(&changes.entry).chain(&changes.trial).map(item).collect();
        let mut journal = Journal::begin(machine, self.title.to_owned(), &items)?;
        tune::apply(
            machine,
            &mut journal,
            &items,
            ApplyOptions { keep_going: false },
            &mut |_| {},
        )?;
        Ok(changes.reboot)
    }
}

/// Titles of what is in force, of those that begin so.
pub fn in_force(machine: &Machine<'_>, beginning: &str) -> anyhow::Result<Vec<String>> {
    let all = Journal::list(machine)?.into_iter().filter(|it| is_open(it, beginning));
    Ok(all.map(|summary| summary.what).collect())
}

fn is_open(summary: &JournalSummary, beginning: &str) -> bool {
    !summary.closed && summary.problem.is_none() && summary.what.starts_with(beginning)
}

/// Undoes what was made under titles that begin so.
///
/// # Errors
/// Something could not be undone: it stays in the journal.
pub fn undo(machine: &Machine<'_>, beginning: &str) -> anyhow::Result<()> {
    for summary in Journal::list(machine)?.into_iter().rev() {
        if !is_open(&summary, beginning) {
            continue;
        }
        let mut journal = Journal::open_number(machine, summary.number)?;
        tune::undo(machine, &mut journal, &mut |_| {})?;
        anyhow::ensure!(
            journal.is_closed(),
            "{}: not all of it could be undone; run rtproof tune undo",
            summary.path
        );
        journal.discard(machine)?;
    }
    Ok(())
}

/// Identity of the running boot.
///
/// # Errors
/// The kernel does not say.
pub fn boot_id(root: &Root) -> anyhow::Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    let read = root.trimmed(path);
    match read.value() {
        Some(id) => Ok(id.clone()),
        None => anyhow::bail!("{path}: {}", read.why_unknown().unwrap_or_default()),
    }
}

#[cfg(test)]
mod hold_tests {
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
        let limit = || idle::limit_us(&root).value().copied().flatten();
        // Without root or the device it has to say so.
        let is_ours = idle::hold(&root, 1_000_000).is_ok();
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

#[cfg(test)]
mod notify_tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn the_state_reaches_a_path_and_an_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        notify_socket(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(received(&by_path), "READY=1");

        let name = format!("rtproof-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        notify_socket(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(received(&by_name), "STOPPING=1");

        for nobody in ["/no/such/socket", "vsock:2:1", ""] {
            assert!(notify_socket(OsStr::new(nobody), "READY=1").is_err(), "{nobody}");
        }
    }
}
