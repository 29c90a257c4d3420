//! What the firmware keeps: variables of UEFI, as efivarfs shows them.

use crate::Root;

/// Where efivarfs is mounted.
const FOLDER: &str = "/sys/firmware/efi/efivars";
/// Vendor of the variables between a boot loader and the system (systemd's boot loader interface).
const LOADER: &str = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
/// Vendor of the firmware's own variables (UEFI specification, 3.3).
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// Bytes of attributes before the value.
const ATTRIBUTES: usize = 4;

/// UEFI, if there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Firmware {
    /// Whether the machine was booted by UEFI.
    pub is_uefi: bool,
    /// Whether it checks signatures.
    pub secure_boot: Option<bool>,
    /// Who says that it started us: `systemd-boot 257`, `GRUB 2.12`.
    pub loader: Option<String>,
    /// Who says that it is the kernel's image: `systemd-stub 257`.
    pub stub: Option<String>,
    /// What that boot loader can do, as bits.
    pub features: Option<u64>,
    /// Default entry that was chosen in the firmware's memory.
    pub entry_default: Option<String>,
    /// Entry for the next boot alone.
    pub entry_one_shot: Option<String>,
}

/// Name of a variable of the boot loader as efivarfs has it.
pub(super) fn name(variable: &str) -> String {
    format!("{variable}-{LOADER}")
}

impl Firmware {
    pub(super) fn read(root: &Root) -> Self {
        let text = |variable: &str| utf16(&value(root, &name(variable))?);
        Self {
            is_uefi: root.exists("/sys/firmware/efi"),
            secure_boot: value(root, &format!("SecureBoot-{GLOBAL}"))
                .and_then(|bytes| bytes.first().map(|&byte| byte == 1)),
            loader: text("LoaderInfo"),
            stub: text("StubInfo"),
            features: value(root, &name("LoaderFeatures"))
                .and_then(|bytes| Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))),
            entry_default: text("LoaderEntryDefault").filter(|id| !id.is_empty()),
            entry_one_shot: text("LoaderEntryOneShot").filter(|id| !id.is_empty()),
        }
    }
}

/// The value of a variable without its attributes.
fn value(root: &Root, name: &str) -> Option<Vec<u8>> {
    let bytes = root.read_bytes(&format!("{FOLDER}/{name}"));
    bytes.value()?.get(ATTRIBUTES..).map(<[u8]>::to_vec)
}

/// Text of UTF-16 up to its NUL.
fn utf16(bytes: &[u8]) -> Option<String> {
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let units: Vec<u16> = units.take_while(|&unit| unit != 0).collect();
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn variables_of_a_machine() {
        let text: String =
            "\u{6}\0\0\0".chars().chain("GRUB".chars().flat_map(|c| [c, '\0'])).collect();
        let tree = Tree::new(&[
            (&format!("{FOLDER}/SecureBoot-{GLOBAL}")[1..], "\u{6}\0\0\0\u{1}"),
            (&format!("{FOLDER}/{}", name("LoaderInfo"))[1..], &format!("{text}\0\0")),
            (&format!("{FOLDER}/{}", name("LoaderFeatures"))[1..], "\0\0\0\0\u{8}\0\0\0\0\0\0\0"),
            (&format!("{FOLDER}/{}", name("LoaderEntryDefault"))[1..], "\0\0\0\0\0\0"),
        ]);
        let firmware = Firmware::read(&tree.root());
        assert!(firmware.is_uefi && firmware.secure_boot == Some(true));
        assert_eq!(firmware.loader.as_deref(), Some("GRUB"));
        assert_eq!(firmware.features, Some(8));
        assert_eq!(firmware.entry_default, None);
        let none = Firmware::read(&Tree::new(&[]).root());
        assert!(!none.is_uefi && none.secure_boot.is_none());
    }
}
