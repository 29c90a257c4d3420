//! Results of other tools: real ones with the numbers that are known of them, our own fixtures,
//! files that are cut, mixed up or empty, and the tools themselves where they are installed.

mod captures;
mod common;
mod cyclictest;
mod damage;
mod fixtures;
mod hwlat;
mod oslat;
mod pasted;
mod rtla;
mod store;
