//! `lab-plant`: plants one cause of latency inside a lab guest, for a bounded time, and writes down
//! what it really did.

fn main() {}
