//! What kept a load from working.

/// What kept a load from working: the value, what was expected, the next step. It crosses a pipe
/// as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WorkError(pub String);

impl From<String> for WorkError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for WorkError {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}
