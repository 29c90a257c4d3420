//! A wrong request: an option, a name or a value that the user has to correct.

/// A wrong request. The program reports it plainly and does nothing.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A usage error as the error of a command.
#[must_use]
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    Usage(text.into()).into()
}
