//! The kernel's events: names, fields, forms.

pub(crate) mod codec;
pub(crate) mod table;
pub(crate) mod text;
