//! bin
