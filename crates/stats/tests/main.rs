//! Statistics inside an application.

mod inside;
