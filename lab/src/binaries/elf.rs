//! Whether a program is a static one for an architecture: guests have no shared libraries.

use anyhow::{Result, bail, ensure};

use rtproof_guest::Arch;

/// `p_type` of a segment that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// Reads the program headers.
pub(super) fn check_static(bytes: &[u8], arch: Arch) -> Result<()> {
    let (machine, is_32_bit) = match arch {
        Arch::X86_64 => (62, false),
        Arch::Aarch64 => (183, false),
        Arch::Armv7 => (40, true),
    };
    let (class, bits) = if is_32_bit { (1, 32) } else { (2, 64) };
    let is_of_class = bytes.starts_with(&[0x7f, b'E', b'L', b'F', class, 1]);
    ensure!(is_of_class, "not an ELF file of {bits} bits, little endian");
    let found = half(bytes, 18)?;
    ensure!(found == machine, "ELF machine is {found}, expected {machine}");
    let (start, size, count) = match is_32_bit {
        true => (usize::try_from(word(bytes, 28)?)?, half(bytes, 42)?, half(bytes, 44)?),
        false => (long(bytes, 32)?, half(bytes, 54)?, half(bytes, 56)?),
    };
    ensure!(count > 0, "no program headers: not an executable");
    for index in 0..usize::from(count) {
        let at = start + index * usize::from(size);
        if word(bytes, at)? == PT_INTERP {
            bail!("not static: it names a dynamic loader; was RUSTFLAGS overridden?");
        }
    }
    Ok(())
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(field) => Ok(*field),
        None => bail!("cut short: nothing at byte {at}"),
    }
}

fn half(bytes: &[u8], at: usize) -> Result<u16> {
    Ok(u16::from_le_bytes(field(bytes, at)?))
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(field(bytes, at)?))
}

fn long(bytes: &[u8], at: usize) -> Result<usize> {
    Ok(usize::try_from(u64::from_le_bytes(field(bytes, at)?))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(machine: u8, segments: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = machine;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = u8::try_from(segments.len()).unwrap();
        for kind in segments {
            bytes.push(*kind);
            bytes.extend([0; 55]);
        }
        bytes
    }

    #[test]
    fn only_a_static_program_of_the_architecture_passes() {
        let said = |bytes: &[u8]| match check_static(bytes, Arch::Aarch64) {
            Ok(()) => "static".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(said(&program(183, &[1, 1, 2])), "static");
        assert!(said(&program(183, &[1, 3])).starts_with("not static"));
        assert_eq!(said(&program(62, &[1])), "ELF machine is 62, expected 183");
        assert_eq!(said(&program(183, &[1, 1])[..100]), "cut short: nothing at byte 120");
        assert!(said(b"#!/bin/sh").starts_with("not an ELF"));
        let mut arm = vec![0; 52];
        arm[..6].copy_from_slice(b"\x7fELF\x01\x01");
        (arm[18], arm[28], arm[42], arm[44]) = (40, 52, 32, 1);
        arm.extend([1; 1]);
        arm.extend([0; 31]);
        check_static(&arm, Arch::Armv7).unwrap();
        arm[52] = 3;
        assert!(check_static(&arm, Arch::Armv7).unwrap_err().to_string().starts_with("not static"));
        assert!(check_static(&arm, Arch::Aarch64).unwrap_err().to_string().contains("64 bits"));
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(check_static(&own, Arch::X86_64).is_err());
    }
}
