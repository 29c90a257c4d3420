//! The machine: one [`Root`] through which every machine path is read, and the [`facts::Facts`]
//! read from it.
//!
//! Floor 1. Nothing else in the house opens a path under /proc, /sys, /etc or /boot. Parsers take
//! bytes; readers take a [`Root`]; what cannot be read stays unknown, with the path asked.

pub mod cpu_list;
pub mod facts;
pub mod reading;
pub mod root;

pub use cpu_list::CpuList;
pub use facts::Facts;
pub use reading::Reading;
pub use root::Root;
