//! Why a workload is not available.

/// Why a workload is not available.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// There is none of that name.
    #[error("`{name}` is no workload; expected one of {known}")]
    Name {
        name: String,
        /// Those that there are.
        known: String,
    },
    /// It does not take this parameter.
    #[error("{workload}: `{found}` cannot be used; it takes {expected}")]
    Parameter {
        workload: &'static str,
        /// What was found, shortened.
        found: String,
        expected: String,
    },
    /// It cannot run with these settings, or on this machine.
    #[error("{workload}: {why}")]
    Unfit {
        workload: &'static str,
        /// Why, and what to do about it.
        why: String,
    },
}

impl WorkloadError {
    /// A parameter that is none.
    pub(super) fn parameter(
        workload: &'static str,
        found: &str,
        expected: impl Into<String>,
    ) -> Self {
        let found = found.chars().take(60).collect();
        Self::Parameter { workload, found, expected: expected.into() }
    }

    /// Something that is not possible here.
    pub(super) fn unfit(workload: &'static str, why: impl std::fmt::Display) -> Self {
        Self::Unfit { workload, why: why.to_string() }
    }
}
