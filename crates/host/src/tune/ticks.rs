//! Writing the ticks of the firmware's list. They are a statement of the user, and no tuning: they
//! change nothing, and no undo takes them away.

use super::{error::ChangeError, machine::Machine};
use crate::change::Bytes;
use crate::facts::platform::firmware::{TICKS, Tick, text};

/// Writes all ticks of a machine, whole or not at all.
///
/// # Errors
/// The machine was opened for reading, or the file cannot be written.
pub fn write_ticks(machine: &Machine<'_>, ticks: &[Tick]) -> Result<(), ChangeError> {
    machine.may_write(TICKS)?;
    let before = machine.look(TICKS)?;
    machine.write_file(TICKS, Some(&Bytes(text(ticks).into_bytes())), None, &before)
}
