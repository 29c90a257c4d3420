//! What each CPU did, from its events.
