//! Plans of the captured machines.

mod plans;
