//! The work behind `tune`: previews, outcomes, the guardian, proving.

pub mod ask;
pub mod boot;
pub mod guardian;
pub mod making;
pub mod outcome;
pub mod preview;
pub mod prove;
pub mod standing;
pub mod stored;
