//! Names of kernel addresses: the list of a trace, read once and kept small.

use std::io::{BufRead, BufReader, Read};

use super::error::DatError;

/// All names in all; a present kernel with modules has 5 MB of functions.
const NAMES_MAX: usize = 24 << 20;
/// The longest line of /proc/kallsyms: a name of 511 bytes (`KSYM_NAME_LEN`) and what is round it.
const LINE_MAX: u64 = 1024;

/// Functions by address. An address is written as the kernel does, `function+0x1f/0x80`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Sorted; with where each name begins in `names`.
    addresses: Vec<u64>,
    begins: Vec<u32>,
    /// One after the other, each with a NUL behind it.
    names: Vec<u8>,
    text_start: Option<u64>,
}

impl Symbols {
    /// Reads a text in the form of /proc/kallsyms, line by line. Only functions are kept: the
    /// addresses of events lie in code.
    ///
    /// # Errors
    /// As the text, or when it has more names than any kernel.
    pub fn read(text: impl Read, at: u64) -> Result<Self, DatError> {
        let mut text = BufReader::with_capacity(1 << 14, text);
        let mut found: Vec<(u64, u32)> = Vec::new();
        let mut names = Vec::new();
        let mut line = Vec::new();
        let mut text_start = None;
        loop {
            line.clear();
            let count = (&mut text).take(LINE_MAX).read_until(b'\n', &mut line);
            if count.map_err(|error| DatError::reading(at, error))? == 0 {
                break;
            }
            let Some((address, name)) = function(&line) else { continue };
            if name == b"_stext" {
                text_start = Some(address);
            }
            let begin = u32::try_from(names.len()).unwrap_or(u32::MAX);
            names.extend_from_slice(name);
            names.push(0);
            found.push((address, begin));
            if names.len() + 16 * found.len() > NAMES_MAX {
                let found = format!("more than {} bytes of names", names.len());
                return Err(DatError::damaged(at, found, "the functions of one kernel"));
            }
        }
        found.sort_by_key(|&(address, _)| address);
        // Aliases: the first name of an address is the one that the kernel prints.
        found.dedup_by_key(|&mut (address, _)| address);
        let (addresses, begins) = found.into_iter().unzip();
        names.shrink_to_fit();
        Ok(Self { addresses, begins, names, text_start })
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there is none: `kptr_restrict` hides them all.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The name of an address: `function+0x1f/0x80`.
    pub fn name(&self, address: u64) -> Option<String> {
        let place = self.addresses.partition_point(|&start| start <= address).checked_sub(1)?;
        let (start, name) = (self.addresses[place], self.name_at(place));
        // The last function has no end; nothing lies far behind it.
        let size = self.addresses.get(place + 1).map_or(0x1_0000, |next| next - start);
        let offset = address - start;
        if offset >= size.max(1) || offset > 0x0100_0000 {
            return None;
        }
        let (function, module) = name.split_once('\t').map_or((name.as_ref(), ""), |both| both);
        let module = if module.is_empty() { String::new() } else { format!(" {module}") };
        Some(format!("{function}+{offset:#x}/{size:#x}{module}"))
    }

    /// The address of a function, the first of that name.
    pub fn address(&self, function: &str) -> Option<u64> {
        let place = (0..self.len())
            .find(|&place| self.name_at(place).split('\t').next() == Some(function))?;
        self.addresses.get(place).copied()
    }

    fn name_at(&self, place: usize) -> std::borrow::Cow<'_, str> {
        let rest = &self.names[self.begins[place] as usize..];
        let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end])
    }

    /// Where the kernel's code begins (`_stext`): what the decoder takes as its start of text.
    pub const fn text_start(&self) -> Option<u64> {
        self.text_start
    }
}

/// Address and name (with its module behind a tab) of a line that is a function.
fn function(line: &[u8]) -> Option<(u64, &[u8])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let address = u64::from_str_radix(std::str::from_utf8(parts.next()?).ok()?, 16).ok()?;
    let kind = parts.next()?;
    let name = parts.next()?;
    let is_function = matches!(kind, b"t" | b"T" | b"w" | b"W");
    // The linker's marks share an address with a function, and are not one.
    let is_mark = name.first() == Some(&b'$') || name.contains(&0);
    (is_function && !is_mark && address != 0 && !name.is_empty()).then_some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "0000000000000000 A fixed_percpu_data\n\
        ffffffff81000040 T second\nffffffff81000000 T first\nffffffff81000000 T _stext\n\
        ffffffff81000050 d data\nffffffffc0000000 t igb_poll\t[igb]\n";

    #[test]
    fn an_address_lies_in_the_function_before_it() {
        let symbols = Symbols::read(LIST.as_bytes(), 0).expect("a list");
        assert_eq!(symbols.len(), 3);
        assert_eq!(symbols.name(0xffff_ffff_8100_001f).as_deref(), Some("first+0x1f/0x40"));
        assert_eq!(
            symbols.name(0xffff_ffff_c000_0004).as_deref(),
            Some("igb_poll+0x4/0x10000 [igb]")
        );
        assert_eq!(symbols.name(0xffff_ffff_80ff_ffff), None);
        assert_eq!(symbols.name(0xffff_ffff_c001_0000), None, "behind the last");
        assert_eq!(symbols.name(0xffff_ffff_b000_0000), None, "far from any");
        assert_eq!(symbols.text_start(), Some(0xffff_ffff_8100_0000));
    }

    #[test]
    fn a_list_of_zeros_has_no_names() {
        let hidden = "0000000000000000 T first\n0000000000000000 T second\n";
        assert!(Symbols::read(hidden.as_bytes(), 0).expect("a list").is_empty());
        let endless = vec![b'f'; 1 << 20];
        assert!(Symbols::read(endless.as_slice(), 0).expect("no lines").is_empty());
    }
}
