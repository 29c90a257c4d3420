//! CPU lists as the kernel writes them: `0-3,8-11`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of CPUs, ascending. Serialises as the kernel's list format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CpuList(Vec<u32>);

/// Largest CPU number taken: the kernel's limit is 8192 (NR_CPUS of x86 MAXSMP).
pub const CPU_MAX: u32 = 8191;

/// What is wrong with a CPU list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// Not a number, range or group.
    #[error("\"{0}\" is not a CPU, a range like 2-5, or a group like 0-31:1/2")]
    Syntax(String),
    /// A range that runs backwards.
    #[error("range \"{0}\" runs backwards")]
    Backwards(String),
    /// Larger than any CPU the kernel can have.
    #[error("CPU {0} is larger than {CPU_MAX}, the most Linux can have")]
    TooLarge(u32),
    #[error("\"{0}\" is not a mask of CPUs in hexadecimal like ff or 1,00000000")]
    Mask(String),
}

impl CpuList {
    /// `CPU 2` or `CPUs 2-3`.
    pub fn phrase(&self) -> String {
        match self.len() {
            0 => "no CPUs".into(),
            1 => format!("CPU {self}"),
            _ => format!("CPUs {self}"),
        }
    }

    /// A list from CPU numbers in any order.
    pub fn new(cpus: impl IntoIterator<Item = u32>) -> Self {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self(cpus)
    }

    /// Parses the kernel's format (lib/bitmap-str.c): numbers, ranges, `N` for the last CPU,
    /// groups `0-31:used/of`, `all`. `last` is the CPU that `N` and `all` mean, where the caller
    /// knows one. Empty text is the empty list.
    pub fn parse(text: &str, last: Option<u32>) -> Result<Self, CpuListError> {
        let mut cpus = Vec::new();
        for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
            Self::parse_part(part, last, &mut cpus)?;
        }
        Ok(Self::new(cpus))
    }

    /// Parses the kernel's mask format: hexadecimal, the last digit holds CPUs 0 to 3, groups of 32
    /// CPUs separated by commas, `0x` allowed. Empty text is the empty list.
    ///
    /// # Errors
    /// The text, where it is no mask.
    pub fn parse_mask(text: &str) -> Result<Self, CpuListError> {
        let mask = text.trim();
        let wrong = || CpuListError::Mask(mask.into());
        let digits = mask.strip_prefix("0x").unwrap_or(mask);
        let mut cpus = Vec::new();
        let mut first = 0u32;
        // The kernel pads every group but the first to eight digits (lib/bitmap-str.c, `%*pb`).
        for digit in digits.chars().rev().filter(|&c| c != ',') {
            let bits = digit.to_digit(16).ok_or_else(wrong)?;
            cpus.extend((0..4).filter(|bit| bits & (1 << bit) != 0).map(|bit| first + bit));
            first += 4;
        }
        match cpus.last() {
            Some(&cpu) if cpu > CPU_MAX => Err(CpuListError::TooLarge(cpu)),
            _ => Ok(Self(cpus)),
        }
    }

    fn parse_part(part: &str, last: Option<u32>, into: &mut Vec<u32>) -> Result<(), CpuListError> {
        let syntax = || CpuListError::Syntax(part.into());
        let number = |text: &str| -> Result<u32, CpuListError> {
            let cpu = match (text, last) {
                ("N", Some(last)) => last,
                _ => text.parse().map_err(|_| syntax())?,
            };
            if cpu > CPU_MAX { Err(CpuListError::TooLarge(cpu)) } else { Ok(cpu) }
        };
        let (range, group) = match part.split_once(':') {
            Some((range, group)) => {
                let (used, of) = group.split_once('/').ok_or_else(syntax)?;
                let used: u32 = used.parse().map_err(|_| syntax())?;
                let of: u32 = of.parse().map_err(|_| syntax())?;
                if used == 0 || of == 0 || used > of {
                    return Err(syntax());
                }
                (range, Some((used, of)))
            }
            None => (part, None),
        };
        let (first, end) = match (range, last) {
            ("all", Some(last)) => (0, last),
            _ => match range.split_once('-') {
                Some((first, end)) => (number(first)?, number(end)?),
                None => (number(range)?, number(range)?),
            },
        };
        if first > end {
            return Err(CpuListError::Backwards(part.into()));
        }
        let (used, of) = group.unwrap_or((1, 1));
        into.extend((first..=end).filter(|cpu| (cpu - first) % of < used));
        Ok(())
    }

    /// The CPU numbers, ascending, each once.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// The CPU numbers, ascending, each once.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a CPU is in the list.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// Those that exist, where that is known.
    #[must_use]
    pub fn within(self, existing: Option<&Self>) -> Self {
        existing.map_or_else(|| self.clone(), |existing| self.intersection(existing))
    }

    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.iter().filter(|&cpu| other.contains(cpu)).collect())
    }

    /// CPUs here and not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.iter().filter(|&cpu| !other.contains(cpu)).collect())
    }

    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.iter().chain(other.iter()))
    }
}

impl std::fmt::Display for CpuList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = self.0.as_slice();
        let mut comma = "";
        while let Some(&first) = rest.first() {
            let run = rest.iter().zip(first..).take_while(|&(&cpu, n)| cpu == n).count();
            let last = rest[run - 1];
            match run {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
            rest = &rest[run..];
        }
        Ok(())
    }
}

impl TryFrom<String> for CpuList {
    type Error = CpuListError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text, None)
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        list.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_the_kernel_writes_and_takes() {
        let list = |text| CpuList::parse(text, Some(11)).map(|list| list.to_string());
        assert_eq!(list("0-3,8-11\n").as_deref(), Ok("0-3,8-11"));
        assert_eq!(list("3,1,2,2").as_deref(), Ok("1-3"));
        assert_eq!(list("").as_deref(), Ok(""));
        assert_eq!(list("8-N").as_deref(), Ok("8-11"));
        assert_eq!(list("all").as_deref(), Ok("0-11"));
        assert_eq!(list("0-7:1/2").as_deref(), Ok("0,2,4,6"));
    }

    #[test]
    fn parses_masks() {
        let mask = |text| CpuList::parse_mask(text).map(|list| list.to_string());
        assert_eq!(mask("3\n").as_deref(), Ok("0-1"));
        assert_eq!(mask("ffff,00000000,00000001").as_deref(), Ok("0,64-79"));
        assert_eq!(mask("0x000007e0").as_deref(), Ok("5-10"));
        assert_eq!(mask("").as_deref(), Ok(""));
        assert_eq!(mask("3g"), Err(CpuListError::Mask("3g".into())));
        let wide = format!("1{}", "0".repeat(4096));
        assert_eq!(CpuList::parse_mask(&wide), Err(CpuListError::TooLarge(16384)));
    }

    #[test]
    fn errors_name_the_invalid_part() {
        assert_eq!(CpuList::parse("1-x", None), Err(CpuListError::Syntax("1-x".into())));
        assert_eq!(CpuList::parse("5-2", None), Err(CpuListError::Backwards("5-2".into())));
        assert_eq!(CpuList::parse("4-N", None), Err(CpuListError::Syntax("4-N".into())));
        assert_eq!(CpuList::parse("0-99999", None), Err(CpuListError::TooLarge(99999)));
        assert_eq!(CpuList::parse("0-7:0/2", None), Err(CpuListError::Syntax("0-7:0/2".into())));
    }
}
