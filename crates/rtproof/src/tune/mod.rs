//! Tuning, as far as it is neither the judge's (what is wanted) nor the host's (how it is set).

pub mod export;
