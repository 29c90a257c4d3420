//! Names of kernel addresses, from /proc/kallsyms: what a stack, a timer or a sender of an
//! interrupt was.
//!
//! The file has some five megabytes on a distribution's kernel and takes a tenth of a second of a
//! CPU to be written by the kernel: it is read once, beside a measurement, and kept as one text
//! and a sorted index. System.map is no substitute: Debian ships an empty one, and the kernel is
//! moved about at each boot.

use crate::{Reading, Root};

const PATH: &str = "/proc/kallsyms";

/// Code that lies farther from its symbol than this belongs to something without a name.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;

/// Functions of the kernel and its modules, by address.
#[derive(Debug)]
pub struct KernelSymbols {
    /// Names, each ended by a newline: `name` or `name\t[module]`.
    names: Vec<u8>,
    /// Ascending; parallel to the names and offsets.
    addresses: Vec<u64>,
    /// Offset in `names` of each.
    offsets: Vec<u32>,
}

impl KernelSymbols {
    /// Reads the live machine's symbols. Denied where the kernel hides addresses.
    pub fn read(root: &Root) -> Reading<Self> {
        let hidden = || {
            let path = "/proc/sys/kernel/kptr_restrict";
            let level = root.trimmed(path);
            let level = level.value().map_or("unknown", String::as_str);
            format!(
                "the kernel hides its addresses from this user (kernel.kptr_restrict = {level})"
            )
        };
        root.read_bytes(PATH).and_then(|path, text| match Self::parse(&text) {
            Some(symbols) => Reading::known(path, symbols),
            None => Reading::denied(path, hidden()),
        })
    }

    /// Lines `ADDRESS TYPE NAME[\t[MODULE]]`; only code is kept. `None` where no line has an
    /// address: all are zero for readers that the kernel does not trust.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut names = Vec::with_capacity(text.len() / 2);
        // Address, whether it is a local name, offset: the global name of an address first.
        let mut found: Vec<(u64, bool, u32)> = Vec::with_capacity(text.len() / 64);
        for line in text.split(|&byte| byte == b'\n') {
            let Some((address, kind, name)) = parts(line) else { continue };
            let Ok(at) = u32::try_from(names.len()) else { break };
            found.push((address, kind.is_ascii_lowercase(), at));
            names.extend_from_slice(name);
            names.push(b'\n');
        }
        found.sort_unstable();
        found.dedup_by_key(|symbol| symbol.0);
        names.shrink_to_fit();
        let addresses: Vec<u64> = found.iter().map(|symbol| symbol.0).collect();
        let offsets = found.iter().map(|symbol| symbol.2).collect();
        (!addresses.is_empty()).then_some(Self { names, addresses, offsets })
    }

    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there are none; never true of what was read.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Memory that the table takes, bytes.
    pub fn bytes(&self) -> usize {
        self.names.capacity() + self.len() * (size_of::<u64>() + size_of::<u32>())
    }

    /// Where functions of these names begin, in no order; a name may be that of several.
    pub fn addresses_of(&self, names: &[&str]) -> Vec<u64> {
        let of = |at: usize| self.names.get(at..)?.split(|&byte| byte == b'\n').next();
        let is_wanted = |at: u32| {
            of(at as usize).is_some_and(|name| names.iter().any(|n| n.as_bytes() == name))
        };
        let both = self.addresses.iter().zip(&self.offsets);
        both.filter(|(_, at)| is_wanted(**at)).map(|(address, _)| *address).collect()
    }

    /// The function of an address: `name+0x1f/0x80` or `name+0x1f/0x80 [module]`, offset and size
    /// in bytes as the kernel writes them. `None` for what is no code of the kernel.
    pub fn lookup(&self, address: u64) -> Option<String> {
        let after = self.addresses.partition_point(|start| *start <= address);
        let found = after.checked_sub(1)?;
        let (start, at) = (*self.addresses.get(found)?, *self.offsets.get(found)?);
        let offset = address - start;
        let end = self.addresses.get(after);
        let size = end.map_or(FUNCTION_BYTES_MAX, |end| end - start);
        if offset >= FUNCTION_BYTES_MAX {
            return None;
        }
        let rest = self.names.get(at as usize..)?;
        let name = rest.split(|&byte| byte == b'\n').next()?;
        let name = String::from_utf8_lossy(name);
        let (name, module) = name.split_once('\t').unwrap_or((&name, ""));
        let space = if module.is_empty() { "" } else { " " };
        let size = if end.is_some() { format!("/{size:#x}") } else { String::new() };
        Some(format!("{name}+{offset:#x}{size}{space}{module}"))
    }
}

/// Address other than zero, kind, name with its module; `None` for data and for no symbol.
fn parts(line: &[u8]) -> Option<(u64, u8, &[u8])> {
    let (digits, rest) = line.split_at_checked(line.iter().position(|&byte| byte == b' ')?)?;
    let [b' ', kind, b' ', name @ ..] = rest else { return None };
    if !matches!(kind, b't' | b'T' | b'w' | b'W') || name.is_empty() {
        return None;
    }
    let address = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (address != 0).then_some((address, *kind, name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::Tree;

    const TEXT: &str = "ffff1000 T _stext\nffff1000 t local_alias\nffff1080 t do_it.isra.0\n\
        ffff1090 D some_data\nffff2000 T last_of_kernel\nffff9000 t nvme_irq\t[nvme]\n\
        ffffa000 t __pfx_x\t[nvme]\n";

    #[test]
    fn addresses_have_the_name_of_their_function() {
        let symbols = KernelSymbols::parse(TEXT.as_bytes()).unwrap();
        assert_eq!(symbols.len(), 5);
        let of = |address| symbols.lookup(address);
        assert_eq!(of(0xffff_1000).as_deref(), Some("_stext+0x0/0x80"), "the global name");
        assert_eq!(of(0xffff_1093).as_deref(), Some("do_it.isra.0+0x13/0xf80"), "data is no end");
        assert_eq!(of(0xffff_9001).as_deref(), Some("nvme_irq+0x1/0x1000 [nvme]"));
        assert_eq!(of(0xffff_a004).as_deref(), Some("__pfx_x+0x4 [nvme]"), "its size is unknown");
        assert_eq!((of(0xffff_0fff), of(0), of(u64::MAX)), (None, None, None));
        assert_eq!(symbols.addresses_of(&["_stext", "last_of", "x"]), [0xffff_1000]);
    }

    #[test]
    fn hidden_addresses_are_unknown_with_a_reason() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 t x\n";
        let tree =
            Tree::new(&[("proc/kallsyms", hidden), ("proc/sys/kernel/kptr_restrict", "2\n")]);
        let read = KernelSymbols::read(&tree.root());
        assert!(read.why_unknown().unwrap().contains("kptr_restrict = 2"), "{read:?}");
        assert!(KernelSymbols::read(&Tree::new(&[]).root()).is_absent());
    }

    #[test]
    fn the_live_kernel_has_a_scheduler() {
        let read = KernelSymbols::read(&Root::live());
        let Some(symbols) = read.value() else {
            assert!(read.why_unknown().is_some_and(|why| !why.is_empty()));
            return;
        };
        let address = symbols.addresses[symbols.len() / 2];
        let name = symbols.lookup(address).unwrap();
        assert!(name.contains("+0x0/0x"), "{name}");
        let text = String::from_utf8_lossy(&symbols.names);
        assert!(text.lines().any(|line| line == "schedule"));
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "[0-9a-fTtD \\t\\n\\[\\]x]{0,200}", address: u64) {
            if let Some(symbols) = KernelSymbols::parse(text.as_bytes()) {
                let _ = symbols.lookup(address);
            }
        }
    }
}
