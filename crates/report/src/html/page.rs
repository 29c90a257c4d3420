//! What the sections of a report are made from.

use maud::Markup;
use rtproof_judge::Report;
use rtproof_record::Run;

use crate::svg::{
    bins::{Column, TimeBins},
    strip::Rows,
};

/// What sections are made from.
pub(super) struct Page<'a> {
    pub(super) run: &'a Run,
    pub(super) report: &'a Report,
    pub(super) time: TimeBins,
    pub(super) rows: Rows,
    pub(super) columns: Vec<Column>,
    /// The worst spikes one by one.
    pub(super) pictures: Vec<Markup>,
}
