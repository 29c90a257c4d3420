//! Values to strings and pictures: text, HTML, SVG, SARIF, JUnit.

mod bisected;
mod compare;
mod distribution;
pub mod html;
pub mod imported;
pub mod junit;
pub mod sarif;
pub mod screen;
mod seconds;
mod spike;
pub mod svg;
pub mod text;
