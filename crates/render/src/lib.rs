//! Documents to text, HTML, SVG, terminal, SARIF and JUnit.
#![doc = include_str!("../README.md")]

mod html;
pub mod page;
pub mod sarif;
pub mod screen;
pub mod sections;
mod spike;
mod svg;
mod text;
mod timeline;
