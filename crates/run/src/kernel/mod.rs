//! Kernels: which the distribution offers, how one is configured and built.

pub mod find;
