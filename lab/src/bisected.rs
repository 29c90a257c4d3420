//! What runs outside of the lab's guests: `rtproof kernel bisect` over Debian's Linux source, with
//! a planted commit or a planted option. It builds kernels, so CI leaves it out and `make lab-all`
//! runs it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use rtproof_guest::Arch;
use serde_json::Value;

use crate::binaries::Binaries;
use crate::cache::Cache;

/// Of Debian's package linux-source-6.12.
const SOURCE: &str = "/usr/src/linux-source-6.12.tar.xz";
/// Time for everything: on two free cores it takes about ten minutes.
const LIMIT: Duration = Duration::from_secs(5400);

/// What a guest of rtproof needs beside tinyconfig.
const CONFIG: &str = "64BIT PRINTK TTY SERIAL_8250 SERIAL_8250_CONSOLE BLK_DEV_INITRD PROC_FS \
    SYSFS SHMEM TMPFS DEVTMPFS BINFMT_ELF BINFMT_SCRIPT MULTIUSER FUTEX EPOLL SIGNALFD TIMERFD \
    EVENTFD POSIX_TIMERS ADVISE_SYSCALLS MEMBARRIER NET UNIX SYSCTL PROC_SYSCTL HIGH_RES_TIMERS \
    IKCONFIG EXPERT FILE_LOCKING AIO BUG";

/// Makes `linux` and `config`. Drivers that no guest has are left out, and so are other
/// architectures.
const UNPACK: &str = r#"
mkdir linux
tar xf "$SOURCE" --strip-components=1 -C linux --exclude='*/Documentation/[!K]*'
cd linux
bare() { find "$@" -type f ! -name 'Kconfig*' ! -name 'Makefile*' ! -name Kbuild -delete; }
for a in arch/*; do [ $a = arch/x86 ] || [ $a = arch/Kconfig ] || bare $a; done
for d in gpu net/ethernet net/wireless media staging infiniband scsi iio mtd; do
    bare drivers/$d
done
bare sound tools/testing tools/perf fs/xfs fs/btrfs fs/ext4
make -s O="$PWD/../config.d" tinyconfig
for o in $CONFIG; do echo CONFIG_$o=y; done >> ../config.d/.config
make -s O="$PWD/../config.d" olddefconfig
mv ../config.d/.config ../config
rm -rf ../config.d
"#;

/// Makes `linux` a repository of 37 commits. Four of them do not build. The 22nd plants a loop of
/// 20,000 rounds in the timer interrupt, with interrupts off.
const HISTORY: &str = r#"
git init -q -b main .
git config user.name Ann
git config user.email ann@example.org
git add -A -f .
git commit -qm "Linux of Debian"
git tag c0
i=1
while [ $i -le 36 ]; do
    set -- sys fork exit signal softirq cpu panic resource time/timer time/time sysctl cred
    shift $(((i - 1) % 12))
    f=kernel/$1.c
    printf '\nstatic int __maybe_unused edit_%d(int x)\n{\n\treturn x + %d;\n}\n' $i $i >> $f
    sed -i '/^int broken($/d' kernel/notifier.c
    case $i in 9|17|18|27) printf 'int broken(\n' >> kernel/notifier.c;; esac
    [ $i != 22 ] || perl -0pi -e "$PLANT" kernel/time/hrtimer.c
    git commit -qam "edit $i of $f"
    git tag c$i
    i=$((i + 1))
done
"#;

/// Of each 128 timer interrupts one runs long.
const PLANT: &str = r"s/(void hrtimer_interrupt\(.*\)\n\{\n)/static unsigned int planted_calls;

$1	if (!(++planted_calls & 127)) {
		volatile unsigned int at;

		for (at = 0; at < 20000; at++)
			;
	}
/";

/// Gives the source an option that plants the same loop, and `bad` with it and 24 others.
const OPTIONS: &str = r#"
perl -0pi -e "$PLANT" kernel/time/hrtimer.c
sed -i 's/if (!(++planted_calls/if (IS_ENABLED(CONFIG_PLANTED_LOOP) \&\& !(++planted_calls/' kernel/time/hrtimer.c
grep -q PLANTED_LOOP kernel/time/hrtimer.c
printf '\nconfig PLANTED_LOOP\n\tbool "A loop in the timer interrupt"\n' >> kernel/time/Kconfig
cp ../config ../bad
for o in PLANTED_LOOP $OTHERS; do echo CONFIG_$o=y >> ../bad; done
"#;

/// Options without a latency of their own, each of few objects.
const OTHERS: &str = "CORDIC CRC_CCITT CRC16 CRC_ITU_T CRC4 CRC7 CRC8 XZ_DEC SGETMASK_SYSCALL \
    SYSFS_SYSCALL FHANDLE USELIB KCMP CROSS_MEMORY_ATTACH BSD_PROCESS_ACCT PROC_PAGE_MONITOR \
    CACHESTAT_SYSCALL NULL_TTY PROC_CHILDREN X86_MSR X86_CPUID DEVMEM NVRAM HANGCHECK_TIMER";

/// A folder with what a script makes of the source, and a lasting place for it: ccache knows the
/// objects of the last run.
fn made(name: &str, script: &str) -> (PathBuf, PathBuf) {
    assert!(Path::new(SOURCE).exists(), "{SOURCE}: apt-get install linux-source-6.12");
    let cache = Cache::open().unwrap();
    let rtproof = Binaries::build(Arch::X86_64, &cache).unwrap().rtproof;
    let at = cache.dir().join(name);
    let _ = fs::remove_dir_all(&at);
    fs::create_dir_all(&at).unwrap();
    let made = Command::new("sh")
        .args(["-ec", &format!("{UNPACK}{script}")])
        .env("SOURCE", SOURCE)
        .env("CONFIG", CONFIG)
        .env("OTHERS", OTHERS)
        .env("PLANT", PLANT)
        .current_dir(&at)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (rtproof, at)
}

/// Bisects, killed in the first build and in a later step; the answer.
fn bisected(rtproof: &Path, at: &Path, words: &[&str]) -> Value {
    let began = Instant::now();
    let bisect = || {
        let mut command = Command::new(rtproof);
        command
            .args(["kernel", "bisect", "--source", "linux", "--longest", "--json", "out"])
            .args(words)
            .arg("--prove=--for 2s --load idle --no-trace")
            .current_dir(at);
        command
    };
    for step in ["out/steps/001/build.log", "out/steps/004/build.log"] {
        let mut child = bisect().spawn().unwrap();
        while !fs::read_to_string(at.join(step)).is_ok_and(|log| log.contains("  CC ")) {
            assert!(began.elapsed() < LIMIT, "no {step}");
            assert!(child.try_wait().unwrap().is_none(), "it ended before {step}");
            std::thread::sleep(Duration::from_millis(200));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = bisect().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The bad side's longest path is that of the good one and the planted loop: 20,000 rounds with a
/// variable in memory.
fn shows_the_loop(found: &Value) {
    let longest = |side: usize| {
        let number = found["evidence"][side].as_u64().unwrap();
        let step = &found["steps"][usize::try_from(number).unwrap() - 1];
        step["measured"]["latency"]["max"].as_u64().unwrap()
    };
    assert!(longest(1) > longest(0) + 60_000, "{} {}", longest(0), longest(1));
}

#[test]
#[ignore = "builds Debian's Linux source, minutes: `make lab-all` runs it, CI does not"]
fn linux_source_with_a_planted_option_is_bisected_across_two_kills() {
    let (rtproof, at) = made("bisected-options", OPTIONS);
    let found = bisected(&rtproof, &at, &["--good-config", "config", "--bad-config", "bad"]);
    let suspects = found["suspects"].as_array().unwrap();
    assert_eq!(suspects.len(), 1, "{found}");
    assert_eq!(suspects[0]["option"]["name"], "PLANTED_LOOP", "{found}");
    shows_the_loop(&found);
    // Of all that differ kconfig kept at least twenty.
    let all = found["steps"].as_array().unwrap().iter().filter_map(|step| {
        step["title"].as_str()?.split_once(" of ")?.1.split_once(':')?.0.parse::<u64>().ok()
    });
    assert!(all.max().is_some_and(|all| all >= 20), "{found}");
    fs::remove_dir_all(&at).unwrap();
}

#[test]
#[ignore = "builds Debian's Linux source, minutes: `make lab-all` runs it, CI does not"]
fn linux_source_with_a_planted_commit_is_bisected_across_two_kills() {
    let (rtproof, at) = made("bisected", HISTORY);
    let ends = ["--good", "c0", "--bad", "c36", "--config", "config"];
    let found = bisected(&rtproof, &at, &ends);
    let suspects = found["suspects"].as_array().unwrap();
    assert_eq!(suspects.len(), 1, "{found}");
    assert_eq!(suspects[0]["subject"], "edit 22 of kernel/time/time.c", "{found}");
    shows_the_loop(&found);
    let steps = found["steps"].as_array().unwrap();
    assert!(steps.iter().any(|step| step["outcome"] == "skipped"), "{found}");
    assert!(
        steps[3..].iter().all(|step| step["objects"].as_u64() < Some(200)),
        "built anew: {found}"
    );
    fs::remove_dir_all(&at).unwrap();
}
