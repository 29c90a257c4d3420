//! Pictures as SVG.

pub(crate) mod bins;
pub(crate) mod chart;
pub(crate) mod compare;
pub(crate) mod events;
pub(crate) mod latency;
pub(crate) mod over;
pub(crate) mod ranges;
pub(crate) mod spike;
pub(crate) mod time;
