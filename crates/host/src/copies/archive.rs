//! A tar archive as it streams by: its members, one after the other, none of them on disk.
//!
//! The archive is a stranger's: what it unpacks to, the number of its members and the length of
//! their names are bounded, and nothing in it names a place outside of it.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

/// Bytes that an archive may unpack to: reports of large machines have a few GiB.
const UNPACKED_BYTES_MAX: u64 = 16 << 30;

const MEMBERS_MAX: u64 = 4_000_000;

/// What xz may keep for unpacking: its own highest preset takes 64 MiB.
const XZ_KIB_MAX: u32 = 66 << 10;

/// Longest name or target, with what GNU and pax put round it.
const NAME_BYTES_MAX: u64 = 16 << 10;

const BLOCK: usize = 512;

/// What a member is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MemberKind {
    File,
    Folder,
    Link(String),
}

/// One member; its path as it stands in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) path: String,
    pub(super) kind: MemberKind,
    pub(super) bytes: u64,
}

/// The bytes behind gzip or xz; others as they are.
pub(super) fn unpacked<'a>(mut from: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let head = from.fill_buf()?;
    let unpacked: Box<dyn Read> = match head {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(from)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Box::new(XzReader::new_mem_limit(from, true, XZ_KIB_MAX))
        }
        [b'B', b'Z', b'h', ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let why = "packed with bzip2 or zstd: unpack it, or pack it with gzip or xz";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        _ => Box::new(from),
    };
    Ok(Box::new(Bounded { from: unpacked, left: UNPACKED_BYTES_MAX }))
}

struct Bounded<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(wrong("unpacks to more than 16 GiB: no report of one machine")),
        }
        Ok(read)
    }
}

fn wrong(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Whether a file that begins with these bytes is a tar archive (POSIX and GNU).
pub(super) fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// Hands each member to `take`, which may read its bytes.
pub(super) fn members(
    from: &mut dyn Read,
    take: &mut dyn FnMut(&Member, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = [0; BLOCK];
    let (mut long_name, mut long_link) = (None, None);
    for _ in 0..MEMBERS_MAX {
        from.read_exact(&mut block).map_err(cut_off)?;
        if block.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        check(&block)?;
        let bytes = number(&block[124..136]).ok_or_else(|| wrong("a damaged size"))?;
        let kind = match block[156] {
            b'L' => {
                long_name = Some(text(&name_bytes(from, bytes)?));
                continue;
            }
            b'K' => {
                long_link = Some(text(&name_bytes(from, bytes)?));
                continue;
            }
            b'x' => {
                let records = name_bytes(from, bytes)?;
                long_name = pax(&records, "path").or(long_name);
                long_link = pax(&records, "linkpath").or(long_link);
                if pax(&records, "size").is_some() {
                    return Err(wrong("a member of more than 8 GiB: no report of one machine"));
                }
                continue;
            }
            b'0' | 0 => Some(MemberKind::File),
            b'5' => Some(MemberKind::Folder),
            b'2' => {
                let target = long_link.take().unwrap_or_else(|| text(&block[157..257]));
                Some(MemberKind::Link(target))
            }
            _ => None,
        };
        let short = || {
            let (name, prefix) = (text(&block[..100]), text(&block[345..500]));
            match block[257..263] == *b"ustar\0" && !prefix.is_empty() {
                true => format!("{prefix}/{name}"),
                false => name,
            }
        };
        let path = long_name.take().unwrap_or_else(short);
        long_link = None;
        let mut inside = from.take(bytes);
        if let Some(kind) = kind {
            take(&Member { path, kind, bytes }, &mut inside)?;
        }
        let left = inside.limit() + bytes.next_multiple_of(BLOCK as u64) - bytes;
        skip(from, left)?;
    }
    Err(wrong("more than 4 million members: no report of one machine"))
}

fn cut_off(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => wrong("the archive ends in the middle; copy it again"),
        _ => error,
    }
}

fn skip(from: &mut dyn Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut from.take(bytes), &mut io::sink())?;
    if skipped < bytes { Err(cut_off(io::ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
}

/// The data of a member that names the next one.
fn name_bytes(from: &mut dyn Read, bytes: u64) -> io::Result<Vec<u8>> {
    if bytes > NAME_BYTES_MAX {
        return Err(wrong("a name of more than 16 KiB"));
    }
    let mut name = Vec::new();
    from.take(bytes).read_to_end(&mut name)?;
    skip(from, bytes.next_multiple_of(BLOCK as u64) - bytes)?;
    Ok(name)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Octal digits, or after a set bit a binary number (GNU).
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let (head, tail) = field.split_at(field.len() - 8);
        let is_small = head[0] == 0x80 && head[1..].iter().all(|&byte| byte == 0);
        let number = u64::from_be_bytes(tail.try_into().ok()?);
        return (is_small && number <= UNPACKED_BYTES_MAX).then_some(number);
    }
    let digits = text(field);
    match digits.trim() {
        "" => Some(0),
        digits => u64::from_str_radix(digits, 8).ok(),
    }
}

/// The sum of a header's bytes, its own field taken as spaces.
fn check(block: &[u8; BLOCK]) -> io::Result<()> {
    let of_field: u64 = block[148..156].iter().map(|&byte| u64::from(byte)).sum();
    let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
    match number(&block[148..156]) == Some(sum - of_field + 8 * 32) {
        true => Ok(()),
        false => Err(wrong("a damaged archive: the sum of a header is wrong; copy it again")),
    }
}

/// The value of a key of `LENGTH KEY=VALUE\n` records.
fn pax(records: &[u8], key: &str) -> Option<String> {
    let records = String::from_utf8_lossy(records);
    let value = |record: &str| {
        let (_, entry) = record.split_once(' ')?;
        Some(entry.strip_prefix(key)?.strip_prefix('=')?.to_owned())
    };
    records.lines().filter_map(value).next_back()
}
