//! What is left.

use super::{
    claim::{Cause, Claim, Kind},
    scene::Moment,
};

/// Nothing that was recorded.
#[derive(Debug)]
pub(super) struct Unexplained;

impl Cause for Unexplained {
    fn id(&self) -> &'static str {
        "unexplained"
    }

    fn kind(&self) -> Kind {
        Kind::Unknown
    }

    fn title(&self) -> &'static str {
        "nothing that was recorded"
    }

    fn about(&self) -> &'static str {
        "no event says what the CPU did"
    }

    fn source(&self) -> &'static str {
        "docs/adr/0009-every-nanosecond-is-claimed.md"
    }

    fn checks(&self) -> &'static [&'static str] {
        &[]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        let _ = moment;
        Some(Claim::default())
    }
}
