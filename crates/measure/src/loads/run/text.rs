//! Texts that users type: quotes and words as a shell takes them, and how far a typing error is
//! from what was meant.

/// Without the one pair of quotes round the whole that is left where a shell did not take it. Only
/// for what was typed: done twice, it takes quotes that belong to the command.
pub(super) fn unquoted(text: &str) -> &str {
    let whole = text.trim();
    for quote in ['"', '\''] {
        let inner = whole.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
            return inner;
        }
    }
    text.trim_start() // white space at the end may be escaped
}

/// Splits arguments at white space, as a shell does with quotes and backslashes and nothing else:
/// no variables, no globs, no second command. The error is the quote that is not closed.
pub(super) fn words(args: &str) -> Result<Vec<String>, char> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = args.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(quote) => Err(quote),
        None => Ok(words),
    }
}

/// Least number of characters to add, drop, change or swap with the next to get from one to the
/// other (optimal string alignment).
pub(super) fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut table = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = table[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                let mut least = change.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                    least = least.min(table[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    table[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_of_quotes_is_taken() {
        for (text, expected) in [
            (" 'a b' ", "a b"),
            ("\"a 'b'\"", "a 'b'"),
            ("\"''\"", "''"),
            ("'a' 'b'", "'a' 'b'"),
            ("\"a\\\"b\"", "\"a\\\"b\""),
            ("'", "'"),
            (" a\\ ", "a\\ "),
        ] {
            assert_eq!(unquoted(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        let split = |text| words(text).unwrap();
        assert_eq!(split("--cpu 2  --vm\t1"), ["--cpu", "2", "--vm", "1"]);
        assert_eq!(split("--job 'a b' \"c 'd\"e \\'"), ["--job", "a b", "c 'de", "'"]);
        assert_eq!(split("'' \"\\\"\""), ["", "\""]);
        assert_eq!(split(" \n"), Vec::<String>::new());
        assert_eq!(split("$HOME;ls"), ["$HOME;ls"]);
    }

    #[test]
    fn distances_are_right() {
        for (from, to, expected) in [
            ("", "", 0),
            ("cpu", "cpu", 0),
            ("disk", "dsik", 1),
            ("net", "", 3),
            ("fork", "frok!", 2),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn an_open_quote_is_named() {
        assert_eq!(words("--job 'a"), Err('\''));
        assert_eq!(words("a\\"), Ok(vec!["a".into()]));
    }
}
