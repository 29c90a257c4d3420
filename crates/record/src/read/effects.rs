//! Rows of effects back into [`Effects`]. Records before version 3 have none.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::{
    rows::{Columns, Result, each, fault},
    spikes::room,
};
use crate::effects::{Effect, Effects, KNOBS_MAX, Knob, SLICES_MAX, Slice, Statistic, Trial};

/// The effects in a record that has the tables; `None`: nothing was tried.
pub(super) fn effects(conn: &Connection) -> Result<Option<Effects>> {
    let mut trial = None;
    let sql = "SELECT seed, design, pairs, slice_ns, margin_ppm, level_ppb, detectable_ppm FROM \
               trial";
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        trial = Some(Trial {
            seed: c.uint()?,
            design: c.word()?,
            pairs: c.get()?,
            slice_ns: c.uint()?,
            margin_ppm: c.uint()?,
            level_ppb: c.uint()?,
            detectable_ppm: c.opt_uint()?,
        });
        Ok(())
    })?;
    let Some(trial) = trial else {
        return Ok(None);
    };
    Ok(Some(Effects { trial, knobs: knobs(conn)?, slices: slices(conn)? }))
}

fn knobs(conn: &Connection) -> Result<Vec<Knob>> {
    let mut knobs: BTreeMap<u32, Knob> = BTreeMap::new();
    each(conn, "SELECT number, name, changes, how, decision, kept, why FROM knob", |row| {
        room("knob", knobs.len(), KNOBS_MAX)?;
        let mut c = Columns::new(row);
        let knob = Knob {
            number: c.get()?,
            name: c.get()?,
            changes: c.json()?,
            how: c.word()?,
            decision: c.word()?,
            kept: c.get()?,
            why: c.get()?,
            effects: Vec::new(),
        };
        knobs.insert(knob.number, knob);
        Ok(())
    })?;
    let sql = "SELECT knob, statistic, pairs, off_ns, on_ns, ratio_ppm, low_ppm, high_ppm, p_ppb, \
               adjusted_ppb FROM effect ORDER BY knob, statistic DESC";
    each(conn, sql, |row| {
        let mut c = Columns::new(row);
        let number: u32 = c.get()?;
        let Some(knob) = knobs.get_mut(&number) else {
            return fault(format!("an effect of knob {number}, which table knob does not have"));
        };
        room("effect", knob.effects.len(), Statistic::ALL.len())?;
        knob.effects.push(Effect {
            statistic: c.word()?,
            pairs: c.get()?,
            off_ns: c.uint()?,
            on_ns: c.uint()?,
            ratio_ppm: c.uint()?,
            low_ppm: c.opt_uint()?,
            high_ppm: c.opt_uint()?,
            p_ppb: c.opt_uint()?,
            adjusted_ppb: c.opt_uint()?,
        });
        Ok(())
    })?;
    Ok(knobs.into_values().collect())
}

fn slices(conn: &Connection) -> Result<Vec<Slice>> {
    let mut slices = Vec::new();
    let sql = "SELECT number, part, pair, knobs_on, from_ns, to_ns, n, p999_ns, max_ns, missed \
               FROM slice ORDER BY number";
    each(conn, sql, |row| {
        room("slice", slices.len(), SLICES_MAX)?;
        let mut c = Columns::new(row);
        slices.push(Slice {
            number: c.get()?,
            part: c.word()?,
            pair: c.get()?,
            on: c.json()?,
            from_ns: c.uint()?,
            to_ns: c.uint()?,
            scheduled: c.count()?,
            p999_ns: c.opt_uint()?,
            max_ns: c.opt_uint()?,
            missed: c.count()?,
        });
        Ok(())
    })?;
    Ok(slices)
}
