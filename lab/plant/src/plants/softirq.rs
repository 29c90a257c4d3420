//! Soft interrupts: a UDP flood over loopback, whose packets the kernel takes through the whole
//! receiving path on the sender's CPU.

use std::net::UdpSocket;

use crate::run::Run;
use crate::truth::Truth;

const BYTES: usize = 1024;

pub(super) fn flood(run: &Run, truth: &mut Truth) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("loopback: {error}; is `lo` up?");
    // Nobody reads: what its buffer does not hold is dropped at the very end of the path.
    let to = UdpSocket::bind("127.0.0.1:0").map_err(failed)?;
    let from = UdpSocket::bind("127.0.0.1:0").map_err(failed)?;
    from.connect(to.local_addr().map_err(failed)?).map_err(failed)?;
    let (mut count, mut refused) = (0_u64, 0_u64);
    while !run.is_over() {
        match from.send(&[0; BYTES]) {
            Ok(_) => count += 1,
            Err(_) => refused += 1,
        }
    }
    truth.set("count", count);
    truth.set("bytes", count * BYTES as u64);
    truth.set("refused", refused);
    Ok(())
}
