//! Devices that answer record by record or at an offset: the kernel's log and the registers of a
//! CPU. Of the live machine alone; a capture keeps what was made of the answer.

#![expect(clippy::disallowed_methods, reason = "this is the gate")]

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileExt, OpenOptionsExt},
};

use rustix::{fs::OFlags, io::Errno};

/// Most records read: some 20 ms. The buffer of a machine with hundreds of CPUs may hold more.
const RECORDS_MAX: usize = 16_384;
/// Longer than any record (kernel/printk/internal.h, `PRINTK_MESSAGE_MAX`).
const RECORD_BYTES_MAX: usize = 8_192;

/// The kernel's log as far as its buffer still holds it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Messages {
    /// Whether the first message since boot is among them: nothing was overwritten.
    pub(crate) from_start: bool,
    /// Whether all were read up to now.
    pub(crate) to_end: bool,
    /// First lines of the messages, without level and time.
    pub(crate) lines: Vec<String>,
}

/// Reads /dev/kmsg; never waits for a message. `keep` makes of a message what is kept of it.
pub(super) fn kernel_log(keep: impl Fn(&str) -> Option<String>) -> io::Result<Messages> {
    read_log(&mut open("/dev/kmsg")?, keep)
}

/// One read(2) of the device is one record: `6,0,0,-;Linux version ...`, then lines of its
/// properties (Documentation/ABI/testing/dev-kmsg).
fn read_log(device: &mut impl Read, keep: impl Fn(&str) -> Option<String>) -> io::Result<Messages> {
    let mut log = Messages::default();
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    for at in 0..RECORDS_MAX {
        let length = match device.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            // Overwritten while it was read: the next one is there.
            Err(error) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => continue,
            Err(error) => return Err(error),
        };
        if length == 0 {
            log.to_end = true;
            break;
        }
        let record = String::from_utf8_lossy(&buffer[..length]);
        let Some((head, message)) = record.split_once(';') else { continue };
        if at == 0 {
            log.from_start = head.split(',').nth(1) == Some("0");
        }
        log.lines.extend(message.lines().next().and_then(&keep));
    }
    Ok(log)
}

/// A register of a CPU (msr(4)). The CPU is interrupted for it.
pub(super) fn register(cpu: u32, register: u32) -> io::Result<u64> {
    let mut value = [0; 8];
    open(&format!("/dev/cpu/{cpu}/msr"))?.read_exact_at(&mut value, u64::from(register))?;
    Ok(u64::from_le_bytes(value))
}

fn open(path: &str) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers read by read, as the device does.
    struct Records(Vec<io::Result<&'static str>>);

    impl Read for Records {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.pop() {
                Some(Ok(record)) => {
                    buffer[..record.len()].copy_from_slice(record.as_bytes());
                    Ok(record.len())
                }
                Some(Err(error)) => Err(error),
                None => Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }

    fn read(mut records: Vec<io::Result<&'static str>>) -> io::Result<Messages> {
        records.reverse();
        let keep = |line: &str| line.contains("tsc").then(|| line.to_owned());
        read_log(&mut Records(records), keep)
    }

    #[test]
    fn records_are_filtered_and_properties_left_out() {
        let log = read(vec![
            Ok("6,0,0,-;Linux version 6.1\n"),
            Err(Errno::PIPE.into()),
            Ok("4,7,12,-;tsc: bad; very\n SUBSYSTEM=tsc\n DEVICE=x\n"),
        ])
        .unwrap();
        let lines = vec!["tsc: bad; very".to_owned()];
        assert_eq!(log, Messages { from_start: true, to_end: true, lines });
        assert!(!read(vec![Ok("6,5,0,-;x\n")]).unwrap().from_start);
    }

    #[test]
    fn refusals_are_told_and_an_endless_log_ends() {
        assert!(read(vec![Err(Errno::PERM.into())]).is_err());
        let endless = (0..RECORDS_MAX + 5).map(|_| Ok("6,0,0,-;x\n")).collect();
        assert!(!read(endless).unwrap().to_end);
    }
}
