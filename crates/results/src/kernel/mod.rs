//! What the commands of `rtproof kernel` return.

pub mod find;
