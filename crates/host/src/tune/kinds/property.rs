//! Properties of units of systemd, set at run time.

use crate::CpuList;
use crate::tune::kind::{
    ChangeError, Kind, Machine, Nature, Pace, Part, Rank, Side, State, Three, places,
};

/// Where `set-property --runtime` keeps what it sets.
const CONTROL: &str = "/run/systemd/system.control";

fn drop_in(unit: &str, property: &str) -> String {
    format!("{CONTROL}/{unit}.d/50-{property}.conf")
}

/// One property of one unit; an empty value is the unit's own.
pub(super) struct Property<'a> {
    pub(super) unit: &'a str,
    pub(super) property: &'a str,
    pub(super) value: &'a str,
}

impl Kind for Property<'_> {
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
        places::name(self.unit, "a unit")?;
        places::name(self.property, "a property")
    }

    fn nature(&self) -> Nature {
        Nature::lost_at_reboot(Part::Units, Rank::UnitProperties, Pace::Toggled)
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
        let drop_in = match machine.look(&drop_in(unit, property))? {
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

    fn side(&self, _: &Machine<'_>, three: Three<'_>) -> Side {
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
            _ => is_old || is_same_property(self.value, now),
        };
        Side::ours_if(is_ours)
    }

    /// Removes the folders of a drop-in that are empty.
    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        for folder in [&format!("{CONTROL}/{}.d", self.unit), CONTROL] {
            if machine.look(folder)? == State::Folder {
                machine.remove_if_empty(folder)?;
            }
        }
        Ok(())
    }

    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        let State::Property { value, drop_in: old } = three.before else {
            return Err(ChangeError::not_expected(three.before, "a property"));
        };
        machine.write_property(self.unit, self.property, value)?;
        let path = drop_in(self.unit, self.property);
        match (machine.look(&path)?, old) {
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
