//! Rows of effects, and what may be written of them.

use std::collections::BTreeSet;

use rusqlite::{Connection, Result, params};

use crate::error::{Contradiction, bound};
use crate::{
    effects::{EffectTick, KNOBS_MAX, SLICES_MAX},
    rows::{insert, replace, run, update},
};

/// What the writer remembers of the rows there are.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    knobs: BTreeSet<u32>,
    slices: usize,
}

impl State {
    /// The state after a tick, or why it cannot be written.
    pub(super) fn after(&self, tick: &EffectTick) -> std::result::Result<Self, Contradiction> {
        let mut state = self.clone();
        state.knobs.extend(tick.knobs.iter().map(|knob| knob.number));
        for slice in &tick.slices {
            if slice.number as usize != state.slices {
                return Err(format!("slice {}, expected {}", slice.number, state.slices).into());
            }
            state.slices += 1;
            if let Some(number) = slice.on.iter().find(|number| !state.knobs.contains(number)) {
                return Err(format!(
                    "slice {} with knob {number}, which is not there",
                    slice.number
                )
                .into());
            }
        }
        bound("knobs", state.knobs.len(), KNOBS_MAX)?;
        bound("slices", state.slices, SLICES_MAX)?;
        Ok(state)
    }
}

/// Writes what a second brought.
pub(super) fn write(conn: &Connection, tick: &EffectTick) -> Result<()> {
    tick.trial.iter().try_for_each(|row| replace(conn, params![1], row))?;
    for knob in &tick.knobs {
        update(conn, "number", &[], knob)?;
        run(conn, "DELETE FROM effect WHERE knob = ?1", params![knob.number])?;
        knob.effects.iter().try_for_each(|row| insert(conn, params![knob.number], row))?;
    }
    tick.slices.iter().try_for_each(|row| insert(conn, &[], row))
}
