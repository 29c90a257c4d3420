//! Where a level changes: all changes of a series that is over, one change and its probability, and
//! changes as they come.

mod cusum;
mod levels;
mod pettitt;
mod steps;

pub use cusum::{Cusum, Turn};
pub use levels::{levels, noise_sd, penalty};
pub use pettitt::{Pettitt, pettitt};
pub use steps::{Step, steps};
