//! Units of systemd: what they do now, and the links that enable or mask them.

mod links;

use std::{io, process::Command};

use super::{
    change::UnitWish,
    machine::Machine,
    side::{Side, Three},
    state::State,
    trouble::Trouble,
};

use self::links::Links;
use crate::CpuList;

/// What `systemctl` answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether it succeeded.
    pub success: bool,
    /// What it printed.
    pub text: String,
    /// What it complained of.
    pub complaint: String,
}

/// The service manager: `systemctl`, or one that is played.
pub trait Units {
    /// Runs `systemctl` with arguments.
    ///
    /// # Errors
    /// When it cannot be run.
    fn systemctl(&self, arguments: &[&str]) -> io::Result<Answer>;
}

/// The machine's own `systemctl`.
#[derive(Clone, Copy, Debug)]
pub struct Systemctl;

impl Units for Systemctl {
    fn systemctl(&self, arguments: &[&str]) -> io::Result<Answer> {
        let output = Command::new("systemctl")
            .args(["--no-pager", "--no-ask-password"])
            .args(arguments)
            .env("LC_ALL", "C")
            .env("SYSTEMD_COLORS", "0")
            .stdin(std::process::Stdio::null())
            .output()?;
        Ok(Answer {
            success: output.status.success(),
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaint: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

impl Machine<'_> {
    /// The service manager, where there is one to ask.
    fn units(&self, unit: &str) -> Result<Option<&dyn Units>, Trouble> {
        if self.root.is_live() && !self.root.exists("/run/systemd/system") {
            return Err(Trouble::NoSystemd { unit: unit.into() });
        }
        Ok(self.units)
    }

    fn systemctl(&self, unit: &str, arguments: &[&str]) -> Result<String, Trouble> {
        let Some(units) = self.units(unit)? else {
            return Err(Trouble::NotLive { what: format!("systemctl {}", arguments.join(" ")) });
        };
        let path = || format!("systemctl {}", arguments.join(" "));
        let answer = units
            .systemctl(arguments)
            .map_err(|error| Trouble::Refused { path: path(), why: error.to_string() })?;
        if answer.success {
            return Ok(answer.text);
        }
        let why = if answer.complaint.is_empty() { answer.text } else { answer.complaint };
        Err(Trouble::Refused { path: path(), why: why.trim().to_owned() })
    }

    /// Lets systemd read its files again where some have changed.
    pub(super) fn reload_units(&self) -> Result<(), Trouble> {
        if !self.units_stale.get() {
            return Ok(());
        }
        let is_there = self.units.is_some()
            && (!self.root.is_live() || self.root.exists("/run/systemd/system"));
        if is_there {
            self.step("systemctl daemon-reload")?;
            self.systemctl("systemd", &["daemon-reload"])?;
        }
        self.units_stale.set(false);
        Ok(())
    }

    fn step(&self, what: &str) -> Result<(), Trouble> {
        self.gate.step().map_err(|error| self.refusal(what, error))
    }

    pub(super) fn unit_state(&self, unit: &str) -> Result<State, Trouble> {
        let active = match self.units(unit)? {
            Some(units) => {
                let answer = units.systemctl(&["is-active", unit]);
                let answer = answer.map_err(|error| Trouble::Refused {
                    path: format!("systemctl is-active {unit}"),
                    why: error.to_string(),
                })?;
                matches!(answer.text.trim(), "active" | "activating" | "reloading" | "refreshing")
            }
            None => false,
        };
        let (links, folders) = links::all(self.root, unit);
        Ok(State::Unit { active, links, folders })
    }

    pub(super) fn unit_is_done(&self, unit: &str, want: UnitWish, state: &State) -> bool {
        let State::Unit { active, links, .. } = state else { return false };
        let runs = matches!(want, UnitWish::Started | UnitWish::Enabled);
        let links_hold = links::planned(self.root, unit, want, links)
            .is_ok_and(|planned| same_links(&planned, links));
        links_hold && (self.units.is_none() || *active == runs)
    }

    pub(super) fn write_unit(
        &self,
        unit: &str,
        want: UnitWish,
        before: &State,
    ) -> Result<(), Trouble> {
        let State::Unit { active, links, .. } = before else {
            return Err(super::engine::not_expected(before, "a unit"));
        };
        let planned = links::planned(self.root, unit, want, links)?;
        self.set_links(links, &planned)?;
        self.run_unit(unit, *active, matches!(want, UnitWish::Started | UnitWish::Enabled))
    }

    /// Starts or stops, once systemd knows the links.
    fn run_unit(&self, unit: &str, active: bool, wanted: bool) -> Result<(), Trouble> {
        self.reload_units()?;
        if self.units.is_none() || active == wanted {
            return Ok(());
        }
        let verb = if wanted { "start" } else { "stop" };
        self.step(unit)?;
        self.systemctl(unit, &[verb, unit]).map(drop)
    }

    /// Makes the links that are wanted of those that are there.
    fn set_links(&self, there: &Links, wanted: &Links) -> Result<(), Trouble> {
        let text = |links: &Links, path: &str| {
            links.iter().find(|(name, _)| name == path).map(|(_, to)| to.clone())
        };
        for (path, _) in there.iter().filter(|(path, to)| text(wanted, path).as_ref() != Some(to)) {
            self.units_stale.set(true);
            self.gate.remove(path).map_err(|error| self.refusal(path, error))?;
        }
        for (path, to) in wanted.iter().filter(|(path, to)| text(there, path).as_ref() != Some(to))
        {
            self.units_stale.set(true);
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            if self.look(folder)? == State::Absent {
                self.make_folder(folder)?;
            }
            self.gate.link(path, to).map_err(|error| self.refusal(path, error))?;
        }
        Ok(())
    }

    /// Whose links these are: what a killed change left half done is ours too.
    pub(super) fn unit_side(&self, unit: &str, want: UnitWish, three: Three<'_>) -> Side {
        let (
            State::Unit { active: ran, links: old, folders: had },
            State::Unit { active, links: now, folders: has },
        ) = (three.before, three.current)
        else {
            return Side::Theirs;
        };
        let made = match three.after {
            Some(State::Unit { links, .. }) => links.clone(),
            _ => match links::planned(self.root, unit, want, old) {
                Ok(planned) => planned,
                Err(_) => return Side::Theirs,
            },
        };
        let runs_as_before = self.units.is_none() || ran == active;
        let is_halfway = three.may_be_halfway();
        if same_links(old, now) && runs_as_before {
            return if is_halfway && had != has { Side::Ours } else { Side::Before };
        }
        let is_ours = match is_halfway {
            true => links::is_between(old, &made, now),
            false => same_links(&made, now) || same_links(old, now),
        };
        if is_ours { Side::Ours } else { Side::Theirs }
    }

    pub(super) fn restore_unit(
        &self,
        unit: &str,
        before: &State,
        current: &State,
    ) -> Result<(), Trouble> {
        let (State::Unit { active: ran, links: old, folders }, State::Unit { links, active, .. }) =
            (before, current)
        else {
            return Err(super::engine::not_expected(before, "a unit"));
        };
        // What we started is stopped while its links are still there.
        if !ran {
            self.run_unit(unit, *active, false)?;
        }
        self.set_links(links, old)?;
        let (_, now) = links::all(self.root, unit);
        for folder in now.iter().filter(|folder| !folders.contains(folder)) {
            match self.remove_folder(folder) {
                Ok(()) | Err(Trouble::NotEmpty { .. }) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        self.run_unit(unit, *active && *ran, *ran)
    }

    pub(super) fn property_state(&self, unit: &str, property: &str) -> Result<State, Trouble> {
        let shown = self.systemctl(unit, &["show", "-p", property, unit])?;
        let value = shown
            .lines()
            .find_map(|line| line.strip_prefix(property).and_then(|rest| rest.strip_prefix('=')));
        let Some(value) = value else {
            return Err(Trouble::Unexpected {
                path: format!("{unit} {property}"),
                found: "no such property".into(),
                expected: format!("one that `systemctl show {unit}` lists"),
            });
        };
        let drop_in = match self.look(&drop_in(unit, property))? {
            State::File { bytes, .. } => Some(bytes),
            _ => None,
        };
        Ok(State::Property { value: value.to_owned(), drop_in })
    }

    pub(super) fn write_property(
        &self,
        unit: &str,
        property: &str,
        value: &str,
    ) -> Result<(), Trouble> {
        self.reload_units()?;
        self.step(unit)?;
        let setting = format!("{property}={value}");
        self.systemctl(unit, &["set-property", "--runtime", unit, &setting]).map(drop)
    }

    /// Removes the folders of a drop-in that are empty.
    pub(super) fn clean_property(&self, unit: &str) -> Result<(), Trouble> {
        for folder in [&format!("{CONTROL}/{unit}.d"), CONTROL] {
            if self.look(folder)? != State::Folder {
                continue;
            }
            match self.remove_folder(folder) {
                Ok(()) | Err(Trouble::NotEmpty { .. }) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(())
    }

    pub(super) fn restore_property(
        &self,
        unit: &str,
        property: &str,
        before: &State,
    ) -> Result<(), Trouble> {
        let State::Property { value, drop_in: old } = before else {
            return Err(super::engine::not_expected(before, "a property"));
        };
        self.write_property(unit, property, value)?;
        let path = drop_in(unit, property);
        match (self.look(&path)?, old) {
            (State::File { bytes, .. }, Some(old)) if bytes == *old => {}
            (there, Some(old)) => self.write_file(&path, Some(old), None, &there)?,
            (State::File { .. }, None) => {
                self.gate.remove(&path).map_err(|error| self.refusal(&path, error))?;
                self.units_stale.set(true);
                self.clean_property(unit)?;
            }
            _ => {}
        }
        self.reload_units()
    }
}

/// Where `set-property --runtime` keeps what it sets.
const CONTROL: &str = "/run/systemd/system.control";

fn drop_in(unit: &str, property: &str) -> String {
    format!("{CONTROL}/{unit}.d/50-{property}.conf")
}

/// Whether systemd shows what was set: lists of CPUs are shown otherwise than they are written.
pub(super) fn is_same_property(wanted: &str, shown: &str) -> bool {
    let cpus = |text: &str| {
        CpuList::parse(&text.split_whitespace().collect::<Vec<_>>().join(","), None).ok()
    };
    wanted.trim() == shown.trim() || cpus(wanted).is_some_and(|wanted| Some(wanted) == cpus(shown))
}

/// Whose property it is.
pub(super) fn property_side(wanted: &str, three: Three<'_>) -> Side {
    let (
        State::Property { value: old, drop_in: had },
        State::Property { value: now, drop_in: has },
    ) = (three.before, three.current)
    else {
        return Side::Theirs;
    };
    let is_old = is_same_property(old, now);
    if is_old && had == has {
        return Side::Before;
    }
    let is_ours = match three.after {
        Some(after) if !three.undoing => after == three.current,
        _ => is_old || is_same_property(wanted, now),
    };
    if is_ours { Side::Ours } else { Side::Theirs }
}

fn same_links(a: &Links, b: &Links) -> bool {
    a.len() == b.len() && a.iter().all(|link| b.contains(link))
}
