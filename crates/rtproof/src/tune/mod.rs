//! The work behind `tune`: previews, outcomes, the guardian, proving.

pub mod ask;
pub mod boot;
pub mod guardian;
pub mod making;
pub mod outcome;
pub mod preview;
//! Tuning, as far as it is neither the judge's (what is wanted) nor the host's (how it is set):
//! what works over time and by measuring, what is repeated at boot, and what hands a plan to
//! others, one folder each.

pub mod config;
pub mod hold;
pub mod notify;
pub mod export;
pub mod place;
pub mod prove;
pub mod standing;
pub mod stored;
