//! `rtproof tune hold`: see `crate::tune::hold`.

pub use crate::tune::hold::{Args, run};
