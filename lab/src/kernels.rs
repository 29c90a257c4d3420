//! The table of kernels; their packages are pinned, with digests and fallbacks, in
//! `kernels/pins.txt`.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use rtproof_guest::{Arch, modules::choose};

use crate::cache::Cache;
use crate::fetch::{Fetched, Newest, Package, Suite};
use crate::{deb, fetch, initramfs, modules, pins};

/// Changed when what is made of the packages changes.
const RECIPE: u32 = 4;

/// One kernel of the table.
#[derive(Debug)]
pub struct Kernel {
    /// Name in the lab: `rt-6.1`, `stock-6.1`, `rt-6.1-arm64`.
    pub id: &'static str,
    pub arch: Arch,
    /// Whether it is PREEMPT_RT.
    pub is_rt: bool,
    /// Whether it can mount the shared folder (9p).
    pub has_9p: bool,
    /// What to take when the pins have gone: packages in the order of the pins.
    newest: Newest,
}

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub struct Ready {
    /// ELF vmlinux with a PVH note (x86-64), Image (aarch64) or zImage (armv7).
    pub image: PathBuf,
    /// Uncompressed initramfs with busybox, init and the modules that a guest needs.
    pub initramfs: PathBuf,
    /// `uname -r`.
    pub release: String,
    /// Digest over image and initramfs, for keys of caches.
    pub digest: String,
}

pub const KERNELS: &[Kernel] = &[
    x86("rt-5.10", Suite::Bullseye, RT_5_10),
    x86("stock-5.10", Suite::Bullseye, STOCK_5_10),
    x86("rt-6.1", Suite::Bookworm, RT_6_1),
    x86("stock-6.1", Suite::Bookworm, STOCK_6_1),
    Kernel { has_9p: false, ..x86("cloud-6.1", Suite::Bookworm, CLOUD_6_1) },
    x86("rt-6.12", Suite::BookwormBackports, RT_6_12),
    x86("stock-6.12", Suite::BookwormBackports, STOCK_6_12),
    x86("rt-7.2", Suite::TrixieBackports, RT_7),
    x86("stock-7.2", Suite::TrixieBackports, STOCK_7),
    arm("rt-6.1-arm64", Suite::Bookworm, &["linux-image-6.1.*-rt-arm64-unsigned"]),
    arm("rt-6.12-arm64", Suite::Trixie, &["linux-image-6.12.*-rt-arm64-unsigned"]),
    Kernel {
        arch: Arch::Armv7,
        newest: Newest {
            suite: Suite::Bookworm,
            architecture: "armhf",
            names: &["linux-image-6.1.*-rt-armmp"],
        },
        ..arm("rt-6.1-armhf", Suite::Bookworm, &[])
    },
];

const RT_5_10: &[&str] = &[
    "linux-image-5.10.*-rt-amd64-unsigned",
    "linux-headers-5.10.*-rt-amd64",
    "linux-headers-5.10.*-common-rt",
    "linux-kbuild-5.10",
];
const STOCK_5_10: &[&str] = &[
    "linux-image-5.10.*-amd64-unsigned",
    "linux-headers-5.10.*-amd64",
    "linux-headers-5.10.*-common",
    "linux-kbuild-5.10",
];
const RT_6_1: &[&str] = &[
    "linux-image-6.1.*-rt-amd64-unsigned",
    "linux-headers-6.1.*-rt-amd64",
    "linux-headers-6.1.*-common-rt",
    "linux-kbuild-6.1",
];
const STOCK_6_1: &[&str] = &[
    "linux-image-6.1.*-amd64-unsigned",
    "linux-headers-6.1.*-amd64",
    "linux-headers-6.1.*-common",
    "linux-kbuild-6.1",
];
const CLOUD_6_1: &[&str] = &[
    "linux-image-6.1.*-cloud-amd64-unsigned",
    "linux-headers-6.1.*-cloud-amd64",
    "linux-headers-6.1.*-common",
    "linux-kbuild-6.1",
];
const RT_6_12: &[&str] = &[
    "linux-image-6.12.*-rt-amd64-unsigned",
    "linux-headers-6.12.*-rt-amd64",
    "linux-headers-6.12.*-common-rt",
    "linux-kbuild-6.12.*",
];
const STOCK_6_12: &[&str] = &[
    "linux-image-6.12.*-amd64-unsigned",
    "linux-headers-6.12.*-amd64",
    "linux-headers-6.12.*-common",
    "linux-kbuild-6.12.*",
];
// Backports go on: 7.2 will be followed by 7.3 under the same id.
const RT_7: &[&str] = &[
    "linux-binary-unsigned-7.*-rt-amd64",
    "linux-modules-7.*-rt-amd64",
    "linux-base-7.*-rt-amd64",
    "linux-headers-7.*-rt-amd64",
    "linux-headers-7.*-common",
    "linux-kbuild-7.*",
];
const STOCK_7: &[&str] = &[
    "linux-binary-unsigned-7.*-amd64",
    "linux-modules-7.*-amd64",
    "linux-base-7.*-amd64",
    "linux-headers-7.*-amd64",
    "linux-headers-7.*-common",
    "linux-kbuild-7.*",
];

const fn x86(id: &'static str, suite: Suite, names: &'static [&'static str]) -> Kernel {
    Kernel {
        id,
        arch: Arch::X86_64,
        is_rt: is_rt(id),
        has_9p: true,
        newest: Newest { suite, architecture: "amd64", names },
    }
}

const fn arm(id: &'static str, suite: Suite, names: &'static [&'static str]) -> Kernel {
    Kernel {
        id,
        arch: Arch::Aarch64,
        is_rt: is_rt(id),
        has_9p: true,
        newest: Newest { suite, architecture: "arm64", names },
    }
}

const fn is_rt(id: &str) -> bool {
    let id = id.as_bytes();
    id[0] == b'r' && id[1] == b't'
}

/// The kernel of this name.
///
/// # Errors
/// There is none; the names are listed.
pub fn named(id: &str) -> Result<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.id == id).with_context(|| {
        let names: Vec<_> = KERNELS.iter().map(|kernel| kernel.id).collect();
        format!("no kernel {id:?}; there are: {}", names.join(" "))
    })
}

/// Packages that stay in the cache however long they are not used.
pub fn known_packages() -> HashSet<String> {
    pins::file_names()
}

impl Kernel {
    /// Fetches and unpacks what is missing.
    ///
    /// # Errors
    /// No version of the pinned ones can be had, or an archive is broken.
    pub fn ready(&self, cache: &Cache) -> Result<Ready> {
        let fetched = self.fetched(cache)?;
        let key = format!("{}-{RECIPE}-{}", self.id, &fetched.digest[..16]);
        let kernel = cache.entry("kernels", &key, |place| {
            eprintln!("lab: unpacking kernel {}", self.id);
            self.unpack(&fetched, place).with_context(|| format!("kernel {}", self.id))
        })?;
        let release = kernel.join("release");
        let release = fs::read_to_string(&release)
            .with_context(|| format!("{}: cannot be read", release.display()))?;
        let (initramfs, digest) = initramfs::base(cache, self.arch, &kernel, &key)?;
        Ok(Ready { image: kernel.join("image"), initramfs, release, digest })
    }

    /// The Debian package with its image and modules.
    pub fn package(&self, cache: &Cache) -> Result<PathBuf> {
        let fetched = self.fetched(cache)?;
        let image = fetched.debs.into_iter().find(|deb| is_image(deb));
        image.with_context(|| format!("kernel {}: no package with an image", self.id))
    }

    /// A folder for `make -C DIR M=... modules`: headers, their common part and kbuild, unpacked.
    ///
    /// # Errors
    /// They cannot be had (kernels of ARM have none in the table), or are broken.
    pub fn headers(&self, cache: &Cache) -> Result<PathBuf> {
        ensure!(self.arch == Arch::X86_64, "kernel {}: no headers are pinned for it", self.id);
        let fetched = self.fetched(cache)?;
        let key = format!("{}-{RECIPE}-{}", self.id, &fetched.digest[..16]);
        let done = cache.dir().join("headers").join(&key);
        let folder = cache.entry("headers", &key, |place| {
            make_dir(place)?;
            for package in fetched.debs.iter().filter(|deb| !is_image(deb)) {
                deb::unpack(package, place, &[])?;
            }
            point_at(&done, &headers_folder(place, self.id)?)
        })?;
        headers_folder(&folder, self.id)
    }

    /// Image and headers, which must fit each other.
    fn fetched(&self, cache: &Cache) -> Result<Fetched> {
        let sets = pins::sets(self.id)?;
        let sets: Vec<&[Package]> = sets.iter().map(Vec::as_slice).collect();
        fetch::fetch_set(cache, &sets, Some(&self.newest))
            .with_context(|| format!("kernel {}", self.id))
    }

    /// Makes `image`, `release`, `config` and `modules/` with `order` (to be loaded at boot),
    /// `builtin` and `missing`.
    fn unpack(&self, fetched: &Fetched, place: &Path) -> Result<()> {
        make_dir(place)?;
        let tree = place.join("tree");
        make_dir(&tree)?;
        // Before 7 all is in one package and /boot, since then beside the modules in three.
        let members = [&["*/vmlinuz*", "*/config*"], modules::MEMBERS].concat();
        for package in fetched.debs.iter().filter(|deb| is_image(deb)) {
            deb::unpack(package, &tree, &members)?;
        }
        let library = ["lib/modules", "usr/lib/modules"].map(|dir| tree.join(dir));
        let library = library.iter().find(|dir| dir.is_dir());
        let library = only_child(library.context("the package has no lib/modules")?)?;
        let release = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let one_of = |places: [PathBuf; 2]| {
            let path = places.iter().find(|path| path.exists()).unwrap_or(&places[0]);
            fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))
        };
        let image = rtproof_guest::modules::bootable(&one_of([
            tree.join(format!("boot/vmlinuz-{release}")),
            library.join("vmlinuz.unsigned"),
        ])?)?;
        let vital = if self.has_9p { modules::VITAL } else { &[] };
        let chosen = choose(&library, modules::AT_BOOT, modules::ON_DEMAND, vital)?;

        let write = |name: &str, content: &[u8]| {
            let path = place.join(name);
            fs::write(&path, content).with_context(|| format!("{}: cannot write", path.display()))
        };
        write("image", &image)?;
        write(
            "config",
            &one_of([tree.join(format!("boot/config-{release}")), library.join("config")])?,
        )?;
        write("release", release.as_bytes())?;
        make_dir(&place.join("modules"))?;
        let mut order = String::new();
        for (index, module) in chosen.modules.iter().enumerate() {
            write(&format!("modules/{}.ko", module.name), &module.content)?;
            if index < chosen.at_boot {
                order.push_str(&format!("{}\n", module.name));
            }
        }
        write("modules/modules.dep", chosen.dependencies().as_bytes())?;
        write("modules/modules.alias", chosen.aliases().as_bytes())?;
        write("modules/order", order.as_bytes())?;
        write("modules/builtin", chosen.builtin.join("\n").as_bytes())?;
        write("modules/missing", chosen.missing.join("\n").as_bytes())?;
        fs::remove_dir_all(&tree).with_context(|| format!("{}: cannot remove", tree.display()))
    }
}

fn is_image(deb: &Path) -> bool {
    let name = deb.file_name().unwrap_or_default().to_string_lossy();
    ["linux-image-", "linux-binary-", "linux-modules-", "linux-base-"]
        .iter()
        .any(|kind| name.starts_with(kind))
}

/// `usr/src/linux-headers-RELEASE`: the one that is not common to all flavours.
fn headers_folder(tree: &Path, id: &str) -> Result<PathBuf> {
    let sources = tree.join("usr/src");
    let listed = fs::read_dir(&sources)
        .with_context(|| format!("kernel {id}: {} cannot be listed", sources.display()))?;
    let folder = listed.filter_map(Result::ok).map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("linux-headers-") && !name.contains("-common")
    });
    folder.with_context(|| format!("kernel {id}: {} has no headers", sources.display()))
}

/// Debian's headers name their common part by its installed place.
fn point_at(root: &Path, headers: &Path) -> Result<()> {
    let path = headers.join("Makefile");
    let text =
        fs::read_to_string(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let sources = format!("{}/usr/src/", root.display());
    fs::write(&path, text.replace("/usr/src/", &sources))
        .with_context(|| format!("{}: cannot be written", path.display()))
}

fn only_child(dir: &Path) -> Result<PathBuf> {
    let listed = fs::read_dir(dir).with_context(|| format!("{}: cannot list", dir.display()))?;
    let paths: Vec<_> = listed.filter_map(Result::ok).map(|entry| entry.path()).collect();
    match &paths[..] {
        [path] => Ok(path.clone()),
        _ => bail!("{}: expected one folder, found {}", dir.display(), paths.len()),
    }
}

fn make_dir(dir: &Path) -> Result<()> {
    fs::create_dir(dir).with_context(|| format!("{}: cannot be made", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_pins_agree() {
        for kernel in KERNELS {
            let sets = pins::sets(kernel.id).unwrap();
            assert!(sets.len() >= 2, "{}: no fallback", kernel.id);
            for set in sets {
                assert_eq!(set.len(), kernel.newest.names.len(), "{}", kernel.id);
                for (package, pattern) in set.iter().zip(kernel.newest.names) {
                    let (before, after) = pattern.split_once('*').unwrap_or((pattern, ""));
                    let fits = package.name.starts_with(before) && package.name.ends_with(after);
                    assert!(fits, "{}: {} is not {pattern}", kernel.id, package.name);
                    assert_eq!(
                        package.name.contains("-rt-"),
                        kernel.is_rt && after.contains("-rt-")
                    );
                }
            }
            assert_eq!(named(kernel.id).unwrap().id, kernel.id);
        }
        let error = named("rt-2.6").unwrap_err().to_string();
        assert!(error.contains("rt-6.12-arm64"), "{error}");
    }
}
