//! What is busy for a moment: the kernel keeps what a killed process held for some milliseconds, a
//! control group until its last process is gone, the bandwidth of a deadline task up to a period.

use std::{
    io, thread,
    time::{Duration, Instant},
};

const LONGEST: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);

/// Does something, again as long as it is refused as busy, for a second at most.
pub(super) fn when_free(mut act: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let end = Instant::now() + LONGEST;
    loop {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < end => {
                thread::sleep(POLL);
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_busy_is_waited_for() {
        let times = |kind: io::ErrorKind, refusals: u32| {
            let mut tried = 0;
            let done = when_free(|| {
                tried += 1;
                if tried > refusals { Ok(()) } else { Err(kind.into()) }
            });
            (tried, done.is_ok())
        };
        assert_eq!(times(io::ErrorKind::ResourceBusy, 3), (4, true));
        assert_eq!(times(io::ErrorKind::PermissionDenied, 3), (1, false));
        assert!(!times(io::ErrorKind::ResourceBusy, u32::MAX).1);
    }
}
