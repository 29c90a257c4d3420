//! Swap and transparent huge pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::{Settings, value_of};
use crate::{Reading, Root, knobs::memory as knobs, text::unescape};

/// Memory settings that bring page faults and compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    pub swaps: Reading<Vec<Swap>>,
    /// transparent_hugepage/enabled: always, madvise or never.
    pub thp_enabled: Reading<String>,
    /// transparent_hugepage/defrag.
    pub thp_defrag: Reading<String>,
    /// Memory available without swapping, bytes (MemAvailable).
    pub available_bytes: Reading<u64>,
}

/// One swap area (/proc/swaps).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Swap {
    pub name: String,
    pub size_bytes: u64,
    pub used_bytes: u64,
}

impl Memory {
    /// Reads the memory settings; what was read already is given.
    pub fn read(root: &Root, meminfo: &Reading<String>, settings: &Settings) -> Self {
        Self {
            swaps: root.read_text("/proc/swaps").and_then(swaps),
            thp_enabled: value_of(settings, &knobs::THP),
            thp_defrag: value_of(settings, &knobs::THP_DEFRAG),
            available_bytes: meminfo_bytes(meminfo, "MemAvailable"),
        }
    }
}

/// One line of /proc/meminfo, `NAME: 123 kB`, in bytes.
pub(super) fn meminfo_bytes(meminfo: &Reading<String>, name: &str) -> Reading<u64> {
    meminfo.clone().and_then(|path, text| {
        let line = text
            .lines()
            .find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        match kib.and_then(|kib| kib.checked_mul(1024)) {
            Some(bytes) => Reading::known(path, bytes),
            None => Reading::malformed(path, line.unwrap_or(""), format!("{name}: and kB")),
        }
    })
}

/// Filename, Type, Size, Used, Priority; sizes in KiB (mm/swapfile.c, `swap_show`).
fn swaps(path: String, text: String) -> Reading<Vec<Swap>> {
    let area = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bytes = |word: &str| word.parse::<u64>().ok()?.checked_mul(1024);
        let [name, _kind, size, used, ..] = words[..] else {
            return None;
        };
        Some(Swap { name: unescape(name), size_bytes: bytes(size)?, used_bytes: bytes(used)? })
    };
    let mut lines = text.lines();
    if !lines.next().is_some_and(|header| header.starts_with("Filename")) {
        return Reading::malformed(path, &text, "a header Filename Type Size Used Priority");
    }
    let mut areas = Vec::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        match area(line) {
            Some(swap) => areas.push(swap),
            None => return Reading::malformed(path, line, "Filename Type Size Used Priority"),
        }
    }
    Reading::known(path, areas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn memory(files: &[(&str, &str)]) -> Memory {
        let root = Tree::new(files);
        let root = root.root();
        let settings = crate::facts::settings::read(&root);
        Memory::read(&root, &root.read_text("/proc/meminfo"), &settings)
    }

    const HEADER: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

    #[test]
    fn swap_areas() {
        let text = format!(
            "{HEADER}/dev/dm-1  partition\t8388604\t\t512\t\t-2\n/my\\040swap\\x  file 4 0 -3\n"
        );
        let memory = memory(&[("proc/swaps", &text), ("proc/meminfo", "MemAvailable:    2 kB\n")]);
        let swaps = memory.swaps.value().unwrap();
        assert_eq!(swaps[0].name, "/dev/dm-1");
        assert_eq!((swaps[0].size_bytes, swaps[0].used_bytes), (8_388_604 * 1024, 512 * 1024));
        assert_eq!(swaps[1].name, "/my swap\\x");
        assert_eq!(memory.available_bytes.value(), Some(&2048));
    }

    #[test]
    fn no_swap_is_known_and_no_file_is_absent() {
        assert_eq!(memory(&[("proc/swaps", HEADER)]).swaps.value(), Some(&vec![]));
        let none = memory(&[]);
        assert!(none.swaps.is_absent() && none.available_bytes.is_absent());
        assert!(none.thp_enabled.is_absent() && none.thp_defrag.is_absent());
    }

    #[test]
    fn odd_contents_are_malformed() {
        let cut = format!("{HEADER}/dev/sda2 partition 12\n");
        for text in ["", "none\n", &cut] {
            assert!(memory(&[("proc/swaps", text)]).swaps.why_unknown().is_some(), "{text}");
        }
        let meminfo = [("proc/meminfo", "MemAvailableX: 1 kB\nMemAvailable: x kB\n")];
        assert!(memory(&meminfo).available_bytes.why_unknown().unwrap().contains("x kB"));
    }

    #[test]
    fn transparent_huge_pages() {
        let folder = "sys/kernel/mm/transparent_hugepage";
        let memory = memory(&[
            (&format!("{folder}/enabled"), "always [madvise] never\n"),
            (&format!("{folder}/defrag"), "always defer defer+madvise [madvise] never\n"),
        ]);
        assert_eq!(memory.thp_enabled.value().unwrap(), "madvise");
        assert_eq!(memory.thp_defrag.value().unwrap(), "madvise");
    }
}
