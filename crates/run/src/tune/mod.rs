//! Tuning, as far as it is neither the judge's (what is wanted) nor the host's (how it is set):
//! what is shown and asked before, what became of it, the rollback of `--confirm`, what works over
//! time and by measuring, what is repeated at boot, and what hands a plan to others.

pub mod active;
pub mod boot;
pub mod config;
pub mod export;
pub mod hold;
pub mod kernel;
pub mod making;
pub mod notify;
pub mod once;
pub mod place;
pub mod preview;
pub mod repeat;
pub mod rollback;
pub mod stored;
pub mod watch;
