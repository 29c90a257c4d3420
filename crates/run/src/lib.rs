//! Conducting: every command as a library call. Here: the clock, lists of CPUs that a user
//! names, and `check tick`.
#![doc = include_str!("../README.md")]

pub mod bisect;
pub mod compare;
pub mod experiment;
pub mod explain;
pub mod intent;
pub mod launch;
pub mod measure;
pub mod new;
pub mod parse;
pub mod prove;
pub mod rules;
pub mod trace;
pub mod tune;
pub mod watch;

use rtproof_host::{
    CpuList, Facts,
    door::usage,
    facts::{
        platform::{FirmwareChoice, FirmwareItem},
        rights::Account,
    },
    tune::{Machine, write_ticks},
};
use rtproof_judge::checks::{ITEMS, firmware_version};

/// CLOCK_MONOTONIC in nanoseconds, the clock that kernel events are stamped with here.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::thread::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// CPUs of a list that a user names, all of them online.
///
/// # Errors
/// Usage: no list, an empty one, or CPUs that are not online.
pub fn online_cpus(text: &str, option: &str, facts: &Facts) -> anyhow::Result<CpuList> {
    let online = facts.cpus.online.value();
    let last = online.and_then(|online| online.as_slice().last().copied());
    let list =
        CpuList::parse(text, last).map_err(|error| usage(format!("{option} {text}: {error}")))?;
    if list.is_empty() {
        return Err(usage(format!("{option}: the list is empty; write e.g. {option} 2-3")));
    }
    let Some(online) = online else { return Ok(list) };
    let missing = list.difference(online);
    if missing.is_empty() {
        return Ok(list);
    }
    Err(usage(format!("{option} {text}: not online: CPU {missing}; online are {online}")))
}

// A load in a process of its own: how rtproof starts itself for it.

/// First argument of a worker.
pub const NAME: &str = "load-worker";

// `rtproof check tick`: records that a user checked an item of the firmware's set-up.

/// What was found of which items.
#[derive(Clone, Debug)]
pub struct FirmwareTick {
    /// Items of the list; `all` is every one.
    pub items: Vec<String>,
    /// What was found; `None`: the ticks are taken away.
    pub found: Option<FirmwareChoice>,
    /// A remark; why, where it is kept otherwise.
    pub note: String,
    pub user: String,
}

/// The default user: the caller of sudo, else root.
pub fn current_user(user: Option<&Account>) -> String {
    user.map_or_else(|| "root".into(), |user| user.name.clone())
}

/// Ticks items of the machine's firmware as of today.
///
/// # Errors
/// Usage: no such item, an item kept otherwise without a reason. The firmware has no version, or
/// the file cannot be read or written.
pub fn tick(machine: &Machine<'_>, look: &FirmwareTick) -> anyhow::Result<()> {
    let is_all = look.items.iter().any(|item| item == "all");
    for item in look.items.iter().filter(|item| *item != "all") {
        if !ITEMS.iter().any(|known| known.id == item) {
            let ids: Vec<&str> = ITEMS.iter().map(|known| known.id).collect();
            return Err(usage(format!("{item}: no such item; there are {}, all", ids.join(", "))));
        }
    }
    if look.found == Some(FirmwareChoice::Kept) && look.note.trim().is_empty() {
        return Err(usage("--as kept: say why with --note \"the reason\"".to_owned()));
    }
    let facts = Facts::read(machine.root());
    let reading = &facts.platform.firmware;
    let Some(old) = reading.value() else {
        let why = reading.why_unknown().unwrap_or_default();
        anyhow::bail!("{}: {why}; nothing was written: mend or remove that file", reading.path);
    };
    let firmware = firmware_version(&facts);
    let Some(firmware) = firmware.or_else(|| look.found.is_none().then(String::new)) else {
        anyhow::bail!(
            "/sys/class/dmi/id/bios_version and bios_date: not known here: nobody could tell when \
             a tick is out of date; nothing was written"
        );
    };
    let is_selected = |item: &str| is_all || look.items.iter().any(|named| named == item);
    let mut ticks: Vec<FirmwareItem> =
        old.iter().filter(|tick| !is_selected(&tick.item)).cloned().collect();
    if let Some(found) = look.found {
        let date = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
        ticks.extend(ITEMS.iter().filter(|item| is_selected(item.id)).map(|item| FirmwareItem {
            item: item.id.into(),
            found,
            date: date.clone(),
            user: look.user.clone(),
            firmware: firmware.clone(),
            note: look.note.clone(),
        }));
    }
    Ok(write_ticks(machine, &ticks)?)
}
