//! GRUB's environment block: 1024 bytes that GRUB itself can rewrite in place, so the size never
//! changes (GRUB manual, "The GRUB environment block").

use crate::change::Bytes;

pub(crate) const HEAD: &[u8] = b"# GRUB Environment Block\n";
/// Size of a new block; an existing one keeps its own.
pub(crate) const SIZE: usize = 1024;

/// What is wrong with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlockError {
    #[error("no environment block of GRUB; make one with grub-editenv FILE create")]
    Malformed,
    #[error("no room for the variable; remove others with grub-editenv FILE unset NAME")]
    Full,
    #[error("not a name of a variable")]
    Name,
}

pub(crate) fn empty() -> Bytes {
    let mut block = HEAD.to_vec();
    block.resize(SIZE, b'#');
    Bytes(block)
}

/// The lines of a block with their ends: `NAME=value\n`. A backslash keeps a line going: GRUB
/// escapes line ends and backslashes in values.
fn lines(block: &[u8]) -> Result<Vec<&[u8]>, BlockError> {
    let mut rest = block.strip_prefix(HEAD).ok_or(BlockError::Malformed)?;
    let mut lines = Vec::new();
    while !rest.is_empty() && rest.iter().any(|&byte| byte != b'#') {
        let mut is_escaped = false;
        let is_end = |&byte: &u8| {
            let is_end = byte == b'\n' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        };
        let end = rest.iter().position(is_end).ok_or(BlockError::Malformed)?;
        let (line, after) = rest.split_at(end + 1);
        lines.push(line);
        rest = after;
    }
    Ok(lines)
}

fn value_of<'l>(line: &'l [u8], key: &str) -> Option<&'l [u8]> {
    line.strip_prefix(key.as_bytes())?.strip_prefix(b"=")?.strip_suffix(b"\n")
}

/// The value of a variable, unescaped.
pub(crate) fn get(block: &Bytes, key: &str) -> Result<Option<Vec<u8>>, BlockError> {
    let value = lines(&block.0)?.into_iter().rev().find_map(|line| value_of(line, key));
    Ok(value.map(|escaped| {
        let mut value = Vec::new();
        let mut bytes = escaped.iter();
        while let Some(&byte) = bytes.next() {
            value.push(if byte == b'\\' { bytes.next().copied().unwrap_or(byte) } else { byte });
        }
        value
    }))
}

/// The block with a variable set, or removed for `None`; all other bytes in their order.
pub(crate) fn with(block: &Bytes, key: &str, value: Option<&[u8]>) -> Result<Bytes, BlockError> {
    if key.is_empty() || key.contains(['=', '\n', '#', '\\']) {
        return Err(BlockError::Name);
    }
    let mut new = HEAD.to_vec();
    let line = value.map(|value| {
        let mut line = format!("{key}=").into_bytes();
        for &byte in value {
            if matches!(byte, b'\\' | b'\n') {
                line.push(b'\\');
            }
            line.push(byte);
        }
        line.push(b'\n');
        line
    });
    let mut todo = line.as_deref();
    for old in lines(&block.0)? {
        match value_of(old, key) {
            Some(_) => new.extend_from_slice(todo.take().unwrap_or_default()),
            None => new.extend_from_slice(old),
        }
    }
    new.extend_from_slice(todo.unwrap_or_default());
    if new.len() > block.0.len() {
        return Err(BlockError::Full);
    }
    new.resize(block.0.len(), b'#');
    Ok(Bytes(new))
}

/// Whether two blocks have the same variables but for one, in the same order.
pub(crate) fn is_same_but_for(a: &Bytes, b: &Bytes, key: &str) -> bool {
    let others = |block: &Bytes| -> Option<Vec<Vec<u8>>> {
        let lines = lines(&block.0).ok()?;
        let other = |line: &&[u8]| value_of(line, key).is_none();
        Some(lines.into_iter().filter(other).map(<[u8]>::to_vec).collect())
    };
    a.0.len() == b.0.len() && others(a).is_some_and(|a| Some(a) == others(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lines: &str) -> Bytes {
        let mut block = [HEAD, lines.as_bytes()].concat();
        block.resize(SIZE, b'#');
        Bytes(block)
    }

    #[test]
    fn a_variable_is_set_and_removed_and_the_rest_stays() {
        let old = block("saved_entry=0\nkernelopts=root=/dev/sda1 ro\nmenu_auto_hide=1\n");
        assert_eq!(get(&old, "kernelopts").unwrap().unwrap(), b"root=/dev/sda1 ro");
        assert_eq!(get(&old, "next_entry").unwrap(), None);
        let new = with(&old, "next_entry", Some(b"real-time")).unwrap();
        assert_eq!(new.0.len(), SIZE);
        assert_eq!(get(&new, "next_entry").unwrap().unwrap(), b"real-time");
        assert!(is_same_but_for(&old, &new, "next_entry") && old != new);
        assert_eq!(with(&new, "next_entry", None).unwrap(), old);
        let changed = with(&old, "saved_entry", Some(b"a\\b\nc")).unwrap();
        assert_eq!(get(&changed, "saved_entry").unwrap().unwrap(), b"a\\b\nc");
        assert_eq!(with(&changed, "saved_entry", Some(b"0")).unwrap(), old);
        assert!(!is_same_but_for(&changed, &old, "next_entry"));
        assert_eq!(with(&empty(), "x", None).unwrap(), empty());
    }

    #[test]
    fn what_is_no_block_or_does_not_fit_is_refused() {
        for bad in [&b""[..], b"# GRUB", b"x=1\n", b"# GRUB Environment Block\nx=1"] {
            assert_eq!(get(&Bytes(bad.to_vec()), "x"), Err(BlockError::Malformed));
        }
        let long = "x".repeat(SIZE);
        assert_eq!(with(&empty(), "k", Some(long.as_bytes())), Err(BlockError::Full));
        assert_eq!(with(&empty(), "k=", Some(b"1")), Err(BlockError::Name));
        // The last byte may be used.
        let fits = SIZE - HEAD.len() - "k=\n".len();
        assert!(with(&empty(), "k", Some(&long.as_bytes()[..fits])).is_ok());
        assert!(with(&empty(), "k", Some(&long.as_bytes()[..=fits])).is_err());
    }
}
