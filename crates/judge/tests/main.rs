//! Plans of the captured machines.

mod plans;
mod schedule;
