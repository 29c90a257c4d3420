//! Rendering: the only place that prints. Text for people, JSON for programs, HTML for evidence.

pub(crate) mod compare;
pub(crate) mod effects;
pub mod file;
pub mod html;
pub mod imported;
mod intent;
pub mod junit;
pub mod sarif;
pub(crate) mod spike;
pub mod svg;
pub mod text;

pub use intent::IntentShown;
