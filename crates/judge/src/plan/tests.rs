//! Plans of machines.
