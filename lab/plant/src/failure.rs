//! Why a plant failed.

/// Why it did not go well.
pub(crate) enum Failure {
    /// The command line.
    Usage(String),
    /// `rtproof prove` did not come to measure in time.
    NotMeasuring(String),
    Other(String),
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}
