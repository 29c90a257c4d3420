//! The state of units of systemd: what they do now, and the links that enable or mask them.

use std::{
    io,
    process::{Command, Stdio},
};

use super::kind::{
    ChangeError, ChangeProperties, Kind, Machine, MachinePart, Owner, Rank, State, StateComparison,
    Switching,
};
use crate::change::UnitState;
use crate::facts::virt::FOLDERS as FILES;
use crate::{CpuList, Root, change, trusted};

/// The state that one unit is to have.
pub(super) struct UnitChange<'a> {
    pub(super) unit: &'a str,
    pub(super) want: UnitState,
}

impl UnitChange<'_> {
    const fn runs(&self) -> bool {
        matches!(self.want, UnitState::Started | UnitState::Enabled)
    }

    const fn is_durable(&self) -> bool {
        !matches!(self.want, UnitState::Stopped | UnitState::Started)
    }
}

impl Kind for UnitChange<'_> {
    fn target(&self) -> String {
        self.unit.to_owned()
    }

    fn line(&self) -> String {
        format!("{} {}", self.unit, self.want.word())
    }

    fn wanted(&self) -> String {
        self.want.word().into()
    }

    fn after(&self) -> String {
        let runs = match self.want {
            UnitState::Stopped => "not running",
            UnitState::Disabled => "not running, not enabled",
            UnitState::Masked => "not running, masked",
            UnitState::Started => "running",
            UnitState::Enabled => "running, enabled",
        };
        runs.into()
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.unit]
    }

    fn may_be_made(&self) -> Result<(), String> {
        change::check_name(self.unit, "a unit")
    }

    fn nature(&self) -> ChangeProperties {
        let rank = if self.want.stops() { Rank::UnitsStop } else { Rank::UnitsStart };
        // Also of a masked unit it is the stop that latency shows.
        let pace = Switching::Once;
        ChangeProperties { part: MachinePart::Units, rank, pace, is_durable: self.is_durable() }
    }

    fn needs_writable(&self) -> Option<&str> {
        self.is_durable().then_some("/etc/systemd/system/x")
    }

    fn concerns_units(&self) -> bool {
        true
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        let active = match machine.units(self.unit)? {
            Some(units) => {
                let answer = units.systemctl(&["is-active", self.unit]);
                let answer = answer.map_err(|error| ChangeError::Refused {
                    path: format!("systemctl is-active {}", self.unit),
                    why: error.to_string(),
                })?;
                matches!(answer.text.trim(), "active" | "activating" | "reloading" | "refreshing")
            }
            None => false,
        };
        let (links, folders) = unit_links(machine.root, self.unit)?;
        Ok(State::Unit { active, links, folders })
    }

    fn is_done(&self, machine: &Machine<'_>, state: &State) -> bool {
        let State::Unit { active, links, .. } = state else { return false };
        let links_hold = planned(machine.root, self.unit, self.want, links)
            .is_ok_and(|planned| same_links(&planned, links));
        links_hold && (machine.units.is_none() || *active == self.runs())
    }

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError> {
        let State::Unit { active, links, .. } = before else {
            return Err(ChangeError::not_expected(before, "a unit"));
        };
        let planned = planned(machine.root, self.unit, self.want, links)?;
        machine.set_links(links, &planned)?;
        machine.run_unit(self.unit, *active, self.runs())
    }

    /// Links that a killed change left half done are ours, too.
    fn side(&self, machine: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        let (
            State::Unit { active: ran, links: old, folders: had },
            State::Unit { active, links: now, folders: has },
        ) = (states.before, states.current)
        else {
            return Owner::Theirs;
        };
        let made = match states.after {
            Some(State::Unit { links, .. }) => links.clone(),
            _ => match planned(machine.root, self.unit, self.want, old) {
                Ok(planned) => planned,
                Err(_) => return Owner::Theirs,
            },
        };
        let runs_as_before = machine.units.is_none() || ran == active;
        let is_halfway = states.may_be_halfway();
        if same_links(old, now) && runs_as_before {
            return if is_halfway && had != has { Owner::Ours } else { Owner::Before };
        }
        let is_ours = match is_halfway {
            true => is_between(old, &made, now),
            false => same_links(&made, now) || same_links(old, now),
        };
        Owner::ours_if(is_ours)
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        let (State::Unit { active: ran, links: old, folders }, State::Unit { links, active, .. }) =
            (states.before, states.current)
        else {
            return Err(ChangeError::not_expected(states.before, "a unit"));
        };
        // What we started is stopped while its links are still there.
        if !ran {
            machine.run_unit(self.unit, *active, false)?;
        }
        machine.set_links(links, old)?;
        let (_, now) = unit_links(machine.root, self.unit)?;
        for folder in now.iter().filter(|folder| !folders.contains(folder)) {
            machine.remove_if_empty(folder)?;
        }
        machine.run_unit(self.unit, *active && *ran, *ran)
    }
}

impl Machine<'_> {
    /// Starts or stops, once systemd knows the links.
    fn run_unit(&self, unit: &str, active: bool, wanted: bool) -> Result<(), ChangeError> {
        self.reload_units()?;
        if self.units.is_none() || active == wanted {
            return Ok(());
        }
        let verb = if wanted { "start" } else { "stop" };
        self.unit_step(unit)?;
        self.systemctl(unit, &[verb, unit]).map(drop)
    }

    /// Makes the links that are wanted of those that are there.
    fn set_links(&self, there: &Links, wanted: &Links) -> Result<(), ChangeError> {
        let text = |links: &Links, path: &str| {
            links.iter().find(|(name, _)| name == path).map(|(_, to)| to.clone())
        };
        for (path, _) in there.iter().filter(|(path, to)| text(wanted, path).as_ref() != Some(to)) {
            self.units_stale.set(true);
            self.gate.remove(path).map_err(|error| self.refusal(path, error))?;
        }
        for (path, to) in wanted.iter().filter(|(path, to)| text(there, path).as_ref() != Some(to))
        {
            change::check_file(path).map_err(|why| ChangeError::Elsewhere { why })?;
            self.units_stale.set(true);
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            if self.state_at(folder)? == State::Absent {
                self.make_folder(folder)?;
            }
            self.gate.link(path, to).map_err(|error| self.refusal(path, error))?;
        }
        Ok(())
    }
}

fn same_links(a: &Links, b: &Links) -> bool {
    a.len() == b.len() && a.iter().all(|link| b.contains(link))
}

// Properties of units of systemd, set at run time.

/// Where `set-property --runtime` keeps what it sets.
const CONTROL: &str = "/run/systemd/system.control";

fn drop_in(unit: &str, property: &str) -> String {
    format!("{CONTROL}/{unit}.d/50-{property}.conf")
}

/// One property of one unit; an empty value is the unit's own.
pub(super) struct PropertyChange<'a> {
    pub(super) unit: &'a str,
    pub(super) property: &'a str,
    pub(super) value: &'a str,
}

impl Kind for PropertyChange<'_> {
    fn target(&self) -> String {
        format!("{} {}", self.unit, self.property)
    }

    fn wanted(&self) -> String {
        self.value.to_owned()
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.unit, self.property, self.value]
    }

    fn may_be_made(&self) -> Result<(), String> {
        change::check_name(self.unit, "a unit")?;
        change::check_name(self.property, "a property")
    }

    fn nature(&self) -> ChangeProperties {
        ChangeProperties::lost_at_reboot(
            MachinePart::Units,
            Rank::UnitProperties,
            Switching::Toggled,
        )
    }

    fn concerns_units(&self) -> bool {
        true
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        let (unit, property) = (self.unit, self.property);
        let shown = machine.systemctl(unit, &["show", "-p", property, unit])?;
        let value = shown
            .lines()
            .find_map(|line| line.strip_prefix(property).and_then(|rest| rest.strip_prefix('=')));
        let Some(value) = value else {
            return Err(ChangeError::Unexpected {
                path: format!("{unit} {property}"),
                found: "no such property".into(),
                expected: format!("one that `systemctl show {unit}` lists"),
            });
        };
        let drop_in = match machine.state_at(&drop_in(unit, property))? {
            State::File { bytes, .. } => Some(bytes),
            _ => None,
        };
        Ok(State::Property { value: value.to_owned(), drop_in })
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        matches!(state, State::Property { value, .. } if is_same_property(self.value, value))
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.write_property(self.unit, self.property, self.value)
    }

    fn side(&self, _: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        let (
            State::Property { value: old, drop_in: had },
            State::Property { value: now, drop_in: has },
        ) = (states.before, states.current)
        else {
            return Owner::Theirs;
        };
        let is_old = is_same_property(old, now);
        if is_old && had == has {
            return Owner::Before;
        }
        let is_ours = match states.after {
            Some(after) if !states.undoing => after == states.current,
            _ => is_old || is_same_property(self.value, now),
        };
        Owner::ours_if(is_ours)
    }

    /// Removes the folders of a drop-in that are empty.
    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        for folder in [&format!("{CONTROL}/{}.d", self.unit), CONTROL] {
            if machine.state_at(folder)? == State::Folder {
                machine.remove_if_empty(folder)?;
            }
        }
        Ok(())
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        let State::Property { value, drop_in: old } = states.before else {
            return Err(ChangeError::not_expected(states.before, "a property"));
        };
        machine.write_property(self.unit, self.property, value)?;
        let path = drop_in(self.unit, self.property);
        match (machine.state_at(&path)?, old) {
            (State::File { bytes, .. }, Some(old)) if bytes == *old => {}
            (there, Some(old)) => machine.write_file(&path, Some(old), None, &there)?,
            (State::File { .. }, None) => {
                machine.gate.remove(&path).map_err(|error| machine.refusal(&path, error))?;
                machine.units_stale.set(true);
                self.clean(machine)?;
            }
            _ => {}
        }
        machine.reload_units()
    }
}

impl Machine<'_> {
    fn write_property(&self, unit: &str, property: &str, value: &str) -> Result<(), ChangeError> {
        self.reload_units()?;
        self.unit_step(unit)?;
        let setting = format!("{property}={value}");
        self.systemctl(unit, &["set-property", "--runtime", unit, &setting]).map(drop)
    }
}

/// Whether systemd shows what was set: lists of CPUs are shown otherwise than they are written.
fn is_same_property(wanted: &str, shown: &str) -> bool {
    let cpus = |text: &str| {
        CpuList::parse(&text.split_whitespace().collect::<Vec<_>>().join(","), None).ok()
    };
    wanted.trim() == shown.trim() || cpus(wanted).is_some_and(|wanted| Some(wanted) == cpus(shown))
}

// The links that enable, mask and alias a unit: what `systemctl enable` and `mask` leave behind,
// read and planned as data, so that they are put back one by one.

/// Links as (path, text), by path.
type Links = [(String, String)];

/// Links, and the folders of links.
type Found = (Vec<(String, String)>, Vec<String>);

/// Where an administrator's links are.
const OURS: &[&str] = &["/etc/systemd/system", "/run/systemd/system"];

/// Folders of links that pull a unit in.
const PULLS: &[&str] = &[".wants", ".requires", ".upholds"];

/// Run levels that become multi-user.target (systemd-sysv-generator).
const LEVELS: std::ops::RangeInclusive<u32> = 2..=5;

/// The links of a unit, and the folders of links that there are.
///
/// # Errors
/// One cannot be looked at: it may be the unit's, and undo would take it away.
fn unit_links(root: &Root, unit: &str) -> Result<Found, ChangeError> {
    let (mut links, mut folders) = (Vec::new(), Vec::new());
    for top in OURS {
        for name in names(root, top)? {
            let path = format!("{top}/{name}");
            if PULLS.iter().any(|pull| name.ends_with(pull)) {
                for entry in names(root, &path)? {
                    links.extend(link(root, &format!("{path}/{entry}"), &entry, unit)?);
                }
                folders.push(path);
            } else {
                links.extend(link(root, &path, &name, unit)?);
            }
        }
    }
    for level in (0..=6).map(|level| level.to_string()).chain(["S".into()]) {
        let folder = format!("/etc/rc{level}.d");
        for entry in names(root, &folder)? {
            if Some(script_of(&entry)) == unit.strip_suffix(".service").map(Some) {
                let path = format!("{folder}/{entry}");
                let to = ChangeError::present(root.read_link(&path))?;
                links.extend(to.map(|to| (path, to)));
            }
        }
    }
    Ok((links, folders))
}

fn names(root: &Root, folder: &str) -> Result<Vec<String>, ChangeError> {
    Ok(ChangeError::present(root.list_dir(folder))?.unwrap_or_default())
}

/// The link at a path when it is the unit's: by its own name, or by where it leads.
fn link(
    root: &Root,
    path: &str,
    name: &str,
    unit: &str,
) -> Result<Option<(String, String)>, ChangeError> {
    let Some(to) = ChangeError::present(root.read_link(path))? else { return Ok(None) };
    let is_ours = name == unit || to.rsplit('/').next() == Some(unit);
    Ok(is_ours.then(|| (path.to_owned(), to)))
}

/// `irqbalance` of `S01irqbalance`.
fn script_of(entry: &str) -> Option<&str> {
    let rest = entry.strip_prefix(['S', 'K'])?;
    let (number, name) = (rest.get(..2)?, rest.get(2..)?);
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

fn is_pull(path: &str) -> bool {
    let folder = path.rsplit('/').nth(1).unwrap_or_default();
    PULLS.iter().any(|pull| folder.ends_with(pull))
}

fn is_boot_script(path: &str) -> bool {
    path.starts_with("/etc/rc")
}

fn is_mask(to: &str) -> bool {
    to == "/dev/null"
}

/// The file of a unit; of its template for an instance.
fn file(root: &Root, unit: &str) -> Option<String> {
    let template = unit.split_once('@').and_then(|(name, instance)| {
        let (_, kind) = instance.rsplit_once('.')?;
        Some(format!("{name}@.{kind}"))
    });
    let names = || std::iter::once(unit.to_owned()).chain(template.clone());
    let at = |name: &str, folder: &&str| {
        let path = format!("{folder}/{name}");
        let is_masked = root.read_link(&path).value().is_some_and(|to| is_mask(to));
        (!is_masked && root.read_text(&path).value().is_some()).then_some(path)
    };
    names().find_map(|name| FILES.iter().find_map(|folder| at(&name, folder)))
}

/// The links that there are to be.
///
/// # Errors
/// When links alone cannot do it; with what can.
fn planned(
    root: &Root,
    unit: &str,
    want: UnitState,
    now: &Links,
) -> Result<Vec<(String, String)>, ChangeError> {
    let unexpected = |found: &str, expected: &str| ChangeError::Unexpected {
        path: unit.into(),
        found: found.into(),
        expected: expected.into(),
    };
    let mask = (format!("{}/{unit}", OURS[0]), "/dev/null".to_owned());
    let is_masked = now.iter().any(|(_, to)| is_mask(to));
    match want {
        UnitState::Stopped | UnitState::Started => Ok(now.to_vec()),
        UnitState::Masked => {
            if now.iter().any(|(path, to)| *path == mask.0 && !is_mask(to))
                || root.read_link(&mask.0).value().is_none() && root.exists(&mask.0)
            {
                return Err(unexpected(
                    "a file of its own in /etc",
                    "a unit that can be masked; disable it",
                ));
            }
            let mut links = now.to_vec();
            if !is_masked {
                links.push(mask);
            }
            Ok(links)
        }
        UnitState::Disabled => {
            let own_file = file(root, unit);
            if !is_masked && pulled_in_by_vendor(root, unit)? {
                return Err(unexpected(
                    "pulled in by a folder of the distribution",
                    "a unit that links in /etc enable; mask it",
                ));
            }
            Ok(disabled(now, unit, own_file.is_some()))
        }
        UnitState::Enabled => {
            let mut links: Vec<_> = now.iter().filter(|(_, to)| !is_mask(to)).cloned().collect();
            match file(root, unit) {
                Some(path) => add_enabling(root, unit, &path, &mut links),
                None if links.iter().any(|(path, _)| is_boot_script(path)) => {
                    start_script(&mut links);
                }
                None => return Err(unexpected("no unit file", "a unit that is installed")),
            }
            Ok(links)
        }
    }
}

/// Without what pulls the unit in. A boot script counts only where no unit file replaces it.
fn disabled(now: &Links, unit: &str, has_file: bool) -> Vec<(String, String)> {
    let mut links = Vec::new();
    for (path, to) in now {
        let name = path.rsplit('/').next().unwrap_or_default();
        if is_boot_script(path) {
            links.push(match (has_file, path.rsplit_once("/S")) {
                (false, Some((folder, rest))) => {
                    (format!("{folder}/K01{}", rest.get(2..).unwrap_or_default()), to.clone())
                }
                _ => (path.clone(), to.clone()),
            });
        } else if !is_pull(path) && (name == unit || is_mask(to)) {
            links.push((path.clone(), to.clone()));
        }
    }
    links
}

fn start_script(links: &mut [(String, String)]) {
    let is_level =
        |path: &str| LEVELS.clone().any(|level| path.starts_with(&format!("/etc/rc{level}.d/")));
    for (path, _) in links.iter_mut().filter(|(path, _)| is_level(path)) {
        if let Some((folder, rest)) = path.rsplit_once("/K") {
            *path = format!("{folder}/S01{}", rest.get(2..).unwrap_or_default());
        }
    }
}

fn pulled_in_by_vendor(root: &Root, unit: &str) -> Result<bool, ChangeError> {
    for top in FILES.iter().filter(|folder| !OURS.contains(folder)) {
        for name in names(root, top)? {
            let is_pull = PULLS.iter().any(|pull| name.ends_with(pull));
            if is_pull && names(root, &format!("{top}/{name}"))?.iter().any(|name| name == unit) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Adds the links that the unit's [Install] section asks for (systemd.unit(5)). Units that it names
/// with `Also=` are other units: they are enabled by a change of their own.
fn add_enabling(root: &Root, unit: &str, file: &str, links: &mut Vec<(String, String)>) {
    let text = root.read_text(file);
    let Some(text) = text.value() else { return };
    let mut add = |path: String| {
        if !links.iter().any(|(there, _)| *there == path) {
            links.push((path, file.to_owned()));
        }
    };
    for (key, value) in install(text) {
        for word in value.split_whitespace() {
            let word = word.replace("%i", instance(unit)).replace("%n", unit);
            if word.contains(['/', '%']) {
                continue;
            }
            match key {
                "WantedBy" => add(format!("{}/{word}.wants/{unit}", OURS[0])),
                "RequiredBy" => add(format!("{}/{word}.requires/{unit}", OURS[0])),
                "UpheldBy" => add(format!("{}/{word}.upholds/{unit}", OURS[0])),
                "Alias" => add(format!("{}/{word}", OURS[0])),
                _ => {}
            }
        }
    }
}

fn instance(unit: &str) -> &str {
    let instance = unit.split_once('@').map(|(_, instance)| instance);
    instance.and_then(|instance| instance.rsplit_once('.')).map_or("", |(instance, _)| instance)
}

/// Keys of the [Install] section.
fn install(text: &str) -> Vec<(&str, &str)> {
    let mut section = "";
    let mut keys = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[Install]" && !line.starts_with(['#', ';']) {
            keys.extend(line.split_once('=').map(|(key, value)| (key.trim(), value.trim())));
        }
    }
    keys
}

/// Whether links are on the way from some to others: each is in one of the two, and none that is in
/// both is away.
fn is_between(from: &Links, to: &Links, now: &Links) -> bool {
    now.iter().all(|link| from.contains(link) || to.contains(link))
        && from.iter().filter(|link| to.contains(link)).all(|link| now.contains(link))
}

// The service manager: `systemctl`, or a test double.

/// What `systemctl`, or a tool of groups, answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAnswer {
    pub success: bool,
    pub text: String,
    /// What it complained of.
    pub complaint: String,
}

impl ToolAnswer {
    /// Runs a command, which is asked nothing, and takes what it prints in English.
    pub(crate) fn of(command: &mut Command) -> io::Result<Self> {
        let output = command.stdin(Stdio::null()).output()?;
        Ok(Self {
            success: output.status.success(),
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            complaint: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

/// The service manager: `systemctl`, or a test double.
pub trait ServiceManager {
    /// Runs `systemctl` with arguments.
    fn systemctl(&self, arguments: &[&str]) -> io::Result<ToolAnswer>;
}

/// The machine's own `systemctl`.
#[derive(Clone, Copy, Debug)]
pub struct Systemctl;

impl ServiceManager for Systemctl {
    fn systemctl(&self, arguments: &[&str]) -> io::Result<ToolAnswer> {
        let mut command = trusted::command("systemctl")?;
        command
            .args(["--no-pager", "--no-ask-password"])
            .args(arguments)
            .env("SYSTEMD_COLORS", "0");
        ToolAnswer::of(&mut command)
    }
}

impl Machine<'_> {
    /// The service manager, where there is one to ask.
    pub(crate) fn units(&self, unit: &str) -> Result<Option<&dyn ServiceManager>, ChangeError> {
        if self.root.is_live() && !self.root.exists("/run/systemd/system") {
            return Err(ChangeError::NoSystemd { unit: unit.into() });
        }
        Ok(self.units)
    }

    pub(crate) fn systemctl(&self, unit: &str, arguments: &[&str]) -> Result<String, ChangeError> {
        let Some(units) = self.units(unit)? else {
            return Err(ChangeError::NotLive {
                what: format!("systemctl {}", arguments.join(" ")),
            });
        };
        let path = || format!("systemctl {}", arguments.join(" "));
        let answer = units
            .systemctl(arguments)
            .map_err(|error| ChangeError::Refused { path: path(), why: error.to_string() })?;
        if answer.success {
            return Ok(answer.text);
        }
        let why = if answer.complaint.is_empty() { answer.text } else { answer.complaint };
        Err(ChangeError::Refused { path: path(), why: why.trim().to_owned() })
    }

    /// Lets systemd read its files again where some have changed.
    pub(crate) fn reload_units(&self) -> Result<(), ChangeError> {
        if !self.units_stale.get() {
            return Ok(());
        }
        let is_there = self.units.is_some()
            && (!self.root.is_live() || self.root.exists("/run/systemd/system"));
        if is_there {
            self.unit_step("systemctl daemon-reload")?;
            self.systemctl("systemd", &["daemon-reload"])?;
        }
        self.units_stale.set(false);
        Ok(())
    }

    pub(super) fn unit_step(&self, what: &str) -> Result<(), ChangeError> {
        self.gate.step().map_err(|error| self.refusal(what, error))
    }
}
