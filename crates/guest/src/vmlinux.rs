//! The kernel inside a compressed kernel: QEMU starts an ELF vmlinux by its PVH note, which saves
//! the guest the unpacking (half of a boot under software emulation).

use std::{
    io::{Read, Write},
    process::Stdio,
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use rtproof_host::program;

/// Programs that unpack, by the first bytes of what they unpack.
const PROGRAMS: &[(&[u8], &[&str], &str)] = &[
    (b"\xfd7zXZ\0", &["xz", "-dc", "--single-stream"], "xz-utils"),
    (b"\x28\xb5\x2f\xfd", &["zstd", "-dcq"], "zstd"),
    (b"\x1f\x8b", &["gzip", "-dcq"], "gzip"),
    (b"\x02\x21\x4c\x18", &["lz4", "-dcq"], "lz4"),
];

/// Whether it is a kernel for 32-bit ARM (arch/arm/boot/compressed/head.S).
pub(crate) fn is_zimage(bytes: &[u8]) -> bool {
    bytes.get(0x24..0x28) == Some(&0x016f_2818_u32.to_le_bytes())
}

/// The image that QEMU boots, from the `vmlinuz` of an x86-64, aarch64 or armhf package.
///
/// # Errors
/// It is no kernel of a known form, or a program that unpacks is missing.
pub fn bootable(vmlinuz: &[u8]) -> Result<Vec<u8>> {
    // An Image, or a zImage, which unpacks itself.
    if vmlinuz.get(0x38..0x3c) == Some(b"ARM\x64") || is_zimage(vmlinuz) {
        return Ok(vmlinuz.to_vec());
    }
    // The setup header of the x86 boot protocol, Documentation/arch/x86/boot.rst.
    ensure!(
        vmlinuz.get(0x202..0x206) == Some(b"HdrS"),
        "not a kernel: neither an Image or zImage of ARM nor an x86 bzImage"
    );
    let setup_sectors = match vmlinuz[0x1f1] {
        0 => 4,
        count => usize::from(count),
    };
    let start = (setup_sectors + 1) * 512 + number(vmlinuz, 0x248)?;
    let length = number(vmlinuz, 0x24c)?;
    let payload = start
        .checked_add(length)
        .and_then(|end| vmlinuz.get(start..end))
        .with_context(|| format!("bzImage: payload of {length} bytes at {start} is cut off"))?;
    let elf = unpacked(payload)?;
    ensure!(elf.starts_with(b"\x7fELF"), "bzImage: the payload is no ELF file");
    // The last four bytes hold the unpacked size (gzip has it there by itself).
    let expected = number(payload, length.saturating_sub(4))?;
    ensure!(elf.len() == expected, "bzImage: unpacked {} bytes, expected {expected}", elf.len());
    Ok(elf)
}

/// Unpacks what xz, zstd, gzip or lz4 packed; anything else comes back as it is.
///
/// # Errors
/// The program is missing, or gives nothing.
pub fn unpacked(packed: &[u8]) -> Result<Vec<u8>> {
    let Some((_, command, package)) = PROGRAMS.iter().find(|(magic, ..)| packed.starts_with(magic))
    else {
        return Ok(packed.to_vec());
    };
    let mut child = program::command(command[0])
        .with_context(|| format!("{} cannot be run: install {package}", command[0]))?
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{} cannot be run: install {package}", command[0]))?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("{}: no pipes", command[0]);
    };
    let mut content = Vec::new();
    thread::scope(|scope| {
        // A kernel's payload ends with its size, which some of the programs refuse after they have
        // unpacked everything; so neither this nor their status tells success.
        scope.spawn(move || {
            let _ = stdin.write_all(packed);
        });
        stdout.read_to_end(&mut content)
    })
    .with_context(|| format!("{}: its output cannot be read", command[0]))?;
    child.wait().with_context(|| format!("{} did not end", command[0]))?;
    ensure!(!content.is_empty(), "{} unpacked nothing; is the file broken?", command[0]);
    Ok(content)
}

/// A little-endian 32-bit number.
fn number(bytes: &[u8], at: usize) -> Result<usize> {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    let word: [u8; 4] = word.with_context(|| format!("kernel image: cut off before byte {at}"))?;
    Ok(u32::from_le_bytes(word) as usize)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A bzImage around this payload.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        let length = u32::try_from(payload.len()).unwrap();
        image[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
        image.extend_from_slice(payload);
        image
    }

    fn packed(content: &[u8], program: &[&str]) -> Option<Vec<u8>> {
        let mut child = Command::new(program[0])
            .args(&program[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(content).ok()?;
        Some(child.wait_with_output().ok()?.stdout)
    }

    #[test]
    fn payloads_are_unpacked_and_their_size_is_checked() {
        let elf = b"\x7fELF and so on";
        let size = u32::try_from(elf.len()).unwrap();
        for program in [&["xz", "-c"][..], &["zstd", "-cq"], &["gzip", "-c"], &["lz4", "-lcq"]] {
            let Some(mut payload) = packed(elf, program) else { continue };
            if program[0] != "gzip" {
                payload.extend_from_slice(&size.to_le_bytes());
            }
            assert_eq!(bootable(&image(&payload)).unwrap(), elf, "{program:?}");
            let wrong = payload.len() - 4;
            payload[wrong] ^= 1;
            assert!(bootable(&image(&payload)).is_err(), "{program:?}");
        }
    }

    #[test]
    fn an_arm_image_stays_and_nonsense_is_refused() {
        let mut arm = vec![0; 64];
        arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
        assert_eq!(bootable(&arm).unwrap(), arm);
        assert!(bootable(b"nonsense").is_err());
        let mut cut = image(b"\x1f\x8bxxxx");
        cut.truncate(1026);
        assert!(bootable(&cut).unwrap_err().to_string().contains("cut off"));
    }
}
