//! What a command line of cyclictest requests, to compare it with the data.

/// What the options request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Requested {
    /// `-i`; cyclictest's default where it is not given.
    pub(super) interval_us: u64,
    /// `-d` or its default; 0 with a histogram, whatever `-d` says. `-S` does not change it.
    pub(super) distance_us: u64,
    /// `-D`.
    pub(super) duration_s: Option<u64>,
    /// `-l`.
    pub(super) loops: Option<u64>,
    /// `-t N`; `None`: as many as there are CPUs, or one.
    pub(super) threads: Option<u64>,
    /// `-h`, `-H`: rows of the histogram.
    pub(super) histogram: Option<u64>,
    /// `-N`.
    pub(super) nanoseconds: bool,
}

/// Single letters that take a value; those that may take one are in [`MAY`].
const TAKES: &str = "bcdDFhHilopT";
const MAY: &str = "aAt";

/// Reads a command line of cyclictest; `None` for another program.
pub(super) fn cyclictest(command: &str) -> Option<Requested> {
    let mut words = command.split_whitespace().skip_while(|word| base(word) != "cyclictest");
    words.next()?;
    let words: Vec<&str> = words
        .take_while(|word| !matches!(*word, "|" | "&&" | ";" | "&") && !word.contains('>'))
        .collect();
    // A version ("cyclictest V 2.40") or a sentence about it has no options.
    let is_option = |word: &&str| {
        word.strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-'))
    };
    if !words.is_empty() && !words.iter().any(is_option) {
        return None;
    }
    let mut requested = Requested { interval_us: 1000, distance_us: 500, ..Requested::default() };
    let (mut smp, mut distance) = (false, None);
    let mut one_thread = true;
    let mut take = |key: &str, value: Option<&str>| {
        let number = value.and_then(|value| value.parse::<u64>().ok());
        match key {
            "i" | "interval" => requested.interval_us = number.unwrap_or(requested.interval_us),
            "d" | "distance" => distance = number,
            "D" | "duration" => requested.duration_s = value.and_then(seconds),
            "l" | "loops" => requested.loops = number.filter(|&loops| loops > 0),
            "t" | "threads" => (requested.threads, one_thread) = (number, false),
            "h" | "H" | "histogram" | "histofall" => requested.histogram = number,
            "N" | "nsecs" => requested.nanoseconds = true,
            "S" | "smp" => smp = true,
            _ => {}
        }
    };
    let mut at = 0;
    while at < words.len() {
        let (word, next) = (words[at], words.get(at + 1).copied());
        at += 1;
        if let Some(long) = word.strip_prefix("--") {
            match long.split_once('=') {
                Some((key, value)) => take(key, Some(value)),
                None => take(long, next.filter(|next| !next.starts_with('-'))),
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            at += usize::from(short(letters, next, &mut take));
        }
    }
    if one_thread && !smp {
        requested.threads = Some(1);
    }
    let alike = requested.histogram.is_some_and(|rows| rows > 0);
    requested.distance_us = if alike { 0 } else { distance.unwrap_or(500) };
    Some(requested)
}

/// Letters behind one dash. Returns whether the next word was the value of the last of them.
fn short(letters: &str, next: Option<&str>, take: &mut impl FnMut(&str, Option<&str>)) -> bool {
    for (i, letter) in letters.char_indices() {
        let key = letter.to_string();
        let rest = &letters[i + letter.len_utf8()..];
        if TAKES.contains(letter) || MAY.contains(letter) {
            if !rest.is_empty() {
                take(&key, Some(rest));
                return false;
            }
            let must = TAKES.contains(letter);
            let value = next.filter(|next| must || next.starts_with(|c: char| c.is_ascii_digit()));
            take(&key, value);
            return value.is_some();
        }
        take(&key, None);
    }
    false
}

/// `90`, `15m`, `2h`, `1d` in seconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|&s| s > 0)
}

/// Name of a program without its folder.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_all_their_forms() {
        let requested = |command| cyclictest(command).expect("cyclictest");
        let article = requested(
            "cyclictest --mlockall --smp --priority=80 --interval=200 --distance=0 -D 15m -H 400 >x",
        );
        assert_eq!((article.interval_us, article.distance_us), (200, 0));
        assert_eq!((article.duration_s, article.histogram), (Some(900), Some(400)));
        assert_eq!(article.threads, None);
        let osadl = requested("sudo /usr/bin/cyclictest -l100000000 -mSp99 -i200 -h400 -q");
        assert_eq!(
            (osadl.loops, osadl.interval_us, osadl.distance_us),
            (Some(100_000_000), 200, 0)
        );
        let plain = requested("cyclictest -t 4 -a 2-5 -p90 -N --duration 10");
        assert_eq!((plain.threads, plain.distance_us), (Some(4), 500));
        assert!(plain.nanoseconds && plain.duration_s == Some(10) && plain.interval_us == 1000);
        // As cyclictest 2.4 shows it in `I:`.
        assert_eq!(requested("cyclictest -S -q -i 1000").distance_us, 500);
        assert_eq!(requested("cyclictest -S -d 300").distance_us, 300);
        assert_eq!(requested("cyclictest -t2 -d 300 -h 50").distance_us, 0);
        assert_eq!(requested("cyclictest -t -m").threads, None);
        assert_eq!(requested("cyclictest -m").threads, Some(1));
        assert!(cyclictest("oslat -D 10").is_none() && cyclictest("").is_none());
        assert!(cyclictest("cyclictest V 2.40").is_none());
        assert!(cyclictest("# results of cyclictest on rig 3 - idle").is_none());
        assert_eq!(requested("cyclictest -i").interval_us, 1000);
        assert_eq!(
            (seconds("2H"), seconds("x"), seconds("5w"), seconds("0")),
            (Some(7200), None, None, None)
        );
    }
}
