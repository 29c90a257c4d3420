//! The build configuration, from the first place that has it.

use std::{collections::BTreeMap, io::Read};

use crate::{Reading, Root};

/// Largest configuration taken out of /proc/config.gz: real ones are below half a megabyte.
const CONFIG_BYTES_MAX: u64 = 8 << 20;

/// Options without `CONFIG_`; the path is the file read, or all that were tried.
pub(super) fn read(root: &Root, release: &Reading<String>) -> Reading<BTreeMap<String, String>> {
    let mut config = root.read_bytes("/proc/config.gz").and_then(unpack);
    let Some(release) = release.value() else {
        return config.and_then(parse);
    };
    // Distributions differ: Debian and Fedora, Fedora since 2021, the same merged, OSTree,
    // openSUSE.
    for place in [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
        format!("/usr/lib/modules/{release}/config"),
        format!("/usr/lib/ostree-boot/config-{release}"),
        format!("/lib/kernel/config-{release}"),
    ] {
        config = config.or_else(|| root.read_text(&place));
    }
    config.and_then(parse)
}

fn unpack(path: String, bytes: Vec<u8>) -> Reading<String> {
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(&bytes[..]).take(CONFIG_BYTES_MAX);
    match unpacked.read_to_string(&mut text) {
        Ok(_) => Reading::known(path, text),
        Err(error) => Reading::malformed(path, &error.to_string(), "gzip with text inside"),
    }
}

fn parse(path: String, text: String) -> Reading<BTreeMap<String, String>> {
    let option = |line: &str| {
        let (name, value) = line.trim().strip_prefix("CONFIG_")?.split_once('=')?;
        let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        Some((name.to_owned(), inner.unwrap_or(value).to_owned()))
    };
    let options: BTreeMap<_, _> = text.lines().filter_map(option).collect();
    if options.is_empty() {
        return Reading::malformed(path, &text, "lines CONFIG_NAME=value");
    }
    Reading::known(path, options)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::testing::Tree;

    const TEXT: &str = "#\n# Linux\n#\nCONFIG_HZ=250\n# CONFIG_KASAN is not set\nCONFIG_LOCALVERSION=\"-rt\"\nCONFIG_EMPTY=\"\"\n";

    #[test]
    fn reads_text_and_gzip_and_names_the_file() {
        let tree = Tree::new(&[("usr/lib/modules/6.1/config", TEXT)]);
        let release = Reading::known("r", "6.1".to_owned());
        let config = read(&tree.root(), &release);
        assert_eq!(config.path, "/usr/lib/modules/6.1/config");
        let options = config.value().unwrap();
        assert_eq!(options["HZ"], "250");
        assert_eq!(options["LOCALVERSION"], "-rt");
        assert_eq!(options["EMPTY"], "");
        assert!(!options.contains_key("KASAN"));

        std::fs::create_dir_all(tree.path().join("proc")).unwrap();
        let file = std::fs::File::create(tree.path().join("proc/config.gz")).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        gzip.write_all(TEXT.as_bytes()).unwrap();
        gzip.finish().unwrap();
        let packed = read(&tree.root(), &Reading::absent("r"));
        assert_eq!(packed.path, "/proc/config.gz");
        assert_eq!(packed.value(), config.value());
    }

    #[test]
    fn tells_all_that_was_asked() {
        let release = Reading::known("r", "6.1".to_owned());
        let none = read(&Tree::new(&[]).root(), &release);
        assert!(none.is_absent());
        assert_eq!(none.path.split(", ").count(), 6);
        let other = Tree::new(&[("boot/config-6.1", "<html>"), ("proc/config.gz", "no gzip")]);
        assert!(read(&other.root(), &release).why_unknown().unwrap().contains("<html>"));
        let broken = read(&other.root(), &Reading::absent("r"));
        assert!(broken.why_unknown().unwrap().contains("gzip"));
    }
}
