//! `rtproof measure`: a matrix of conditions, each cell of it a run and a record of its own, and
//! one index over all of them.
//!
//! From what is asked (`request`, on the command line or in a [`matrix`]) to [`cells`]; the cells
//! are measured one after the other by the engine of `prove` ([`run`]) into a [`folder`]; what each
//! found becomes rows of the `index`.

pub mod cells;
mod conditions;
pub mod folder;
pub mod found;
pub mod matrix;
mod paired;
pub mod request;
pub mod run;
pub mod statistics;
