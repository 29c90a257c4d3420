//! Tuning, as far as it is neither the judge's (what is wanted) nor the host's (how it is set):
//! what works over time and by measuring, and what hands a plan to others.

pub mod export;
pub mod prove;
