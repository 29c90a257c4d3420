//! What a machine asks of its service manager.

use super::{error::ChangeError, machine::Machine, systemctl::Units};

impl Machine<'_> {
    /// The service manager, where there is one to ask.
    pub(super) fn units(&self, unit: &str) -> Result<Option<&dyn Units>, ChangeError> {
        if self.root.is_live() && !self.root.exists("/run/systemd/system") {
            return Err(ChangeError::NoSystemd { unit: unit.into() });
        }
        Ok(self.units)
    }

    pub(super) fn systemctl(&self, unit: &str, arguments: &[&str]) -> Result<String, ChangeError> {
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
    pub(super) fn reload_units(&self) -> Result<(), ChangeError> {
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
