//! Rows of effects back into [`Effects`]. Records before version 3 have none.

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::{
    effects::{Effect, Effects, KNOBS_MAX, KnobResult, SLICES_MAX, Statistic, Trial},
    rows::{Result, Row, each_of, fault, list, room},
};

/// The effects in a record that has the tables; `None`: nothing was tried.
pub(super) fn effects(conn: &Connection) -> Result<Option<Effects>> {
    let Some(trial) = list::<Trial>(conn, 1, "", 1)?.pop() else {
        return Ok(None);
    };
    let mut knobs: BTreeMap<u32, KnobResult> = BTreeMap::new();
    for knob in list::<KnobResult>(conn, 0, "", KNOBS_MAX)? {
        knobs.insert(knob.number, knob);
    }
    each_of(conn, "ORDER BY knob, statistic DESC", |number: u32, effect: Effect| {
        let Some(knob) = knobs.get_mut(&number) else {
            return fault(format!("an effect of knob {number}, which table knob does not have"));
        };
        room(Effect::TABLE, knob.effects.len(), Statistic::ALL.len())?;
        knob.effects.push(effect);
        Ok(())
    })?;
    let slices = list(conn, 0, "ORDER BY number", SLICES_MAX)?;
    Ok(Some(Effects { trial, knobs: knobs.into_values().collect(), slices }))
}
