//! Rows of effects, and what may be written of them.

use std::collections::BTreeSet;

use rusqlite::{Connection, Result, params};

use super::rows::{int, json, opt_int, run, word};
use crate::effects::{Effect, EffectTick, KNOBS_MAX, Knob, SLICES_MAX, Slice, Trial};

/// What the writer remembers of the rows there are.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    knobs: BTreeSet<u32>,
    slices: usize,
}

impl State {
    /// The state after a tick, or why it cannot be written.
    pub(super) fn after(&self, tick: &EffectTick) -> std::result::Result<Self, String> {
        let mut state = self.clone();
        state.knobs.extend(tick.knobs.iter().map(|knob| knob.number));
        for slice in &tick.slices {
            if slice.number as usize != state.slices {
                return Err(format!("slice {}, expected {}", slice.number, state.slices));
            }
            state.slices += 1;
            if let Some(number) = slice.on.iter().find(|number| !state.knobs.contains(number)) {
                return Err(format!(
                    "slice {} with knob {number}, which is not there",
                    slice.number
                ));
            }
        }
        for (what, n, max) in
            [("knobs", state.knobs.len(), KNOBS_MAX), ("slices", state.slices, SLICES_MAX)]
        {
            if n > max {
                return Err(format!("{n} {what}, expected {max} at most"));
            }
        }
        Ok(state)
    }
}

/// Writes what a second brought.
pub(super) fn write(conn: &Connection, tick: &EffectTick) -> Result<()> {
    tick.trial.iter().try_for_each(|row| trial(conn, row))?;
    tick.knobs.iter().try_for_each(|row| knob(conn, row))?;
    tick.slices.iter().try_for_each(|row| slice(conn, row))
}

fn trial(conn: &Connection, trial: &Trial) -> Result<()> {
    run(
        conn,
        "INSERT OR REPLACE INTO trial VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            int(trial.seed)?,
            word(&trial.design)?,
            trial.pairs,
            int(trial.slice_ns)?,
            int(trial.margin_ppm)?,
            int(trial.level_ppb)?,
            opt_int(trial.detectable_ppm)?,
        ],
    )
}

fn knob(conn: &Connection, knob: &Knob) -> Result<()> {
    run(
        conn,
        "INSERT INTO knob VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (number) DO UPDATE SET \
         name = excluded.name, changes = excluded.changes, how = excluded.how, \
         decision = excluded.decision, kept = excluded.kept, why = excluded.why",
        params![
            knob.number,
            knob.name,
            json(&knob.changes)?,
            word(&knob.how)?,
            word(&knob.decision)?,
            knob.kept,
            knob.why,
        ],
    )?;
    run(conn, "DELETE FROM effect WHERE knob = ?1", params![knob.number])?;
    knob.effects.iter().try_for_each(|row| effect(conn, knob.number, row))
}

fn effect(conn: &Connection, knob: u32, effect: &Effect) -> Result<()> {
    run(
        conn,
        "INSERT INTO effect VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            knob,
            word(&effect.statistic)?,
            effect.pairs,
            int(effect.off_ns)?,
            int(effect.on_ns)?,
            int(effect.ratio_ppm)?,
            opt_int(effect.low_ppm)?,
            opt_int(effect.high_ppm)?,
            opt_int(effect.p_ppb)?,
            opt_int(effect.adjusted_ppb)?,
        ],
    )
}

fn slice(conn: &Connection, slice: &Slice) -> Result<()> {
    run(
        conn,
        "INSERT INTO slice VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            slice.number,
            word(&slice.part)?,
            slice.pair,
            json(&slice.on)?,
            int(slice.from_ns)?,
            int(slice.to_ns)?,
            int(slice.scheduled)?,
            opt_int(slice.p999_ns)?,
            opt_int(slice.max_ns)?,
            int(slice.missed)?,
        ],
    )
}
