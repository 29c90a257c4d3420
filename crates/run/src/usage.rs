//! A wrong request: an option, a name or a value that the user has to correct.

/// A wrong request. The program reports it plainly and does nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// A usage error as the error of a command.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    Usage(text.into()).into()
}

/// Why a value or a name cannot be used; the caller adds where it stood.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl From<String> for Invalid {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for Invalid {
    fn from(why: &str) -> Self {
        Self(why.into())
    }
}

impl From<Invalid> for String {
    fn from(why: Invalid) -> Self {
        why.0
    }
}

impl std::ops::Deref for Invalid {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
