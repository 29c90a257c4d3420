//! What `measure` plans and finds, as data.

pub mod index;
pub mod plan;
