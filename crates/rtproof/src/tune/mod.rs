//! Tuning, as far as it is neither the judge's (what is wanted) nor the host's (how it is set):
//! what works over time and by measuring, what is repeated at boot, and what hands a plan to
//! others, one folder each.

pub mod config;
pub mod export;
pub mod hold;
pub mod notify;
pub mod place;
pub mod prove;
pub mod repeat;
pub mod watch;
