//! The sections of text answers and of pages, one file a subject.

pub mod bisect;
pub mod compare;
mod compare_pictures;
pub(crate) mod distribution;
pub mod effects;
pub(crate) mod findings;
pub mod imported;
pub mod kernel;
pub(crate) mod latency;
pub mod launch;
pub(crate) mod machine;
pub mod measure;
pub(crate) mod plan;
pub(crate) mod spikes;
pub(crate) mod summary;
pub(crate) mod time;
pub(crate) mod tune;
