//! Every event of every kernel layout, decoded.
