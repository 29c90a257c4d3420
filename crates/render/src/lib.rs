//! Values to strings and pictures: text, HTML, SVG, SARIF, JUnit.

mod html;
pub mod page;
pub mod sarif;
pub mod screen;
pub mod sections;
mod spike;
mod svg;
mod text;
mod timeline;
