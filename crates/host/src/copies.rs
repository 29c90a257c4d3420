//! What people have in place of a machine: a folder, a capture, a kernel's configuration.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use crate::capture::form::{CAPTURE_BYTES_MAX, CaptureEntry, CaptureError, CaptureOrigin};
use crate::root::GIVEN;
use crate::{Capture, Root, RootError};

impl Root {
    /// A captured machine: a folder, a file of `rtproof capture`, or the build configuration of its
    /// kernel and nothing else; the path decides by itself.
    ///
    /// # Errors
    /// As [`Root::dir`]; a file that is none of these or is damaged, with the line.
    pub fn open_path(path: impl AsRef<Path>) -> Result<Self, RootError> {
        let path = path.as_ref();
        let open = |source| RootError::Open { path: path.into(), source };
        if fs::metadata(path).map_err(open)?.is_dir() {
            return Self::dir(path);
        }
        let file = crate::door::read(path).map_err(open)?;
        let mut bytes = Vec::new();
        file.take(CAPTURE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(open)?;
        let damaged = |source| RootError::Capture { path: path.into(), source };
        if let Some(config) = build_config(&bytes) {
            let packed = config.map_err(damaged)?;
            return Ok(Self::captured(of_files([("/proc/config.gz", &packed[..])], "config")));
        }
        Ok(Self::captured(Capture::parse(&bytes).map_err(damaged)?))
    }
}

/// A machine of which these files alone are known.
fn of_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>, given: &str) -> Capture {
    let mut capture = Capture { origin: CaptureOrigin::Files, ..Capture::of_files(files) };
    capture.entries.insert(GIVEN.into(), CaptureEntry::Call(given.into()));
    capture
}

// The build configuration of a kernel: `/boot/config-6.1.0-rt`, `.config`, `config.gz`. What is in
// no complete configuration is not set, so a part of one would answer wrongly.

/// Largest one: real ones are below half a megabyte.
const BYTES_MAX: u64 = 8 << 20;

/// Lines at the top that name the kernel.
const HEAD_LINES: usize = 8;

/// The configuration as /proc/config.gz holds it; `None`: it is something else.
fn build_config(bytes: &[u8]) -> Option<Result<Vec<u8>, CaptureError>> {
    let wrong = |line, text: &str| Some(Err(CaptureError { line, text: text.into() }));
    let is_packed = bytes.starts_with(b"\x1f\x8b");
    let mut text = Vec::new();
    if !is_packed {
        text.extend_from_slice(bytes);
    } else if GzDecoder::new(bytes).take(BYTES_MAX).read_to_end(&mut text).is_err() {
        return wrong(1, "gzip that is damaged or was cut off; copy it again");
    }
    let text = std::str::from_utf8(&text).ok()?;
    // A last line without an end may be a part of one.
    let (lines, _) = text.rsplit_once('\n')?;
    let is_option = |line: &str| line.starts_with("CONFIG_") && line.contains('=');
    let is_comment = |line: &str| line.starts_with('#') || line.trim().is_empty();
    if !lines.lines().any(is_option) || !lines.lines().all(|l| is_option(l) || is_comment(l)) {
        return None;
    }
    if !lines.lines().take(HEAD_LINES).any(|line| line.contains("Kernel Configuration")) {
        return wrong(
            1,
            "a part of a kernel configuration (no line \"Kernel Configuration\" at its top): what \
             it leaves out is unknown; give the whole .config that `make olddefconfig` writes",
        );
    }
    // The last menu but for libraries; since 5.2 each menu has an end.
    let has_ends = lines.lines().any(|line| line.starts_with("# end of "));
    let last = if has_ends { "# end of Kernel hacking" } else { "# Kernel hacking" };
    if !text.ends_with('\n') || !lines.lines().any(|line| line.trim_end() == last) {
        let what = "the kernel configuration ends here, without all of its menus: it was cut off; \
                    copy it again";
        return wrong(text.lines().count(), what);
    }
    if is_packed {
        return Some(Ok(bytes.to_vec()));
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).and_then(|()| packed.finish()).ok().map(Ok)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Facts, Root, facts::copied::CopyKind};

    const WHOLE: &str = "#\n# Automatically generated file; DO NOT EDIT.\n\
        # Linux/x86 6.1.0 Kernel Configuration\n#\nCONFIG_CC_VERSION_TEXT=\"gcc 12\"\n\
        CONFIG_PREEMPT_RT=y\nCONFIG_X86_64=y\n# CONFIG_NO_HZ_FULL is not set\n\n#\n# Kernel hacking\n#\n\
        CONFIG_DEBUG_KERNEL=y\n# end of Kernel hacking\n";

    fn gzip(text: &str) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn a_configuration_alone_is_a_machine_of_which_nothing_else_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let old = WHOLE.replace("# end of Kernel hacking\n", "");
        for bytes in [WHOLE.into(), gzip(WHOLE), old.into(), WHOLE.replace('\n', "\r\n").into()] {
            fs::write(&path, &bytes).unwrap();
            let facts = Facts::read(&Root::open_path(&path).unwrap());
            let config = facts.kernel.config.value().unwrap();
            assert_eq!((config.len(), config["PREEMPT_RT"].as_str()), (4, "y"));
            // The head of the file says of which kernel it is, as uname would.
            assert_eq!(facts.kernel.version.value(), Some(&(6, 1)));
            assert_eq!(facts.kernel.arch.value().map(String::as_str), Some("x86_64"));
            assert!(facts.kernel.cmdline.value().is_none());
            assert_eq!(facts.copy.unwrap().kind, CopyKind::Config);
        }
    }

    #[test]
    fn a_part_of_one_is_refused() {
        let packed = gzip(WHOLE);
        let cut = &packed[..packed.len() - 9];
        let (half, _) = WHOLE.split_once("\n\n").unwrap();
        for (bytes, says) in [
            (cut, "cut off"),
            (WHOLE.trim_end().as_bytes(), "cut off"),
            (format!("{half}\n").as_bytes(), "cut off"),
            (&WHOLE.as_bytes()[..WHOLE.len() - 60], "cut off"),
            (b"CONFIG_PREEMPT_RT=y\n", "make olddefconfig"),
        ] {
            let error = build_config(bytes).expect("a configuration").expect_err("a part");
            assert!(error.text.contains(says), "{error:?}");
        }
        for other in ["", "\n", "rtproof capture 1\n", "# a comment\n", "A=1\nCONFIG_B=2\n"] {
            assert!(build_config(other.as_bytes()).is_none(), "{other}");
        }
        assert!(build_config(&gzip("rtproof capture 1\n")).is_none());
    }
}
