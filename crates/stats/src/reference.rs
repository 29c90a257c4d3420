//! Reference data of the tests, read in place: in the folder named by `RTPROOF_CAPTURES`, or in
//! ../shared/data beside the workspace. Where it is absent the tests say so and pass.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Rows of numbers of a file in `statistics/`, without its head.
#[expect(clippy::disallowed_methods, reason = "reference data of tests, not of the machine")]
pub(crate) fn table(name: &str) -> Option<Vec<Vec<f64>>> {
    let data = match std::env::var_os("RTPROOF_CAPTURES") {
        Some(captures) => PathBuf::from(captures),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = data.join("statistics").join(name);
    if !path.exists() {
        // Past the harness, which keeps what passing tests print to itself.
        let _ = writeln!(io::stderr(), "ignored: no {}; set RTPROOF_CAPTURES", path.display());
        return None;
    }
    let text = fs::read_to_string(&path).expect("readable");
    let row = |line: &str| line.split(',').map(|field| field.parse().expect("a number")).collect();
    Some(text.lines().skip(1).map(row).collect())
}

/// One column of such a file.
pub(crate) fn column(name: &str, at: usize) -> Option<Vec<f64>> {
    Some(table(name)?.into_iter().map(|row| row[at]).collect())
}

/// The first digits of pi, 3 among them: the spigot of Rabinowitz and Wagon (1995).
pub(crate) fn pi_digits(count: usize) -> Vec<u8> {
    let wanted = count + 10;
    let mut remainders = vec![2_u64; wanted * 10 / 3 + 2];
    let (mut digits, mut nines, mut held) = (Vec::new(), 0, None::<u8>);
    for _ in 0..wanted {
        let mut carry = 0;
        for at in (1..remainders.len()).rev() {
            let x = 10 * remainders[at] + carry;
            let divisor = 2 * at as u64 + 1;
            remainders[at] = x % divisor;
            carry = x / divisor * at as u64;
        }
        let x = 10 * remainders[0] + carry;
        (remainders[0], carry) = (x % 10, x / 10);
        match carry {
            9 => nines += 1,
            10 => {
                digits.extend(held.replace(0).map(|digit| digit + 1));
                digits.extend(std::iter::repeat_n(0, std::mem::take(&mut nines)));
            }
            digit => {
                digits.extend(held.replace(digit as u8));
                digits.extend(std::iter::repeat_n(9, std::mem::take(&mut nines)));
            }
        }
    }
    digits.truncate(count);
    digits
}
