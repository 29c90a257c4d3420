//! The commands, one file each: arguments, what they do, how they end.

pub mod capture;
pub mod check;
pub mod compare;
pub mod experiment;
pub mod explain;
pub mod export;
pub mod import;
pub mod load_worker;
pub mod measure;
pub mod prove;
pub mod report;
pub mod tune;
