//! Rendering: the only place that prints. Text for people, JSON for programs, HTML for evidence.

pub mod file;
pub mod html;
pub mod svg;
pub mod text;
