//! The state of units of systemd: what they do now, and the links that enable or mask them.

mod links;

use self::links::Links;
use crate::change::{UnitState, places};
use crate::tune::kind::{ChangeError, Kind, Machine, Nature, Pace, Part, Rank, Side, State, Three};

/// The state that one unit is to have.
pub(super) struct Unit<'a> {
    pub(super) unit: &'a str,
    pub(super) want: UnitState,
}

impl Unit<'_> {
    const fn runs(&self) -> bool {
        matches!(self.want, UnitState::Started | UnitState::Enabled)
    }

    const fn is_durable(&self) -> bool {
        !matches!(self.want, UnitState::Stopped | UnitState::Started)
    }
}

impl Kind for Unit<'_> {
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
        places::name(self.unit, "a unit")
    }

    fn nature(&self) -> Nature {
        let rank = if self.want.stops() { Rank::UnitsStop } else { Rank::UnitsStart };
        // Also of a masked unit it is the stop that latency shows.
        let pace = Pace::Once;
        Nature { part: Part::Units, rank, pace, is_durable: self.is_durable() }
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
        let (links, folders) = links::all(machine.root, self.unit)?;
        Ok(State::Unit { active, links, folders })
    }

    fn is_done(&self, machine: &Machine<'_>, state: &State) -> bool {
        let State::Unit { active, links, .. } = state else { return false };
        let links_hold = links::planned(machine.root, self.unit, self.want, links)
            .is_ok_and(|planned| same_links(&planned, links));
        links_hold && (machine.units.is_none() || *active == self.runs())
    }

    fn write(&self, machine: &Machine<'_>, before: &State) -> Result<(), ChangeError> {
        let State::Unit { active, links, .. } = before else {
            return Err(ChangeError::not_expected(before, "a unit"));
        };
        let planned = links::planned(machine.root, self.unit, self.want, links)?;
        machine.set_links(links, &planned)?;
        machine.run_unit(self.unit, *active, self.runs())
    }

    /// Links that a killed change left half done are ours, too.
    fn side(&self, machine: &Machine<'_>, three: Three<'_>) -> Side {
        let (
            State::Unit { active: ran, links: old, folders: had },
            State::Unit { active, links: now, folders: has },
        ) = (three.before, three.current)
        else {
            return Side::Theirs;
        };
        let made = match three.after {
            Some(State::Unit { links, .. }) => links.clone(),
            _ => match links::planned(machine.root, self.unit, self.want, old) {
                Ok(planned) => planned,
                Err(_) => return Side::Theirs,
            },
        };
        let runs_as_before = machine.units.is_none() || ran == active;
        let is_halfway = three.may_be_halfway();
        if same_links(old, now) && runs_as_before {
            return if is_halfway && had != has { Side::Ours } else { Side::Before };
        }
        let is_ours = match is_halfway {
            true => links::is_between(old, &made, now),
            false => same_links(&made, now) || same_links(old, now),
        };
        Side::ours_if(is_ours)
    }

    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        let (State::Unit { active: ran, links: old, folders }, State::Unit { links, active, .. }) =
            (three.before, three.current)
        else {
            return Err(ChangeError::not_expected(three.before, "a unit"));
        };
        // What we started is stopped while its links are still there.
        if !ran {
            machine.run_unit(self.unit, *active, false)?;
        }
        machine.set_links(links, old)?;
        let (_, now) = links::all(machine.root, self.unit)?;
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
            places::file(path).map_err(|why| ChangeError::Elsewhere { why })?;
            self.units_stale.set(true);
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            if self.look(folder)? == State::Absent {
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
