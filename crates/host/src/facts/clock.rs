//! Clock sources.

use serde::{Deserialize, Serialize};

use crate::Reading;

/// The clock behind CLOCK_MONOTONIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clock {
    /// Clock source in use.
    pub source: Reading<String>,
    /// Clock sources to choose from.
    pub available: Reading<Vec<String>>,
}
