//! The answer of each command that judges no run: pure functions of what it found and of the
//! options that were given.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod measure;
pub(crate) mod trace;
pub(crate) mod tune;
