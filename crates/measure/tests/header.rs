//! `marks/rtproof_stats.h`, the statistics for applications in C and C++: against reference values,
//! and against what the crate `rtproof-stats` computes exactly.

use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rtproof_stats::{Histogram, Layout, Moments, binomial::Random, moments::Shape, quantile::Q};

/// Reads values; the first so many into one struct, the rest into another, which is merged into it.
const PROGRAM: &str = r#"#include "rtproof_stats.h"
#include <stdio.h>
#include <stdlib.h>
static struct rtproof_stats a, b;
int main(int argc, char **argv)
{
	unsigned long long value, first = strtoull(argc > 1 ? argv[1] : "0", NULL, 10), n = 0;
	static const uint64_t q[][2] = {{19, 20}, {1, 2}, {1, 20}, {1, 100}, {1, 1000},
					{1, 10000000}, {0, 1}, {1, 1}};
	size_t i;
	rtproof_stats_clear(&a);
	rtproof_stats_clear(&b);
	while (scanf("%llu", &value) == 1) rtproof_stats_add(n++ < first ? &a : &b, (uint64_t)value);
	rtproof_stats_merge(&a, &b);
	printf("%llu ", (unsigned long long)a.n);
	printf("%llu %llu\n", (unsigned long long)a.min, (unsigned long long)a.max);
	printf("%.17g %.17g %.17g %.17g\n", a.mean, rtproof_stats_sd(&a), rtproof_stats_skewness(&a),
	       rtproof_stats_kurtosis(&a));
	for (i = 0; i < sizeof q / sizeof *q; i++)
		printf("%llu ", (unsigned long long)rtproof_stats_quantile(&a, q[i][0], q[i][1]));
	return 0;
}
"#;

/// What the program prints.
#[derive(Debug)]
struct Printed {
    counts: [u64; 3],
    moments: [f64; 4],
    quantiles: Vec<u64>,
}

fn marks() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../marks")
}

/// Builds with every warning an error; false: the compiler is not installed.
fn built(compiler: &str, args: &[&str], folder: &Path) -> bool {
    let strict = ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"];
    let include = format!("-I{}", marks().display());
    let mut command = Command::new(compiler);
    let Ok(output) = command.args(strict).arg(include).args(args).current_dir(folder).output()
    else {
        let _ = writeln!(std::io::stderr(), "not tried: {compiler} is not installed");
        return false;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{compiler} {args:?}\n{said}");
    true
}

/// The program in a folder; `None`: there is no compiler.
fn program() -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().expect("a folder");
    write(&dir.path().join("app.c"), PROGRAM);
    built("cc", &["-std=gnu99", "-o", "app", "app.c", "-lm"], dir.path()).then_some(dir)
}

#[expect(clippy::disallowed_methods, reason = "this test's own file")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
}

fn run(dir: &Path, values: &[u64], first: usize) -> Printed {
    let mut child = Command::new(dir.join("app"))
        .arg(first.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut text = String::new();
    for value in values {
        let _ = writeln!(text, "{value}");
    }
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut lines = text.lines();
    let mut line = || lines.next().expect("a line").split_whitespace();
    let whole = |word: &str| word.parse::<u64>().expect("a number");
    let counts: Vec<u64> = line().map(whole).collect();
    let moments: Vec<f64> = line().map(|word| word.parse().expect("a number")).collect();
    Printed {
        counts: counts.try_into().expect("three"),
        moments: moments.try_into().expect("four"),
        quantiles: line().map(whole).collect(),
    }
}

#[track_caller]
fn close(got: [f64; 4], want: [f64; 4], relative: f64) {
    for (got, want) in got.into_iter().zip(want) {
        assert!((got / want - 1.0).abs() < relative, "{got}, not {want}");
    }
}

/// Values by exact fractions (Python's `fractions`): mean, sd with n - 1, m3 / m2^1.5, m4 / m2^2.
#[test]
fn the_reference_values_come_out() {
    let Some(dir) = program() else { return };
    let values = [52, 61, 48, 55, 49, 50, 53, 1200, 51, 47, 300, 60, 58, 54, 50, 49, 2_500_000, 52];
    let want = [
        139_016.055_555_555_56,
        589_223.977_444_258_5,
        3.880_568_599_019_962_3,
        16.058_816_728_765_58,
    ];
    for first in [0, 1, 9, 18] {
        let got = run(dir.path(), &values, first);
        assert_eq!(got.counts, [18, 47, 2_500_000]);
        close(got.moments, want, 1e-12);
        // p5 needs 20 values, p95 as many, p99 a hundred; p0 and p100 are none.
        let none = u64::MAX;
        assert_eq!(got.quantiles, [none, 52, none, none, none, none, none, none]);
    }
}

#[test]
fn it_agrees_with_exact_sums_and_never_reports_a_quantile_too_early() {
    let Some(dir) = program() else { return };
    let mut random = Random::new(5);
    let mut values: Vec<u64> = (0..200_000)
        .map(|_| {
            let base = match (random.unit() * 100_000.0) as u64 {
                0 => 3e9,
                1..=1000 => 250_000.0,
                _ => 40_000.0,
            };
            (base * (0.9 + 0.2 * random.unit())) as u64
        })
        .collect();
    let (mut moments, mut histogram) = (Moments::default(), Histogram::new(Layout::FINE));
    for &value in &values {
        moments.push(value);
        histogram.record(value);
    }
    let shape = Shape::of(&moments).expect("a shape");
    let want = [moments.mean(), moments.sd(), Some(shape.g1), Some(shape.kurtosis)];
    let got = [0, 70_000, 200_000].map(|first| run(dir.path(), &values, first));
    values.sort_unstable();
    let max = moments.max().expect("a value");
    for got in got {
        assert_eq!(got.counts, [200_000, moments.min().expect("a value"), max]);
        close(got.moments, want.map(|value| value.expect("values")), 1e-9);
        for (q, &got) in Q::TABLE.into_iter().zip(&got.quantiles) {
            let rank = q.rank(200_000);
            let exact = values[rank as usize - 1];
            assert_eq!(Some(got), histogram.value_at_rank(rank).map(|value| value.min(max)));
            assert!(got >= exact && got - exact <= exact / 128 + 1, "{}: {got} {exact}", q.name());
        }
        assert_eq!(got.quantiles[5..], [u64::MAX; 3]);
    }
}

#[test]
fn edges_of_buckets_and_the_ends_of_the_range() {
    let Some(dir) = program() else { return };
    for power in [0, 7, 8, 9, 20, 41, 42, 63] {
        for value in [(1_u64 << power) - 1, 1 << power, (1 << power) + 1] {
            let got = run(dir.path(), &[value, value], 1);
            assert_eq!(got.counts, [2, value, value]);
            // The maximum is exact, and no quantile lies beyond it.
            assert_eq!(got.quantiles[1], value, "{value}");
            assert!(got.moments[2].is_nan() && got.moments[3].is_nan(), "{got:?}");
        }
    }
    let nothing = run(dir.path(), &[], 0);
    assert_eq!((nothing.counts[0], nothing.quantiles[1]), (0, u64::MAX));
    assert!(nothing.moments[1].is_nan());
    let one = run(dir.path(), &[u64::MAX], 1);
    assert_eq!(one.counts, [1, u64::MAX, u64::MAX]);
}

/// What the header asks of the system: memory to clear, a root. No allocation.
#[test]
fn it_calls_nothing_that_allocates_and_is_cpp_too() {
    let dir = tempfile::tempdir().expect("a folder");
    let uses = "#include \"rtproof_stats.h\"\n\
                void add(struct rtproof_stats *s, uint64_t v);\n\
                double all(struct rtproof_stats *s, const struct rtproof_stats *o);\n\
                void add(struct rtproof_stats *s, uint64_t v) { rtproof_stats_add(s, v); }\n\
                double all(struct rtproof_stats *s, const struct rtproof_stats *o)\n{\n\
                \trtproof_stats_clear(s);\n\trtproof_stats_merge(s, o);\n\
                \treturn rtproof_stats_sd(s) + rtproof_stats_skewness(s)\n\
                \t\t+ rtproof_stats_kurtosis(s) + (double)rtproof_stats_quantile(s, 1, 100);\n}\n";
    write(&dir.path().join("uses.c"), uses);
    write(&dir.path().join("uses.cpp"), uses);
    for (compiler, args) in [
        ("cc", ["-std=c99", "-c", "uses.c"]),
        ("g++", ["-std=c++11", "-fsyntax-only", "uses.cpp"]),
        ("g++", ["-std=c++20", "-fsyntax-only", "uses.cpp"]),
        ("clang", ["-std=c11", "-fsyntax-only", "uses.c"]),
    ] {
        built(compiler, &args, dir.path());
    }
    let nm = Command::new("nm").args(["-u", "uses.o"]).current_dir(dir.path()).output();
    let Ok(nm) = nm else { return };
    let text = String::from_utf8_lossy(&nm.stdout).into_owned();
    let names: Vec<&str> = text.split_whitespace().filter(|word| *word != "U").collect();
    assert!(nm.status.success() && !names.is_empty(), "{text}");
    let harmless = ["memset", "memcpy", "sqrt", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"];
    assert!(names.iter().all(|name| harmless.contains(name)), "{names:?}");
}

/// The periodic loop of `marks/examples/stats.c`.
#[test]
fn the_example_in_c_computes_inside_its_loop() {
    let dir = tempfile::tempdir().expect("a folder");
    let source = marks().join("examples/stats.c").display().to_string();
    if !built("cc", &["-std=gnu11", "-o", "stats", &source, "-lm"], dir.path()) {
        return;
    }
    let output = Command::new(dir.path().join("stats")).arg("1200").output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("cycles 1200, ") && text.contains("\np50 "), "{text}");
    let number = |name: &str| {
        let mut words = text.split_whitespace().skip_while(|word| *word != name);
        words.nth(1).and_then(|word| word.parse::<f64>().ok()).expect("a number")
    };
    assert!(number("min") <= number("p50") && number("p50") <= number("max"), "{text}");
    assert!(number("min") <= number("mean") && number("mean") <= number("max"), "{text}");
}
