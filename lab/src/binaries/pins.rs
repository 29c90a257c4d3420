//! The pinned packages of the cross compilers, all of Debian 12.
//!
//! Renew them with `apt-cache show NAME` on Debian 12. Debian's security team moves rustc-web to a
//! newer version once or twice a year; until the pins follow, the newest is taken.

use crate::fetch::{Archive, Newest, Package, Suite};

/// C compiler, assembler, linker and static C library for aarch64, and what to take when these
/// have gone.
pub(super) const GCC_ARM64: (&[Package], Newest) = (
    &[
        Package {
            name: "gcc-12-aarch64-linux-gnu",
            version: "12.2.0-14cross1",
            path: "pool/main/g/gcc-12-cross/gcc-12-aarch64-linux-gnu_12.2.0-14cross1_amd64.deb",
            sha256: "43747bbcd46a4062e66e855090b8ed9c2e06a93ae5a69fb304beebbc8c36d11f",
            archive: Archive::Debian,
        },
        Package {
            name: "cpp-12-aarch64-linux-gnu",
            version: "12.2.0-14cross1",
            path: "pool/main/g/gcc-12-cross/cpp-12-aarch64-linux-gnu_12.2.0-14cross1_amd64.deb",
            sha256: "5921df4ad56e34e6257a1caf862474845aab6548ba7ae7852e8cdd7cb622394e",
            archive: Archive::Debian,
        },
        Package {
            name: "binutils-aarch64-linux-gnu",
            version: "2.40-2",
            path: "pool/main/b/binutils/binutils-aarch64-linux-gnu_2.40-2_amd64.deb",
            sha256: "3d6f64a7a4ed6d73719f8fa2e85fd896f58ff7f211a6683942ba93de690aaa66",
            archive: Archive::Debian,
        },
        Package {
            name: "libc6-dev-arm64-cross",
            version: "2.36-8cross1",
            path: "pool/main/c/cross-toolchain-base/libc6-dev-arm64-cross_2.36-8cross1_all.deb",
            sha256: "5e4cf6abf0e89e89c4b3006bb8b7dc47aa831df25d94df9134929b8b968cacb4",
            archive: Archive::Debian,
        },
        Package {
            name: "libgcc-12-dev-arm64-cross",
            version: "12.2.0-14cross1",
            path: "pool/main/g/gcc-12-cross/libgcc-12-dev-arm64-cross_12.2.0-14cross1_all.deb",
            sha256: "ff1324e262bae2c3aad685c2ed52bd531ab0a2a337a0fe35c3b720947d55b2ba",
            archive: Archive::Debian,
        },
        Package {
            name: "linux-libc-dev-arm64-cross",
            version: "6.1.4-1cross1",
            path: "pool/main/c/cross-toolchain-base/\
                   linux-libc-dev-arm64-cross_6.1.4-1cross1_all.deb",
            sha256: "66457f015d16b7d372db6591cff38db0da928362ff2ea1fa75491e28f6904d81",
            archive: Archive::Debian,
        },
    ],
    Newest {
        suite: Suite::Bookworm,
        architecture: "amd64",
        names: &[
            "gcc-12-aarch64-linux-gnu",
            "cpp-12-aarch64-linux-gnu",
            "binutils-aarch64-linux-gnu",
            "libc6-dev-arm64-cross",
            "libgcc-12-dev-arm64-cross",
            "linux-libc-dev-arm64-cross",
        ],
    },
);

/// The same for 32-bit ARM.
pub(super) const GCC_ARMHF: (&[Package], Newest) = (
    &[
        Package {
            name: "gcc-12-arm-linux-gnueabihf",
            version: "12.2.0-14cross1",
            path: "pool/main/g/gcc-12-cross/gcc-12-arm-linux-gnueabihf_12.2.0-14cross1_amd64.deb",
            sha256: "5232b72a43b08b67f97c23408240db5836c37d7b0d41767f2194c41bca099c7e",
            archive: Archive::Debian,
        },
        Package {
            name: "cpp-12-arm-linux-gnueabihf",
            version: "12.2.0-14cross1",
            path: "pool/main/g/gcc-12-cross/cpp-12-arm-linux-gnueabihf_12.2.0-14cross1_amd64.deb",
            sha256: "41e6249f08ff9a6e0612c985b8fe5a844242e05f5865219fba83bfc747fbde59",
            archive: Archive::Debian,
        },
        Package {
            name: "binutils-arm-linux-gnueabihf",
            version: "2.40-2",
            path: "pool/main/b/binutils/binutils-arm-linux-gnueabihf_2.40-2_amd64.deb",
            sha256: "7ae66e614dc4ca896523641b66c643a8b157ab5ef7cddc658d5e16e76944643c",
            archive: Archive::Debian,
        },
        Package {
            name: "libc6-dev-armhf-cross",
            version: "2.36-8cross1",
            path: "pool/main/c/cross-toolchain-base/libc6-dev-armhf-cross_2.36-8cross1_all.deb",
            sha256: "e15fbc0c42bc12ef4fc809aac3780cf5fb455c40691a0ad1fbb591d49898d8dc",
            archive: Archive::Debian,
        },
        Package {
            name: "libgcc-12-dev-armhf-cross",
            version: "12.2.0-14cross1",
            path: "pool/main/g/gcc-12-cross/libgcc-12-dev-armhf-cross_12.2.0-14cross1_all.deb",
            sha256: "55d2d48dc29a7a08c8a9287b0b0214db886dda5ae33a88138cfc782612f3b1a1",
            archive: Archive::Debian,
        },
        Package {
            name: "linux-libc-dev-armhf-cross",
            version: "6.1.4-1cross1",
            path: "pool/main/c/cross-toolchain-base/\
                   linux-libc-dev-armhf-cross_6.1.4-1cross1_all.deb",
            sha256: "f3c313d843558fea7e3ebe3768607c14c17d769f8954580a9d829c8de18827a1",
            archive: Archive::Debian,
        },
    ],
    Newest {
        suite: Suite::Bookworm,
        architecture: "amd64",
        names: &[
            "gcc-12-arm-linux-gnueabihf",
            "cpp-12-arm-linux-gnueabihf",
            "binutils-arm-linux-gnueabihf",
            "libc6-dev-armhf-cross",
            "libgcc-12-dev-armhf-cross",
            "linux-libc-dev-armhf-cross",
        ],
    },
);

pub(super) const GCC_LIBRARIES: &[Package] = &[
    Package {
        name: "libbinutils",
        version: "2.40-2",
        path: "pool/main/b/binutils/libbinutils_2.40-2_amd64.deb",
        sha256: "fcf55b99e5f8a78f3c8ce9b6957f1024f394cf20c196b100d308a57e43547710",
        archive: Archive::Debian,
    },
    Package {
        name: "libisl23",
        version: "0.25-1.1",
        path: "pool/main/i/isl/libisl23_0.25-1.1_amd64.deb",
        sha256: "ebff0b2f8b220c74224197523019366e97ee4770d464bebc48e4865114e4da0e",
        archive: Archive::Debian,
    },
    Package {
        name: "libmpc3",
        version: "1.3.1-1",
        path: "pool/main/m/mpclib3/libmpc3_1.3.1-1_amd64.deb",
        sha256: "d7f79544790e44f9b0c8cb9034a18c58d37f8702a15f32539050718679e52f80",
        archive: Archive::Debian,
    },
    Package {
        name: "libmpfr6",
        version: "4.2.0-1",
        path: "pool/main/m/mpfr4/libmpfr6_4.2.0-1_amd64.deb",
        sha256: "37b7a2b4e78890b6a074777f27b96c84f58e81558ba08410c2b6c0ca4a4ad77b",
        archive: Archive::Debian,
    },
    Package {
        name: "libgmp10",
        version: "2:6.2.1+dfsg1-1.1",
        path: "pool/main/g/gmp/libgmp10_6.2.1+dfsg1-1.1_amd64.deb",
        sha256: "187aedef2ed763f425c1e523753b9719677633c7eede660401739e9c893482bd",
        archive: Archive::Debian,
    },
    Package {
        name: "libjansson4",
        version: "2.14-2",
        path: "pool/main/j/jansson/libjansson4_2.14-2_amd64.deb",
        sha256: "3fc9742f9f1a37bcb9931df6074b4d1483419ef832ad5349f47323e75fc27864",
        archive: Archive::Debian,
    },
    Package {
        name: "libzstd1",
        version: "1.5.4+dfsg2-5",
        path: "pool/main/libz/libzstd/libzstd1_1.5.4+dfsg2-5_amd64.deb",
        sha256: "6315b5ac38b724a710fb96bf1042019398cb656718b1522279a5185ed39318fa",
        archive: Archive::Debian,
    },
    Package {
        name: "zlib1g",
        version: "1:1.2.13.dfsg-1",
        path: "pool/main/z/zlib/zlib1g_1.2.13.dfsg-1_amd64.deb",
        sha256: "d7dd1d1411fedf27f5e27650a6eff20ef294077b568f4c8c5e51466dc7c08ce4",
        archive: Archive::Debian,
    },
];

pub(super) const RUSTC_LIBRARIES: &[Package] = &[
    Package {
        name: "libz3-4",
        version: "4.8.12-3.1",
        path: "pool/main/z/z3/libz3-4_4.8.12-3.1_amd64.deb",
        sha256: "6221ca25ad5abcfbe1965801029d85a88b4775320384b4b716de8fab7a4d2f7a",
        archive: Archive::Debian,
    },
    Package {
        name: "libxml2",
        version: "2.9.14+dfsg-1.3~deb12u6",
        path: "pool/main/libx/libxml2/libxml2_2.9.14+dfsg-1.3~deb12u6_amd64.deb",
        sha256: "4460e39dda10a815881374217cde08474747cfa018358cd8612c14b390eff53b",
        archive: Archive::Debian,
    },
    Package {
        name: "libedit2",
        version: "3.1-20221030-2",
        path: "pool/main/libe/libedit/libedit2_3.1-20221030-2_amd64.deb",
        sha256: "1cf14abf2716d3279db12d0657a5737cf70074a1e71d3bdf73206625e3c89ce6",
        archive: Archive::Debian,
    },
    Package {
        name: "libicu72",
        version: "72.1-3+deb12u1",
        path: "pool/main/i/icu/libicu72_72.1-3+deb12u1_amd64.deb",
        sha256: "f7f6f99c6d7b025914df2447fc93e11d22c44c0c8bdd8b6f36691c9e7ddcef88",
        archive: Archive::Debian,
    },
    Package {
        name: "libffi8",
        version: "3.4.4-1",
        path: "pool/main/libf/libffi/libffi8_3.4.4-1_amd64.deb",
        sha256: "6d9f6c25c30efccce6d4bceaa48ea86c329a3432abb360a141f76ac223a4c34a",
        archive: Archive::Debian,
    },
    Package {
        name: "libtinfo6",
        version: "6.4-4",
        path: "pool/main/n/ncurses/libtinfo6_6.4-4_amd64.deb",
        sha256: "072d908f38f51090ca28ca5afa3b46b2957dc61fe35094c0b851426859a49a51",
        archive: Archive::Debian,
    },
    Package {
        name: "libbsd0",
        version: "0.11.7-2",
        path: "pool/main/libb/libbsd/libbsd0_0.11.7-2_amd64.deb",
        sha256: "bb31cc8b40f962a85b2cec970f7f79cc704a1ae4bad24257a822055404b2c60b",
        archive: Archive::Debian,
    },
    Package {
        name: "libmd0",
        version: "1.0.4-2",
        path: "pool/main/libm/libmd/libmd0_1.0.4-2_amd64.deb",
        sha256: "03539fd30c509e27101d13a56e52eda9062bdf1aefe337c07ab56def25a13eab",
        archive: Archive::Debian,
    },
    Package {
        name: "liblzma5",
        version: "5.4.1-1+deb12u1",
        path: "pool/main/x/xz-utils/liblzma5_5.4.1-1+deb12u1_amd64.deb",
        sha256: "f96d8876b53ec89d76a992bc199679b818cf518225a768954d9451fb556a4eb7",
        archive: Archive::Debian,
    },
];

/// Compiler and standard library for this machine: build scripts and procedural macros need it.
pub(super) const RUSTC: &[Package] = &[
    Package {
        name: "libstd-rust-web-1.96",
        version: "1.96.0+dfsg1-1~deb12u2",
        path: "pool/updates/main/r/rustc-web/libstd-rust-web-1.96_1.96.0+dfsg1-1~deb12u2_amd64.deb",
        sha256: "3755f30434ae29574c91b0beb86632bee401607b0ac35c3e52810f9a53fae0d1",
        archive: Archive::Security,
    },
    Package {
        name: "rustc-web",
        version: "1.96.0+dfsg1-1~deb12u2",
        path: "pool/updates/main/r/rustc-web/rustc-web_1.96.0+dfsg1-1~deb12u2_amd64.deb",
        sha256: "8fefe1d6377fe4082f5a9d2a47e095e2d20319eaab9754bd2f0275155c9adf90",
        archive: Archive::Security,
    },
    Package {
        name: "libstd-rust-web-dev",
        version: "1.96.0+dfsg1-1~deb12u2",
        path: "pool/updates/main/r/rustc-web/libstd-rust-web-dev_1.96.0+dfsg1-1~deb12u2_amd64.deb",
        sha256: "e38dbeaaad673fc63fb47c5140cf34da271ac71c3ecafc828b762c2fb01fe77a",
        archive: Archive::Security,
    },
];

/// Code generator of the compiler.
pub(super) const LLVM: &[Package] = &[Package {
    name: "libllvm22",
    version: "1:22.1.8-1~deb12u1",
    path: "pool/updates/main/l/llvm-toolchain-22/libllvm22_22.1.8-1~deb12u1_amd64.deb",
    sha256: "729ec3e943d320515c2bbdc96acfffd7ce34861e62bd5c42726bf586d644dfe2",
    archive: Archive::Security,
}];

/// A linker that loads the same library, of the same version.
pub(super) const LLD: (&[Package], Newest) = (
    &[Package {
        name: "lld-22",
        version: "1:22.1.8-1~deb12u1",
        path: "pool/updates/main/l/llvm-toolchain-22/lld-22_22.1.8-1~deb12u1_amd64.deb",
        sha256: "13103b3fb3195bfeade9835d3906a4cc91002010f9013d98aa1fc55b841d07b4",
        archive: Archive::Security,
    }],
    Newest { suite: Suite::BookwormSecurity, architecture: "amd64", names: &["lld-*"] },
);

/// Standard library for aarch64, of the same version as the compiler.
pub(super) const STD_ARM64: (&[Package], Newest) = (
    &[Package {
        name: "libstd-rust-web-dev",
        version: "1.96.0+dfsg1-1~deb12u2",
        path: "pool/updates/main/r/rustc-web/libstd-rust-web-dev_1.96.0+dfsg1-1~deb12u2_arm64.deb",
        sha256: "02419380801b9f61391294823659b17b90f7a863ca3bbccb9140d2f0f8a2c910",
        archive: Archive::Security,
    }],
    Newest {
        suite: Suite::BookwormSecurity,
        architecture: "arm64",
        names: &["libstd-rust-web-dev"],
    },
);

/// The same for 32-bit ARM.
pub(super) const STD_ARMHF: (&[Package], Newest) = (
    &[Package {
        name: "libstd-rust-web-dev",
        version: "1.96.0+dfsg1-1~deb12u2",
        path: "pool/updates/main/r/rustc-web/libstd-rust-web-dev_1.96.0+dfsg1-1~deb12u2_armhf.deb",
        sha256: "b9f9dd1d03a903680f918cb2bba00a2a3d76558545d5e6a8061072ab461bb989",
        archive: Archive::Security,
    }],
    Newest {
        suite: Suite::BookwormSecurity,
        architecture: "armhf",
        names: &["libstd-rust-web-dev"],
    },
);

/// Instead of [`GCC_LIBRARIES`] when that has gone.
pub(super) const GCC_LIBRARIES_NEWEST: Newest = Newest {
    suite: Suite::Bookworm,
    architecture: "amd64",
    names: &[
        "libbinutils",
        "libisl23",
        "libmpc3",
        "libmpfr6",
        "libgmp10",
        "libjansson4",
        "libzstd1",
        "zlib1g",
    ],
};

/// Instead of [`RUSTC_LIBRARIES`] when that has gone.
pub(super) const RUSTC_LIBRARIES_NEWEST: Newest = Newest {
    suite: Suite::Bookworm,
    architecture: "amd64",
    names: &[
        "libz3-4",
        "libxml2",
        "libedit2",
        "libicu72",
        "libffi8",
        "libtinfo6",
        "libbsd0",
        "libmd0",
        "liblzma5",
    ],
};

/// Instead of [`RUSTC`] when that has gone.
pub(super) const RUSTC_NEWEST: Newest = Newest {
    suite: Suite::BookwormSecurity,
    architecture: "amd64",
    names: &["libstd-rust-web-*", "rustc-web", "libstd-rust-web-dev"],
};

/// Instead of [`LLVM`] when that has gone.
pub(super) const LLVM_NEWEST: Newest =
    Newest { suite: Suite::BookwormSecurity, architecture: "amd64", names: &["libllvm*"] };
