//! What is left.

use super::{
    cause::{Attribution, Cause, Kind},
    scene::Moment,
};

pub(super) const CAUSE: Cause = Cause {
    id: "unexplained",
    kind: Kind::Unknown,
    title: "nothing that was recorded",
    about: "no event says what the CPU did",
    source: "docs/adr/0009-every-nanosecond-is-claimed.md",
    checks: &[],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    let _ = moment;
    Some(Attribution::default())
}
